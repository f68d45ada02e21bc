// The local part of a product on one rank: memory, copies, and products of local data. It runs on
// the host, or as work of a GPU's stream.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/matmul/blas.h"
#include "arrays/matmul/blocks.h"
#include "foundation/cuda/context.h"
#include "hocket/communicator.h"

namespace hocket::matmul {

// A resource: uninitialized memory. Movable; empty if default-constructed.
class Room {
 public:
  Room() = default;
  Room(std::shared_ptr<void> owner, std::byte* data, std::size_t bytes)
      : owner_(std::move(owner)), data_(data), bytes_(bytes) {}
  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::shared_ptr<void> owner_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Rows and columns to copy. A value; `table` is made by Local::prepare.
struct Patch {
  std::vector<Run> rows, columns;
  Room table = {};

  bool is_one_piece() const noexcept { return rows.size() == 1 && columns.size() == 1; }
};

// A resource of one plan, used by one thread. Its exceptions are DeviceErrors.
class Local {
 public:
  virtual ~Local() = default;
  // The device whose context is current during all calls; null on the host.
  virtual const cuda::DeviceContext* device() const noexcept = 0;

  // The library that multiplies, with its version.
  virtual const std::string& library() const noexcept = 0;
  virtual MemoryKind memory() const noexcept = 0;
  // The type in which factors of a dtype are multiplied: the dtype itself, or a type that holds all
  // its numbers.
  virtual DType factor_dtype(DType dtype) const noexcept = 0;
  // True if factors of these two 8-bit dtypes can be multiplied without conversion. The left factor
  // must then be stored transposed, and the right factor plain. Extents along m and k, strides and
  // addresses must be multiples of kFloat8Unit.
  virtual bool multiplies(DType left, DType right) = 0;
  // True if multiplying data in another rank's memory is as quick as copying it first.
  virtual bool multiplies_afar() const noexcept = 0;
  // Number of elements of the inner extent that are gathered at once: enough for the library to be
  // quick, and few compared to the matrices.
  virtual std::size_t panel() const noexcept = 0;
  // Bytes of a panel that ranks send as messages.
  virtual std::size_t panel_bytes() const noexcept = 0;

  virtual Room room(std::size_t bytes) const = 0;
  virtual ArrayView view(std::byte* at, std::size_t count, DType dtype) const = 0;
  // Call it before a patch's first copy.
  virtual void prepare(Patch& patch, Change change) const = 0;

  // Enclose each product. On a GPU, the calls between `begin` and `end` are put on the stream,
  // after the product before. Throws InvalidArgument for an unsuitable stream.
  virtual void begin(std::optional<StreamRef> stream) = 0;
  virtual void end() = 0;

  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy(const Patch& patch,
                    Columns<const std::byte> from,
                    Columns<std::byte> to,
                    DType dtype,
                    Change change) = 0;
  virtual void clear(std::byte* at, std::size_t bytes) = 0;
  virtual void multiply(const LocalProduct& product) = 0;
  // See matmul::finish.
  virtual void finish(const Finish& finish) = 0;

  // Number of rooms that are filled alternately. It is more than one if copies overlap with
  // products. Copies between begin_fill and end_fill come after the last product that used the
  // room, and before the product of the next begin_use.
  virtual std::size_t rooms() const noexcept = 0;
  virtual void begin_fill(std::size_t room) = 0;
  virtual void end_fill(std::size_t room) = 0;
  virtual void begin_use(std::size_t room) = 0;
  virtual void end_use(std::size_t room) = 0;

  // Returns the stream of calls that overlap with products. They come after all work that is on the
  // product's stream so far. Absent on the host.
  virtual std::optional<StreamRef> aside() = 0;
  // Makes later work on the product's stream wait for the call.
  virtual void join(Work& work) = 0;
};

// Both throw InvalidArgument if the library is missing. The host uses the BLAS that
// HOCKET_BLAS_LIBRARY selects. A GPU uses cuBLAS, which is searched in `folders` first.
std::unique_ptr<Local> host_local();
std::unique_ptr<Local> gpu_local(std::shared_ptr<const cuda::DeviceContext> device,
                                 const std::vector<std::string>& folders);

}  // namespace hocket::matmul
