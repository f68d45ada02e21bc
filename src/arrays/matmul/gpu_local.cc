#include <algorithm>
#include <array>
#include <complex>

#include "arrays/matmul/cublas.h"
#include "arrays/matmul/float8.h"
#include "arrays/matmul/gpu_kernels.h"
#include "arrays/matmul/local.h"
#include "arrays/matmul/problem.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"
#include "hocket/gpu.h"

namespace hocket::matmul {
namespace {

cublas::Transposition operation_of(Stored stored) {
  return stored == Stored::kPlain        ? cublas::Transposition::kNone
         : stored == Stored::kTransposed ? cublas::Transposition::kTranspose
                                         : cublas::Transposition::kConjugateTranspose;
}

// Convert extents and strides to int. They fit, because the matrix's extents do. A stride is at
// least 1.
int to_int(std::size_t value) { return static_cast<int>(value); }
int stride_of(std::size_t stride, std::size_t rows) {
  return to_int(std::max({stride, rows, std::size_t{1}}));
}

// A factor such as alpha, in the type that cuBLAS reads for the dtype of the sums.
class Scalar {
 public:
  Scalar(DType dtype, std::complex<double> value) : complex_double_(value), complex_float_(value) {
    double_ = value.real();
    float_ = static_cast<float>(double_);
    at_ = dtype == DType::kFloat64      ? static_cast<const void*>(&double_)
          : dtype == DType::kComplex64  ? static_cast<const void*>(&complex_float_)
          : dtype == DType::kComplex128 ? static_cast<const void*>(&complex_double_)
                                        : static_cast<const void*>(&float_);
  }
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;
  const void* get() const noexcept { return at_; }

 private:
  std::complex<double> complex_double_;
  std::complex<float> complex_float_;
  double double_;
  float float_;
  const void* at_;
};

class GpuLocal final : public Local {
 public:
  GpuLocal(std::shared_ptr<const cuda::DeviceContext> device, std::shared_ptr<const Cublas> cublas)
      : device_(std::move(device)),
        driver_(device_->driver()),
        handle_(std::move(cublas)),
        name_(handle_.name()),
        kernels_(device_),
        float8_(handle_, device_),
        aside_(device_),
        ready_(device_),
        end_(device_),
        slots_{Slot(device_), Slot(device_)} {}

  const cuda::DeviceContext* device() const noexcept override { return device_.get(); }
  const std::string& library() const noexcept override { return name_; }
  MemoryKind memory() const noexcept override { return MemoryKind::kCuda; }
  // float16 has all numbers of both 8-bit types.
  DType factor_dtype(DType dtype) const noexcept override {
    return is_float8(dtype) ? DType::kFloat16 : dtype;
  }
  bool multiplies(DType left, DType right) override {
    return float8_.can_multiply(left, right, aside_.get());
  }
  bool multiplies_afar() const noexcept override { return false; }
  std::size_t panel() const noexcept override { return 4096; }
  std::size_t panel_bytes() const noexcept override { return std::size_t{64} << 20; }

  Room room(std::size_t bytes) const override {
    if (bytes == 0) return {};
    auto buffer = std::make_shared<cuda::DeviceBuffer>(device_, bytes);
    auto* const data = static_cast<std::byte*>(buffer->data());
    return {std::move(buffer), data, bytes};
  }
  ArrayView view(std::byte* at, std::size_t count, DType dtype) const override {
    return {at, count, dtype, MemoryKind::kCuda, device_->ordinal()};
  }

  void prepare(Patch& patch, Change change) const override {
    if (patch.is_one_piece() && change == Change::kNone) return;
    const std::vector<std::uint32_t> table = table_of(patch.rows, patch.columns);
    if (table.empty()) return;
    const std::size_t bytes = table.size() * sizeof(table[0]);
    patch.table = room(bytes);
    const cuda::OutsideCapture outside(driver_);
    cuda::copy(driver_, patch.table.data(), table.data(), bytes, aside_.get());
    cuda::check(driver_, driver_.stream_synchronize(aside_.get()), "copy a table to the GPU");
  }

