// Threads of which none begins unless all can, where memory ends at any point of their start.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/threads.h"

namespace {
thread_local int allocations_left = -1;  // until one fails; -1: none does
}

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hocket::base {
namespace {

TEST(Threads, RunAllOrNoneWhereMemoryEnds) {
  constexpr int kThreads = 4;
  bool has_failed = false, has_run = false;
  for (int n = 0; !has_run; ++n) {
    ASSERT_LT(n, 1000);
    std::atomic<int> ran = 0;
    try {
      const std::function<void(int)> body = [&](int) { ++ran; };
      allocations_left = n;
      auto threads = start_threads(kThreads, body);
      allocations_left = -1;
      threads.clear();
      EXPECT_EQ(ran, kThreads);
      has_run = true;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(ran, 0) << "allocation " << n;
      has_failed = true;
    }
  }
  EXPECT_TRUE(has_failed);
}

}  // namespace
}  // namespace hocket::base
