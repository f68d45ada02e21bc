// Symmetric memory: arrays of one shape on every rank, each reachable from all, in the host's
// memory or the GPUs'.
//
// Collectives on symmetric arrays copy nothing: ranks read and write each other's memory directly.
// After an error the contents are undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/held.h"

namespace hocket {

namespace symmetric {
class SymmetricBlock;
}

// Whose memory on GPUs it is.
enum class SymmetricHeap : std::uint8_t {
  kHocket,
  // NVSHMEM's, where that library is there: what NVSHMEM's device functions take as an address.
  kNvshmem,
};

// Where symmetric arrays are made. Absent: where the communicator's calls are, a GPU's memory from
// its first call on GPUs on, and for NVSHMEM's heap.
struct SymmetricOptions {
  std::optional<MemoryKind> memory = {};
  SymmetricHeap heap = SymmetricHeap::kHocket;
  std::optional<Duration> deadline = {};
};

// A resource: this rank's part of a symmetric array and the views of the others'. The memory lives
// until the last rank has released it; that of a GPU is given up once that GPU has no work any
// more. Cheap to move; any thread.
class [[nodiscard("its memory goes with it: keep it")]] SymmetricArray {
 public:
  explicit SymmetricArray(std::shared_ptr<symmetric::SymmetricBlock> block) noexcept;

  ArrayView local() const& noexcept;
  operator ArrayView() const& noexcept { return local(); }
  operator ConstArrayView() const& noexcept { return local(); }
  ArrayView local() const&& = delete;          // hocket: this is a temporary: give it a name
  operator ArrayView() const&& = delete;       // hocket: this is a temporary: give it a name
  operator ConstArrayView() const&& = delete;  // hocket: this is a temporary: give it a name
  // The array of another rank of the communicator that made it, as mapped here. What it holds is
  // defined only between calls that order the ranks (a barrier, a collective). Throws
  // InvalidArgument where that rank's is not mapped here, which NVSHMEM's heap may have.
  ArrayView peer(int rank) const;

  std::size_t count() const noexcept { return local().count(); }
  DType dtype() const noexcept { return local().dtype(); }
  MemoryKind memory() const noexcept { return local().memory(); }
  // 64-byte aligned, at least.
  template <Element T>
  T* data() const& noexcept {
    return static_cast<T*>(local().data());
  }
  template <Element T>
  T* data() const&& = delete;  // hocket: this is a temporary: give it a name
  // Gives this rank's hold up; views must not be used afterwards.
  void free() noexcept { block_.reset(); }
  // Keeps the memory alive, for views that travel (NumPy arrays).
  std::shared_ptr<void> owner() const noexcept;

 private:
  std::shared_ptr<symmetric::SymmetricBlock> block_;
};

// Makes symmetric arrays of one communicator.
class SymmetricMemory {
 public:
  explicit SymmetricMemory(std::shared_ptr<world::CommunicatorImpl> impl) noexcept;

  // A zeroed array of `count` elements on every rank. Collective: all ranks give the same count,
  // dtype and memory. Throws InvalidArgument where the ranks do not share one host's memory, or
  // their GPUs none.
  //
  // NVSHMEM's heap: the first such call starts NVSHMEM with the communicator's ranks as its PEs,
  // where the program has not started it with them. A process has one NVSHMEM, and its heap gives
  // memory to all PEs together: later calls are of a communicator of the same ranks. The arrays can
  // be used in any communicator whose ranks are a subset.
  SymmetricArray empty(std::size_t count, DType dtype, const SymmetricOptions& = {});
  template <Element T>
  SymmetricArray empty(std::size_t count, const SymmetricOptions& options = {}) {
    return empty(count, dtype_of<T>, options);
  }

  // Of arrays in GPUs' memory, known by their address: the same part of another rank's array, and
  // what keeps both alive. Throws InvalidArgument where the array is not symmetric, or that rank of
  // this communicator has none.
  ArrayView peer(ConstArrayView array, int rank) const;
  std::shared_ptr<void> owner(ConstArrayView array) const;
  // From here on the array is an ordinary one: collective, and checked to be the same on all ranks
  // (else Mismatch). Its memory goes when the last view of it does.
  void free(ConstArrayView array, const CallOptions& = {});

  // NVSHMEM's team of this communicator's ranks, in their order, for its device functions. NVSHMEM
  // runs already. Collective when it is first asked for. Lives as long as NVSHMEM.
  std::int32_t nvshmem_team(const CallOptions& = {});

 private:
  Held<"SymmetricMemory", std::shared_ptr<world::CommunicatorImpl>> impl_;
};

}  // namespace hocket