  void begin(std::optional<StreamRef> stream) override {
    stream_ = stream.value_or(StreamRef()).handle();
    if (cuda::capture_of(driver_, stream_) != cuda::Capture::kNone) {
      throw InvalidArgument("stream is being captured into a graph, which products cannot be");
    }
    // Products share the plan's memory. So each product waits for the product before it, also on
    // another stream.
    if (has_run_) end_.hold(stream_);
    check(handle_.library().set_stream(handle_.get(), stream_), "use the stream");
    copies_ = stream_;
    for (Slot& slot : slots_) slot.is_used = false;
  }
  void end() override {
    end_.record(stream_);
    has_run_ = true;
  }

  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) cuda::copy(driver_, to, from, bytes, copies_);
  }
  void copy(const Patch& patch,
            Columns<const std::byte> from,
            Columns<std::byte> to,
            DType dtype,
            Change change) override {
    if (patch.table.bytes() > 0) {
      const std::size_t rows = total(patch.rows), columns = total(patch.columns);
      return kernels_.copy(patch.table.data(), rows, columns, from, to, dtype, change, copies_);
    }
    if (!patch.is_one_piece()) return;  // empty
    const Run &rows = patch.rows[0], &columns = patch.columns[0];
    const std::size_t element = size_of(dtype);
    from.at += (rows.from + columns.from * from.stride) * element;
    to.at += (rows.to + columns.to * to.stride) * element;
    const std::size_t width = rows.length * element;
    if (columns.length == 1 || (rows.length == from.stride && rows.length == to.stride)) {
      return copy(to.at, from.at, width * columns.length);
    }
    cuda::Copy3d planes{.width_bytes = width, .height = columns.length, .depth = 1};
    planes.from.device = reinterpret_cast<cuda::DevicePtr>(from.at);
    planes.from.pitch = from.stride * element;
    planes.to.device = reinterpret_cast<cuda::DevicePtr>(to.at);
    planes.to.pitch = to.stride * element;
    planes.from.height = planes.to.height = columns.length;
    cuda::check(driver_, driver_.memcpy_3d_async(&planes, copies_), "copy a part of a matrix");
  }
  void clear(std::byte* at, std::size_t bytes) override {
    if (bytes == 0) return;
    const auto to = reinterpret_cast<cuda::DevicePtr>(at);
    cuda::check(driver_, driver_.memset_d8_async(to, 0, bytes, stream_), "clear sums");
  }

  void multiply(const LocalProduct& p) override {
    if (p.m == 0 || p.n == 0) return;
    const Scalar alpha(p.dtype, p.alpha), beta(p.dtype, p.beta);
    if (p.k == 0) {
      if (p.beta == 0.0) return clear(p.target.at, p.m * p.n * size_of(p.target_dtype));
      const Scalar none(p.dtype, 0);
      return add(
          p.target_dtype, p.m, p.n, none, as_const(p.target), beta, as_const(p.target), p.target);
    }
    if (is_float8(p.dtype)) return float8_.multiply(p, stream_);
    const bool is_double = p.dtype == DType::kFloat64 || p.dtype == DType::kComplex128;
    const auto compute = is_double ? cublas::ComputeType::kFloat64 : cublas::ComputeType::kFloat32;
    const bool is_left_plain = p.left_stored == Stored::kPlain;
    const bool is_right_plain = p.right_stored == Stored::kPlain;
    check(handle_.library().gemm(handle_.get(),
                                 operation_of(p.left_stored),
                                 operation_of(p.right_stored),
                                 to_int(p.m),
                                 to_int(p.n),
                                 to_int(p.k),
                                 alpha.get(),
                                 p.left.at,
                                 type_of(p.dtype),
                                 stride_of(p.left.stride, is_left_plain ? p.m : p.k),
                                 p.right.at,
                                 type_of(p.dtype),
                                 stride_of(p.right.stride, is_right_plain ? p.k : p.n),
                                 beta.get(),
                                 p.target.at,
                                 type_of(p.target_dtype),
                                 stride_of(p.target.stride, p.m),
                                 compute,
                                 cublas::kDefaultAlgorithm),
          "multiply");
  }
  void finish(const Finish& f) override {
    if (f.rows == 0 || f.columns == 0) return;
    if (f.dtype != f.sum_dtype) return kernels_.finish(f, stream_);
    const bool adds = f.added.at != nullptr;
    const Scalar alpha(f.dtype, f.alpha), beta(f.dtype, adds ? f.beta : 0);
    add(f.dtype,
        f.rows,
        f.columns,
        alpha,
        f.sum,
        beta,
        adds ? f.added : as_const(f.target),
        f.target);
  }

