#include "arrays/matmul/float8.h"

#include "arrays/matmul/problem.h"

namespace hocket::matmul {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // required by products on Hopper

// A resource: the description of one product. Empty if it could not be made.
class Description {
 public:
  explicit Description(const Cublas& library) : library_(library) {
    status_ = library.lt_describe(
        &description_, cublas::ComputeType::kFloat32, cublas::DataType::kFloat32);
    if (status_ != cublas::Status::kSuccess) return;
    const auto transposed = static_cast<int>(cublas::Transposition::kTranspose);
    status_ = library.lt_set(
        description_, cublas::Attribute::kLeftTransposition, &transposed, sizeof transposed);
  }
  ~Description() {
    if (description_ != nullptr) library_.lt_forget(description_);
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;
  cublas::Status status() const noexcept { return status_; }
  cublas::Description get() const noexcept { return description_; }

 private:
  const Cublas& library_;
  cublas::Description description_ = nullptr;
  cublas::Status status_{};
};

class MatrixLayout {
 public:
  MatrixLayout(
      const Cublas& library, DType dtype, std::size_t rows, std::size_t columns, std::size_t stride)
      : library_(library) {
    status_ =
        library.lt_lay(&layout_, type_of(dtype), rows, columns, static_cast<std::int64_t>(stride));
  }
  ~MatrixLayout() {
    if (layout_ != nullptr) library_.lt_forget_layout(layout_);
  }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  cublas::Status status() const noexcept { return status_; }
  cublas::Layout get() const noexcept { return layout_; }

 private:
  const Cublas& library_;
  cublas::Layout layout_ = nullptr;
  cublas::Status status_{};
};

}  // namespace

cublas::DataType type_of(DType dtype) {
  if (dtype == DType::kFloat8E4M3) return cublas::DataType::kFloat8E4M3;
  if (dtype == DType::kFloat8E5M2) return cublas::DataType::kFloat8E5M2;
  if (dtype == DType::kFloat16) return cublas::DataType::kFloat16;
  if (dtype == DType::kBFloat16) return cublas::DataType::kBFloat16;
  if (dtype == DType::kFloat32) return cublas::DataType::kFloat32;
  if (dtype == DType::kFloat64) return cublas::DataType::kFloat64;
  if (dtype == DType::kComplex64) return cublas::DataType::kComplex64;
  return cublas::DataType::kComplex128;
}

bool Float8Products::can_multiply(DType left, DType right, cuda::Stream stream) {
  if (can_) return *can_;
  can_ = false;
  if (!handle_.library().has_lt()) return false;
  // Test by a product of zeros.
  constexpr std::size_t kSide = kFloat8Unit, kFactor = kSide * kSide;
  constexpr std::size_t kBytes = kFactor * (2 + sizeof(float));
  workspace_.emplace(device_, kWorkspaceBytes);
  const cuda::DeviceBuffer room(device_, kBytes);
  auto* const at = static_cast<std::byte*>(room.data());
  const cuda::Driver& driver = device_->driver();
  const auto address = reinterpret_cast<cuda::DevicePtr>(at);
  cuda::check(driver, driver.memset_d8_async(address, 0, kBytes, stream), "clear a product");
  const cublas::Status status = try_multiply({.dtype = left,
                                              .right_dtype = right,
                                              .target_dtype = DType::kFloat32,
                                              .m = kSide,
                                              .n = kSide,
                                              .k = kSide,
                                              .left = {at, kSide},
                                              .right = {at + kFactor, kSide},
                                              .left_stored = Stored::kTransposed,
                                              .target = {at + 2 * kFactor, kSide}},
                                             stream);
  cuda::check(driver, driver.stream_synchronize(stream), "multiply");
  can_ = status == cublas::Status::kSuccess;
  if (!*can_) workspace_.reset();
  return *can_;
}

void Float8Products::multiply(const LocalProduct& product, cuda::Stream stream) {
  handle_.library().check(try_multiply(product, stream), "multiply");
}

cublas::Status Float8Products::try_multiply(const LocalProduct& p, cuda::Stream stream) const {
  const Cublas& library = handle_.library();
  const Description description(library);
  const MatrixLayout left(library, p.dtype, p.k, p.m, p.left.stride);
  const MatrixLayout right(library, p.right_dtype, p.k, p.n, p.right.stride);
  const MatrixLayout target(library, p.target_dtype, p.m, p.n, p.target.stride);
  for (const cublas::Status status :
       {description.status(), left.status(), right.status(), target.status()}) {
    if (status != cublas::Status::kSuccess) return status;
  }
  const auto alpha = static_cast<float>(p.alpha.real()), beta = static_cast<float>(p.beta.real());
  return library.lt_multiply(handle_.get(),
                             description.get(),
                             &alpha,
                             p.left.at,
                             left.get(),
                             p.right.at,
                             right.get(),
                             &beta,
                             p.target.at,
                             target.get(),
                             p.target.at,
                             target.get(),
                             nullptr,
                             workspace_->data(),
                             workspace_->bytes(),
                             stream);
}

}  // namespace hocket::matmul
