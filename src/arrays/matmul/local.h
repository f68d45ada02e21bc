// What a rank does alone for a product: memory, copies, and products of what it has. On the host,
// or as work of a GPU's stream.
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

// A resource: memory that is not set to anything. Movable; empty when made by default.
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

// Rows and columns that are copied. A value; `table` is what Local::prepare made of it.
struct Patch {
  std::vector<Run> rows, columns;
  Room table = {};

  bool is_one_piece() const noexcept { return rows.size() == 1 && columns.size() == 1; }
};

// A resource of one plan; one thread. What throws, throws DeviceError.
class Local {
 public:
  virtual ~Local() = default;
  // Whose context is current while anything here is called; null on the host.
  virtual const cuda::DeviceContext* device() const noexcept = 0;

  // What multiplies, with its version.
  virtual const std::string& library() const noexcept = 0;
  virtual MemoryKind memory() const noexcept = 0;
  // What factors of a dtype are multiplied as, however they lie: that, or what holds all its
  // numbers.
  virtual DType factor_dtype(DType dtype) const noexcept = 0;
  // Whether factors of these two dtypes of 8 bits can be multiplied as they are. Then the left one
  // is stored transposed and the right one plain, extents along m and k and strides are multiples
  // of kFloat8Unit, and so are all addresses.
  virtual bool multiplies(DType left, DType right) = 0;
  // Whether it is as well to multiply what lies in another rank's memory as to copy it first.
  virtual bool multiplies_afar() const noexcept = 0;
  // Elements of the inner extent that are put together at once: enough for the library to be quick,
  // and few beside the matrices.
  virtual std::size_t panel() const noexcept = 0;
  // Bytes of a panel that travels.
  virtual std::size_t panel_bytes() const noexcept = 0;

  virtual Room room(std::size_t bytes) const = 0;
  virtual ArrayView view(std::byte* at, std::size_t count, DType dtype) const = 0;
  // Before a patch's first copy.
  virtual void prepare(Patch& patch, Change change) const = 0;

  // Around each product. On a GPU what is between is put on the stream, after the product before.
  // Throws InvalidArgument for a stream that does not fit.
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

  // Rooms that are filled in turn: more than one where copies go on beside products. What is copied
  // between begin_fill and end_fill comes after the product that used the room last, and before
  // that of the next begin_use.
  virtual std::size_t rooms() const noexcept = 0;
  virtual void begin_fill(std::size_t room) = 0;
  virtual void end_fill(std::size_t room) = 0;
  virtual void begin_use(std::size_t room) = 0;
  virtual void end_use(std::size_t room) = 0;

  // Where calls go on beside the products: they come after all that was put on the stream so far.
  virtual std::optional<StreamRef> aside() = 0;
  // What is put on the stream from here on comes after the call.
  virtual void join(Work& work) = 0;
};

// Both throw InvalidArgument where the library is not there. On the host it is the BLAS that
// HOCKET_BLAS_LIBRARY says, on a GPU cuBLAS, which is looked for in the folders first.
std::unique_ptr<Local> host_local();
std::unique_ptr<Local> gpu_local(std::shared_ptr<const cuda::DeviceContext> device,
                                 const std::vector<std::string>& folders);

}  // namespace hocket::matmul