  std::size_t rooms() const noexcept override { return slots_.size(); }
  void begin_fill(std::size_t room) override {
    Slot& slot = slots_[room];
    if (!slot.is_used) slot.used.record(stream_);
    slot.used.hold(aside_.get());
    copies_ = aside_.get();
  }
  void end_fill(std::size_t room) override {
    slots_[room].filled.record(aside_.get());
    copies_ = stream_;
  }
  void begin_use(std::size_t room) override { slots_[room].filled.hold(stream_); }
  void end_use(std::size_t room) override {
    slots_[room].used.record(stream_);
    slots_[room].is_used = true;
  }

  std::optional<StreamRef> aside() override {
    ready_.record(stream_);
    ready_.hold(aside_.get());
    return StreamRef(aside_.get());
  }
  void join(Work& work) override { work.wait(StreamRef(stream_)); }

 private:
  struct Slot {
    explicit Slot(const std::shared_ptr<const cuda::DeviceContext>& device)
        : filled(device), used(device) {}
    cuda::OwnedEvent filled, used;
    bool is_used = false;  // in this product
  };

  static Columns<const std::byte> as_const(Columns<std::byte> columns) {
    return {columns.at, columns.stride};
  }
  void check(cublas::Status status, const char* what) const {
    handle_.library().check(status, what);
  }

  // Computes target = alpha a + beta b. `a` or `b` may be the target.
  void add(DType dtype,
           std::size_t rows,
           std::size_t columns,
           const Scalar& alpha,
           Columns<const std::byte> a,
           const Scalar& beta,
           Columns<const std::byte> b,
           Columns<std::byte> target) const {
    const Cublas& library = handle_.library();
    const cublas::Geam geam = dtype == DType::kFloat32     ? library.geam_float
                              : dtype == DType::kFloat64   ? library.geam_double
                              : dtype == DType::kComplex64 ? library.geam_complex_float
                                                           : library.geam_complex_double;
    check(geam(handle_.get(),
               cublas::Transposition::kNone,
               cublas::Transposition::kNone,
               to_int(rows),
               to_int(columns),
               alpha.get(),
               a.at,
               stride_of(a.stride, rows),
               beta.get(),
               b.at,
               stride_of(b.stride, rows),
               target.at,
               stride_of(target.stride, rows)),
          "add");
  }

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const cuda::Driver& driver_;
  const CublasHandle handle_;
  const std::string name_;
  GpuKernels kernels_;
  Float8Products float8_;
  const cuda::OwnedStream aside_;
  cuda::OwnedEvent ready_, end_;
  std::array<Slot, 2> slots_;
  cuda::Stream stream_ = nullptr, copies_ = nullptr;  // of the product in progress
  bool has_run_ = false;
};

}  // namespace

std::unique_ptr<Local> gpu_local(std::shared_ptr<const cuda::DeviceContext> device,
                                 const std::vector<std::string>& folders) {
  return std::make_unique<GpuLocal>(std::move(device), Cublas::find(folders));
}

}  // namespace hocket::matmul
