// Symmetric memory: arrays of one size on every rank, in the memory of one host or of its GPUs.
// Every rank can reach all of them.
//
// Collectives on symmetric arrays need no staging: ranks read and write each other's memory
// directly. Only all_to_all and reduce_scatter in place use temporary memory. After an error the
// contents are undefined.
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

// The owner of symmetric memory on GPUs.
enum class SymmetricHeap : std::uint8_t {
  kHocket,
  // NVSHMEM's heap, if that library is available. NVSHMEM's device functions accept its addresses.
  kNvshmem,
};

// Options of a symmetric array. If `memory` is absent, it is GPU memory for NVSHMEM's heap and
// after the communicator's first call on GPUs, and else host memory.
struct SymmetricOptions {
  std::optional<MemoryKind> memory = {};
  SymmetricHeap heap = SymmetricHeap::kHocket;
  std::optional<Duration> deadline = {};
};

// A resource: this rank's part of a symmetric array, and the views of the other parts. The memory
// lives until the last rank has released it. Memory of a GPU is released only when that GPU is
// idle. It is cheap to move. Any thread may use it.
class [[nodiscard("its memory goes with it: keep it")]] SymmetricArray {
 public:
  explicit SymmetricArray(std::shared_ptr<symmetric::SymmetricBlock> block) noexcept;

  // Returns the view of this rank's part.
  ArrayView local() const& noexcept;
  operator ArrayView() const& noexcept { return local(); }
  operator ConstArrayView() const& noexcept { return local(); }
  ArrayView local() const&& = delete;          // hocket: this is a temporary: give it a name
  operator ArrayView() const&& = delete;       // hocket: this is a temporary: give it a name
  operator ConstArrayView() const&& = delete;  // hocket: this is a temporary: give it a name
  // Returns the view of another rank's part, as it is mapped here. Its contents are defined only
  // between calls that order the ranks, such as a barrier or a collective.
  // @param rank A rank of the communicator that made the array.
  // @throws InvalidArgument if that part is not mapped here, which can happen with NVSHMEM's heap.
  ArrayView peer(int rank) const;

  std::size_t count() const noexcept { return local().count(); }
  DType dtype() const noexcept { return local().dtype(); }
  MemoryKind memory() const noexcept { return local().memory(); }
  // Returns the address of this rank's part, aligned to at least 64 bytes.
  template <Element T>
  T* data() const& noexcept {
    return static_cast<T*>(local().data());
  }
  template <Element T>
  T* data() const&& = delete;  // hocket: this is a temporary: give it a name
  // Releases this rank's hold. Its views must not be used afterwards.
  void free() noexcept { block_.reset(); }
  // Returns an owner of the memory, for views that outlive this object (NumPy arrays).
  std::shared_ptr<void> owner() const noexcept;

 private:
  std::shared_ptr<symmetric::SymmetricBlock> block_;
};

// The allocator of symmetric arrays for one communicator. Threads may use it as they may use that
// communicator.
class SymmetricMemory {
 public:
  explicit SymmetricMemory(std::shared_ptr<world::CommunicatorImpl> impl) noexcept;

  // Makes a zeroed array on every rank. Collective.
  // @param count Number of elements on each rank.
  // @param dtype Type of the elements.
  // @return This rank's part. All ranks pass the same arguments.
  // @throws InvalidArgument if the ranks do not share one host's memory, or their GPUs cannot reach
  //   each other.
  //
  // With NVSHMEM's heap, the first call starts NVSHMEM, unless the program has started it. The
  // communicator's ranks become its PEs. A process has one NVSHMEM, whose heap allocates for all
  // PEs together. So later calls need a communicator of the same ranks. The arrays can be used in
  // any communicator of a subset.
  SymmetricArray empty(std::size_t count, DType dtype, const SymmetricOptions& = {});
  template <Element T>
  SymmetricArray empty(std::size_t count, const SymmetricOptions& options = {}) {
    return empty(count, dtype_of<T>, options);
  }

  // The next two functions take an array in a GPU's memory that is known only by its address.
  // `peer` returns the same part of another rank's array. `owner` returns an owner that keeps both
  // arrays alive.
  // @throws InvalidArgument if the array is not symmetric, or that rank of this communicator has no
  //   part.
  ArrayView peer(ConstArrayView array, int rank) const;
  std::shared_ptr<void> owner(ConstArrayView array) const;
  // Turns the array into an ordinary one. Its memory is released with the last view of it.
  // Collective.
  // @throws Mismatch if the ranks pass different arrays.
  void free(ConstArrayView array, const CallOptions& = {});

  // Returns NVSHMEM's team of this communicator's ranks, in their order, for its device functions.
  // NVSHMEM must be running. The first call is collective. The team lives as long as NVSHMEM.
  std::int32_t nvshmem_team(const CallOptions& = {});

 private:
  Held<"SymmetricMemory", std::shared_ptr<world::CommunicatorImpl>> impl_;
};

}  // namespace hocket
