#include "engines/shm/exposure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "hocket/error.h"

namespace hocket::engines::shm {
namespace {

// The bytes of one copy. An owner that withdraws its array may have to wait for one copy.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Calls `copy(offset, bytes)` for each piece while the ticket is valid. `copy` returns 0 or an
// error number. Returns the result of read_exposed.
template <typename Copy>
int copy_pieces(const ExposedArray& array,
                TicketWord& copying,
                std::uint64_t mark,
                std::size_t bytes,
                const Copy& copy) noexcept {
  const auto is_valid = [&] {
    return array.exposed->load(std::memory_order_acquire) == array.ticket;
  };
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(kPieceBytes, bytes - done);
    copying.store(mark, std::memory_order_relaxed);
    // Pairs with the fence in withdraw: either this rank sees the cleared ticket, or the owner sees
    // the mark.
    base::thread_fence(std::memory_order_seq_cst);
    const bool was_valid = is_valid();
    const int error = was_valid ? copy(done, piece) : 0;
    copying.store(0, std::memory_order_release);
    base::thread_fence(std::memory_order_seq_cst);
    if (!was_valid || !is_valid()) return ESRCH;
    if (error != 0) return error;
    done += piece;
  }
  return 0;
}

}  // namespace

int read_exposed(const control::GroupControl& control,
                 const ExposedArray& array,
                 TicketWord& reading,
                 std::uint64_t mark,
                 void* to,
                 std::size_t offset,
                 std::size_t bytes) noexcept {
  return copy_pieces(array, reading, mark, bytes, [&](std::size_t at, std::size_t piece) {
    return control.host().peer_memory.read_array(control.host_rank(array.owner),
                                                 static_cast<std::byte*>(to) + at,
                                                 array.address + offset + at,
                                                 piece);
  });
}

int write_exposed(const control::GroupControl& control,
                  const ExposedArray& array,
                  TicketWord& copying,
                  std::uint64_t mark,
                  const void* from,
                  std::size_t offset,
                  std::size_t bytes) noexcept {
  return copy_pieces(array, copying, mark, bytes, [&](std::size_t at, std::size_t piece) {
    return control.host().peer_memory.write_array(control.host_rank(array.owner),
                                                  array.address + offset + at,
                                                  static_cast<const std::byte*>(from) + at,
                                                  piece,
                                                  *array.exposed,
                                                  array.ticket);
  });
}

void throw_unreachable(int owner, int error) {
  throw SystemError(fmt::format("the kernel does not let this rank reach the array of rank {} any "
                                "more; set HOCKET_SINGLE_COPY=never on all ranks",
                                owner),
                    error);
}

}  // namespace hocket::engines::shm
