// Arrays that peers of this host read where they lie, by one copy of the kernel's.
//
// An array's owner *exposes* it: it writes a ticket, a number that is not 0, into a word of its
// own. Whoever reads the array says so in a word of its own first, and reads only while the ticket
// stands. Where a call ends before its readers have done, by an error, its owner *withdraws* the
// array: it takes the ticket away and waits until nobody says that he reads. So no byte of an array
// is read after its call has ended, and what was read while the ticket stood is what the call gave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "foundation/base/atomic.h"
#include "membership/control/group.h"

namespace hocket::engines::shm {

using TicketWord = base::Atomic<std::uint64_t>;

// As its reader sees it. A view.
struct ExposedArray {
  int owner = 0;                       // group rank
  const std::byte* address = nullptr;  // in its own process
  const TicketWord* exposed = nullptr;
  std::uint64_t ticket = 0;
};

// Reads `bytes` from `offset` on. `reading`: this rank's word, which is `mark` while it reads.
// Returns 0; ESRCH where the array was withdrawn or its owner has ended, and what was read counts
// for nothing; else the error number by which the kernel refuses.
int read_exposed(const control::GroupControl& control,
                 const ExposedArray& array,
                 TicketWord& reading,
                 std::uint64_t mark,
                 void* to,
                 std::size_t offset,
                 std::size_t bytes) noexcept;

// Throws what the kernel's refusal comes to: it allowed as much when the ranks met.
[[noreturn]] void throw_unreadable(int owner, int error);

// Takes the ticket away. `is_read`: whether somebody says that he reads; asked until he does not,
// for a second at most, as the kernel ends a piece whatever becomes of its reader.
void withdraw(TicketWord& exposed, const std::function<bool()>& is_read) noexcept;

}  // namespace hocket::engines::shm
