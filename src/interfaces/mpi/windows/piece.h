// A piece of a target's memory, as an MPI call describes it.
#pragma once

#include "interfaces/mpi/windows/process_memory.h"
#include "interfaces/mpi/windows/window.h"

namespace hocket::mpi {
// A value: elements of a type in the memory of a target. It refers to the window.
class TargetPiece {
 public:
  // Throws MPI_ERR_RMA_RANGE unless all bytes are in the target's part of the window. `disp` is
  // counted in the target's units, or is an address if the window is dynamic.
  TargetPiece(Window& window, int rank, MPI_Aint disp, MPI_Count count, const DatatypePtr& type);

  int rank() const noexcept { return rank_; }
  std::int64_t bytes() const noexcept { return bytes_; }
  const Datatype& type() const noexcept { return *type_; }
  std::int64_t count() const noexcept { return count_; }
  // Returns the address of the elements if they are contiguous and mapped in this process; else
  // null.
  std::byte* in_place() const noexcept;
  bool is_remote() const noexcept { return window_.member(rank_).reach == Reach::kByService; }
  // Returns the places of the elements' bytes in the target's process.
  std::vector<RemoteRun> runs() const { return runs_from(static_cast<std::int64_t>(there_)); }
  // Copy all elements to or from packed bytes.
  void read(std::byte* packed) const;
  void write(const std::byte* packed) const;

 private:
  void check_range(std::int64_t begin) const;
  bool is_attached(std::int64_t begin, std::int64_t first_byte, std::int64_t behind) const;
  std::vector<RemoteRun> runs_from(std::int64_t begin) const;
  [[noreturn]] void fail_to_reach(int error) const;

  Window& window_;
  int rank_;
  MPI_Count count_;
  DatatypePtr type_;
  std::int64_t bytes_ = 0;
  std::byte* here_ = nullptr;  // address of the first element in this process; null: not mapped
  std::uintptr_t there_ = 0;   // its address in the target's process
};

}  // namespace hocket::mpi
