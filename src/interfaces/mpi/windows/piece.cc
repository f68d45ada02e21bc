#include "interfaces/mpi/windows/piece.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/types/runs.h"
#include "interfaces/mpi/windows/access.h"

namespace hocket::mpi {
namespace {

std::int64_t fitting(std::optional<std::int64_t> number) {
  if (!number) fail(MPI_ERR_RMA_RANGE, "target_disp or target_count is too large");
  return *number;
}

}  // namespace

TargetPiece::TargetPiece(
    Window& window, int rank, MPI_Aint disp, MPI_Count count, const DatatypePtr& type)
    : window_(window), rank_(rank), count_(count), type_(type), bytes_(bytes_of(*type, count)) {
  if (bytes_ == 0) return;
  const WindowMember& member = window.member(rank);
  require(disp >= 0, MPI_ERR_DISP, "target_disp is negative");
  const std::int64_t begin =
      window.is_dynamic() ? disp : fitting(checked_multiply(disp, member.disp_unit));
  if (!window.is_dynamic() || member.place >= 0) check_range(begin);  // else the target does
  there_ = member.base + static_cast<std::uintptr_t>(begin);
  if (member.mapped != nullptr) {
    here_ = member.mapped + begin;
  } else if (rank == window.comm->rank) {
    here_ = reinterpret_cast<std::byte*>(there_);
  }
}

void TargetPiece::check_range(std::int64_t begin) const {
  const std::int64_t last = fitting(checked_multiply(count_ - 1, type_->extent()));
  const std::int64_t first_byte = fitting(
      checked_add(fitting(checked_add(begin, type_->true_lb())), std::min<std::int64_t>(last, 0)));
  const std::int64_t behind = fitting(checked_add(
      fitting(checked_add(fitting(checked_add(begin, type_->true_lb())), type_->true_extent())),
      std::max<std::int64_t>(last, 0)));
  const bool is_inside = window_.is_dynamic()
                             ? is_attached(begin, first_byte, behind)
                             : first_byte >= 0 && behind <= window_.member(rank_).size;
  if (is_inside) return;
  fail(MPI_ERR_RMA_RANGE,
       window_.is_dynamic()
           ? "rank " + std::to_string(rank_) + " has not attached all of the memory at target_disp"
           : "bytes " + std::to_string(first_byte) + " to " + std::to_string(behind) +
                 " are not in the window of rank " + std::to_string(rank_) + ", which has " +
                 std::to_string(window_.member(rank_).size));
}

// The elements of a dynamic window may lie in several attached pieces of memory, with gaps between.
bool TargetPiece::is_attached(std::int64_t begin,
                              std::int64_t first_byte,
                              std::int64_t behind) const {
  if (first_byte < 0) return false;
  const AttachedMemory attached = window_.attached(rank_);
  const auto holds = [&](std::int64_t from, std::int64_t to) {
    return attached.holds(static_cast<std::uintptr_t>(from), static_cast<std::uintptr_t>(to));
  };
  if (holds(first_byte, behind)) return true;
  const std::vector<RemoteRun> runs = runs_from(begin);
  return !runs.empty() && std::ranges::all_of(runs, [&](const RemoteRun& run) {
    const auto from = static_cast<std::int64_t>(run.place);
    return holds(from, from + static_cast<std::int64_t>(run.length));
  });
}

std::vector<RemoteRun> TargetPiece::runs_from(std::int64_t begin) const {
  std::vector<RemoteRun> made;
  each_run(*type_, begin, 0, bytes_, [&](std::int64_t place, std::int64_t length) {
    made.push_back({static_cast<std::uintptr_t>(place), static_cast<std::size_t>(length)});
    return true;
  });
  return made;
}

void TargetPiece::fail_to_reach(int error) const {
  if (error == ESRCH) {  // the other ranks learn of the death in a moment
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    await(window_.check(), [&] { return std::chrono::steady_clock::now() > until; });
    fail(MPIX_ERR_PROC_FAILED, "rank " + std::to_string(rank_) + " has ended");
  }
  fail(error == EFAULT ? MPI_ERR_RMA_RANGE : MPI_ERR_OTHER,
       "cannot reach the memory of rank " + std::to_string(rank_) + ": " +
           std::generic_category().message(error));
}

std::byte* TargetPiece::in_place() const noexcept {
  if (here_ == nullptr || !is_dense(*type_)) return nullptr;
  return here_ + type_->true_lb();
}

void TargetPiece::read(std::byte* packed) const {
  if (bytes_ == 0) return;
  if (here_ != nullptr) {
    type_->pack(here_, count_, packed);
  } else if (is_remote()) {
    read_remote(window_, rank_, runs(), {packed, static_cast<std::size_t>(bytes_)});
  } else if (const int error = read_process(window_.member(rank_).pid, runs(), packed)) {
    fail_to_reach(error);
  }
}
void TargetPiece::write(const std::byte* packed) const {
  if (bytes_ == 0) return;
  if (here_ != nullptr) {
    type_->unpack(packed, count_, here_);
  } else if (is_remote()) {
    write_remote(window_, rank_, runs(), {packed, static_cast<std::size_t>(bytes_)});
  } else if (const int error = write_process(window_.member(rank_).pid, runs(), packed)) {
    fail_to_reach(error);
  }
}

}  // namespace hocket::mpi
