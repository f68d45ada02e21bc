// NVSHMEM's heap when a rank hears of a failure while it waits. Uses the fake driver's GPU and the
// fake NVSHMEM, with one PE.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "engines/nvshmem/heap.h"
#include "foundation/cuda/driver.h"

namespace hocket::nvshmem {
namespace {

// The driver's own, and a gate in front of it.
cuda::Result (*driver_memset)(cuda::DevicePtr, unsigned char, std::size_t, cuda::Stream) = nullptr;
std::atomic<bool> closed{false};
std::atomic<bool> reached{false};

cuda::Result gated_memset(cuda::DevicePtr at,
                          unsigned char value,
                          std::size_t bytes,
                          cuda::Stream stream) {
  reached = true;
  while (closed) std::this_thread::yield();
  return driver_memset(at, value, bytes, stream);
}

struct Told : std::runtime_error {
  using runtime_error::runtime_error;
};

Wait patient() {
  return {.look = [] {}, .late = [] {}, .deadline = base::Deadline::never()};
}

TEST(NvshmemHeap, AFailureHeardOfWhileNewMemoryIsClearedLosesNothing) {
  const cuda::FoundDriver found = cuda::Driver::find();
  ASSERT_TRUE(found.driver) << found.why_not;
  auto& driver = const_cast<cuda::Driver&>(*found.driver);
  driver_memset = driver.memset_d8_async;
  driver.memset_d8_async = gated_memset;
  const auto device = std::make_shared<const cuda::DeviceContext>(found.driver, 0);
  const auto library = NvshmemLibrary::find({.file = HOCKET_FAKE_NVSHMEM, .folders = {}});
  ASSERT_TRUE(library.library) << library.why_not;
  const cuda::DeviceGuard guard(*device);
  Heap heap(library.library, false);
  heap.start(device, heap.new_id(), 0, 1, patient());

  closed = true;
  Wait wait = patient();
  wait.look = [] {
    if (reached) throw Told("a rank has failed");
  };
  EXPECT_THROW(heap.allocate(device, 4096, wait), Told);
  closed = false;

  // It is there, as a piece that was dropped, and goes back like any other.
  EXPECT_EQ(heap.facts(*device).why_not.view(), "");
  EXPECT_EQ(heap.dropped(), std::vector{std::byte{1}});
  heap.give_back(device, heap.dropped(), patient());
  EXPECT_TRUE(heap.dropped().empty());
  const Heap::HeapBlock again = heap.allocate(device, 4096, patient());
  ASSERT_NE(again.address, nullptr);
  EXPECT_EQ(again.address[0], std::byte{0});
  EXPECT_EQ(again.address[4095], std::byte{0});
}

}  // namespace
}  // namespace hocket::nvshmem
