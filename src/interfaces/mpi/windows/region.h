// Memory that all ranks of a window have mapped. It belongs to one host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "interfaces/mpi/objects.h"

namespace hocket::mpi {

// A resource: the mapping of this rank. The memory has no name, so nothing remains of it after the
// last process.
class Region {
 public:
  Region() = default;
  // Maps zeroed memory on all ranks. Collective. Throws MPI_ERR_NO_MEM on all of them if it fails
  // on one.
  Region(Comm& comm, std::int64_t bytes);
  Region(Region&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Region();

  std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hocket::mpi
