// Symmetric memory: arrays of one shape on every rank, each reachable from all.
//
// Collectives on symmetric arrays copy nothing: ranks read and write each other's memory directly.
// After an error the contents are undefined.
#pragma once

#include <cstddef>
#include <memory>

#include "hocket/array_view.h"
#include "hocket/communicator.h"

namespace hocket {

namespace symmetric {
class Block;
}

// A resource: this rank's part of a symmetric array and the views of the others'. The memory lives
// until the last rank has released it. Cheap to move; any thread.
class SymmetricArray {
 public:
  explicit SymmetricArray(std::shared_ptr<symmetric::Block> block) noexcept;

  ArrayView local() const noexcept;
  operator ArrayView() const noexcept { return local(); }
  operator ConstArrayView() const noexcept { return local(); }
  // The array of another rank of the communicator that made it, as mapped here. What it holds is
  // defined only between calls that order the ranks (a barrier, a collective).
  ArrayView peer(int rank) const;

  std::size_t count() const noexcept { return local().count(); }
  DType dtype() const noexcept { return local().dtype(); }
  // 64-byte aligned, at least.
  template <Element T>
  T* data() const noexcept {
    return static_cast<T*>(local().data());
  }
  // Gives this rank's hold up; views must not be used afterwards.
  void free() noexcept { block_.reset(); }
  // Keeps the memory alive, for views that travel (NumPy arrays).
  std::shared_ptr<void> owner() const noexcept;

 private:
  std::shared_ptr<symmetric::Block> block_;
};

// Makes symmetric arrays of one communicator.
class SymmetricMemory {
 public:
  explicit SymmetricMemory(std::shared_ptr<comm::CommunicatorImpl> impl) noexcept;

  // A zeroed array of `count` elements on every rank. Collective: all ranks give the same count and
  // dtype. Throws InvalidArgument where the ranks do not share one host's memory.
  SymmetricArray empty(std::size_t count, DType dtype, const CallOptions& = {});
  template <Element T>
  SymmetricArray empty(std::size_t count, const CallOptions& options = {}) {
    return empty(count, dtype_of<T>, options);
  }

 private:
  std::shared_ptr<comm::CommunicatorImpl> impl_;
};

}  // namespace hocket
