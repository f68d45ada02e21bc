// Arrays that peers of this host read and write directly, with one copy by the kernel
// (process_vm_readv and process_vm_writev).
//
// The owner *exposes* its arrays: it writes a ticket, a nonzero number, into a shared word that
// only the owner writes. Each peer has such a word, too, for its mark. A peer sets its mark, checks
// that the ticket is valid, copies, and clears its mark. If an error ends the call before all peers
// have finished, the owner *withdraws* the arrays. It clears the ticket and waits until no peer's
// mark is set. So no array is read or written after its call has ended. Data that was copied under
// a valid ticket belongs to the call.
//
//     owner   expose ............................. clear the ticket | wait for marks | end the call
//     peer         mark  check the ticket  copy  unmark
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

// A peer's view of an exposed array.
struct ExposedArray {
  int owner = 0;                        // group rank
  std::byte* address = nullptr;         // in the owner's process
  const TicketWord* exposed = nullptr;  // the owner's word, which holds `ticket` while valid
  std::uint64_t ticket = 0;
};

// Reads `bytes` bytes of the array, from byte `offset` on.
// @param reading This rank's word. It holds `mark` during the read.
// @return 0 if the read succeeded. ESRCH if the array was withdrawn or its owner has ended; the
//   data in `to` is then invalid. Otherwise the kernel's error number.
int read_exposed(const control::GroupControl& control,
                 const ExposedArray& array,
                 TicketWord& reading,
                 std::uint64_t mark,
                 void* to,
                 std::size_t offset,
                 std::size_t bytes) noexcept;

// Writes `bytes` bytes from `from` to the array, from byte `offset` on. PeerMemory::may_write must
// have returned true. `copying` is this rank's word, as `reading` is in read_exposed. The result is
// the same as that of read_exposed.
int write_exposed(const control::GroupControl& control,
                  const ExposedArray& array,
                  TicketWord& copying,
                  std::uint64_t mark,
                  const void* from,
                  std::size_t offset,
                  std::size_t bytes) noexcept;

// Throws the error of a copy that the kernel refused, although it allowed copies when the ranks
// met.
[[noreturn]] void throw_unreachable(int owner, int error);

// Clears the ticket. Then polls `is_copied` until it returns false, which says that no peer copies
// from or to the arrays. Waits at most ten seconds. That is enough for a dead or stopped peer: the
// kernel still finishes the piece that it copies for this peer.
template <typename IsCopied>
void withdraw(TicketWord& exposed, const IsCopied& is_copied) noexcept {
  exposed.store(0, std::memory_order_relaxed);
  base::thread_fence(std::memory_order_seq_cst);  // pairs with the fences in copy_pieces
  base::poll_until([&] { return !is_copied(); },
                   base::Deadline::in(std::chrono::seconds(10)),
                   std::chrono::microseconds(20));
}

}  // namespace hocket::engines::shm
