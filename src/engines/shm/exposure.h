// Arrays that peers of this host read and write directly, with one copy by the kernel
// (process_vm_readv and process_vm_writev).
//
// The owner *exposes* its arrays: it writes a ticket, a nonzero number, into a word of its own. A
// peer first marks a word of its own, and copies only while the ticket is valid. If an error ends
// the call before its peers are done, the owner *withdraws* the arrays. It clears the ticket and
// waits until no peer's word is marked. So no array is read or written after its call has ended,
// and data that was copied under a valid ticket belongs to the call.
//
//     owner   expose .............................. withdraw | wait for marks | the call has ended
//     peer         mark  look at ticket  copy  unmark
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "foundation/base/atomic.h"
#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "membership/control/group.h"

namespace hocket::engines::shm {

using TicketWord = base::Atomic<std::uint64_t>;

// An exposed array, as a peer sees it. A view.
struct ExposedArray {
  int owner = 0;                 // group rank
  std::byte* address = nullptr;  // in its own process
  const TicketWord* exposed = nullptr;
  std::uint64_t ticket = 0;
};

// Reads `bytes` bytes from `offset`.
// @param reading This rank's word. It holds `mark` during the read.
// @return 0; ESRCH if the array was withdrawn or its owner has ended, and the data is invalid; else
//   the kernel's error number.
int read_exposed(const control::GroupControl& control,
                 const ExposedArray& array,
                 TicketWord& reading,
                 std::uint64_t mark,
                 void* to,
                 std::size_t offset,
                 std::size_t bytes) noexcept;

// Writes `bytes` bytes from `from` at `offset`, if HostControl::may_write. Parameters and result
// are those of read_exposed; `copying` is the word that is marked.
int write_exposed(const control::GroupControl& control,
                  const ExposedArray& array,
                  TicketWord& copying,
                  std::uint64_t mark,
                  const void* from,
                  std::size_t offset,
                  std::size_t bytes) noexcept;

// Throws the error of a copy that the kernel refuses now but allowed when the ranks met.
[[noreturn]] void throw_unreachable(int owner, int error);

// Clears the ticket, then asks `is_copied` until no peer copies from or to the arrays. The kernel
// finishes a piece even if the peer is killed or stopped. It waits ten seconds at most.
template <typename IsCopied>
void withdraw(TicketWord& exposed, const IsCopied& is_copied) noexcept {
  exposed.store(0, std::memory_order_relaxed);
  base::thread_fence(std::memory_order_seq_cst);  // pairs with the copies'
  base::poll_until([&] { return !is_copied(); },
                   base::Deadline::in(std::chrono::seconds(10)),
                   std::chrono::microseconds(20));
}

}  // namespace hocket::engines::shm
