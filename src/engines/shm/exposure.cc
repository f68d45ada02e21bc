#include "engines/shm/exposure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "hocket/error.h"

namespace hocket::engines::shm {
namespace {

// The size of one read. An owner that withdraws may have to wait for it.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr auto kMostPatience = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::microseconds(20);

}  // namespace

int read_exposed(const control::GroupControl& control,
                 const ExposedArray& array,
                 TicketWord& reading,
                 std::uint64_t mark,
                 void* to,
                 std::size_t offset,
                 std::size_t bytes) noexcept {
  const auto stands = [&] {
    return array.exposed->load(std::memory_order_acquire) == array.ticket;
  };
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(kPieceBytes, bytes - done);
    reading.store(mark, std::memory_order_relaxed);
    // Either this rank sees the cleared ticket, or the owner sees the mark. Pairs with withdraw.
    base::thread_fence(std::memory_order_seq_cst);
    int error = 0;
    const bool stood = stands();
    if (stood) {
      error = control.host().read_array(control.host_rank(array.owner),
                                        static_cast<std::byte*>(to) + done,
                                        array.address + offset + done,
                                        piece);
    }
    reading.store(0, std::memory_order_release);
    base::thread_fence(std::memory_order_seq_cst);
    if (!stood || !stands()) return ESRCH;
    if (error != 0) return error;
    done += piece;
  }
  return 0;
}

void throw_unreadable(int owner, int error) {
  throw SystemError(fmt::format("the kernel does not let this rank read the array of rank {} any "
                                "more; set HOCKET_SINGLE_COPY=never on all ranks",
                                owner),
                    error);
}

void withdraw(TicketWord& exposed, const std::function<bool()>& is_read) noexcept {
  exposed.store(0, std::memory_order_relaxed);
  base::thread_fence(std::memory_order_seq_cst);  // pairs with read_exposed
  base::poll_until([&] { return !is_read(); }, base::Deadline::in(kMostPatience), kNap);
}

}  // namespace hocket::engines::shm
