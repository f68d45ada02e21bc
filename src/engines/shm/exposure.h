// Arrays that peers of this host read directly, with one copy by the kernel (process_vm_readv).
//
// The owner *exposes* an array: it writes a ticket, a nonzero number, into a word of its own. A
// reader first marks a word of its own, and reads only while the ticket is valid. If an error ends
// the call before its readers are done, the owner *withdraws* the array. It clears the ticket and
// waits until no reader's word is marked. So no array is read after its call has ended, and data
// that was read under a valid ticket belongs to the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "foundation/base/atomic.h"
#include "membership/control/group.h"

namespace hocket::engines::shm {

using TicketWord = base::Atomic<std::uint64_t>;

// An exposed array, as its reader sees it. A view.
struct ExposedArray {
  int owner = 0;                       // group rank
  const std::byte* address = nullptr;  // in its own process
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

// Throws the error of a read that the kernel refuses now but allowed when the ranks met.
[[noreturn]] void throw_unreadable(int owner, int error);

// Clears the ticket, then asks `is_read` until no reader marks the array. It waits one second at
// most, because the kernel finishes a piece even if its reader dies.
void withdraw(TicketWord& exposed, const std::function<bool()>& is_read) noexcept;

}  // namespace hocket::engines::shm
