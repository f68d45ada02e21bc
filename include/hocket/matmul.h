// Products of matrices that are distributed over ranks: D = alpha op(A) op(B) + beta C.
//
//     hocket::MatmulOperand rows{.spread = hocket::Slab{0}};
//     hocket::Matmul product(comm, {.m = 4096, .n = 4096, .k = 4096}, rows, rows, rows);
//     product(a, b, d);  // again and again
//
// A BLAS library multiplies within a rank: OpenBLAS, MKL or BLIS if one is found at run time, else
// Eigen. HOCKET_BLAS_LIBRARY chooses. On GPUs it is cuBLAS.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/distribution.h"
#include "hocket/held.h"

namespace hocket {

// The distribution that gives every rank the whole matrix.
struct Replicated {};
// The distribution of a matrix: by rows (Slab{0}), by columns (Slab{1}), one block for each rank,
// block-cyclic, or replicated. Grids have two axes.
using MatrixSpread = std::variant<Slab, BlockNonCyclic, BlockCyclic, Replicated>;
// Returns the extents of one rank's part of a matrix.
// @param spread The distribution.
// @param whole Extents of the whole matrix.
// @param rank The rank, from 0.
// @param ranks Number of ranks.
// @throws InvalidArgument if the distribution and the matrix do not fit.
Extents local_shape(const MatrixSpread& spread, const Extents& whole, int rank, int ranks);

enum class MatrixOp : std::uint8_t { kNone, kTranspose, kConjugateTranspose };
// Selects the data that travels. With kGathered each rank gets the parts of A and B that its part
// of D needs, in panels while it multiplies. With kReduced each rank multiplies its part of the
// inner extent. The sums are reduced to the owners of D, or to all ranks if D is replicated.
// kCheapest selects the form with the lower estimated cost.
enum class MatmulForm : std::uint8_t { kCheapest, kGathered, kReduced };

// The sizes: op(A) is m x k, op(B) is k x n, C and D are m x n.
struct MatmulSize {
  std::size_t m = 0, n = 0, k = 0;
};
// The description of a matrix as it is stored, before `op`. `order` is the memory order of a rank's
// part; kAny means kC.
struct MatmulOperand {
  MatrixSpread spread = Slab{0};
  MatrixOp op = MatrixOp::kNone;
  MemoryOrder order = MemoryOrder::kC;
};
struct MatmulOptions {
  // Type of A and B: kFloat32, kFloat64, kComplex64, kComplex128, or one of kFloat16, kBFloat16,
  // kFloat8E4M3, kFloat8E5M2. Products of the last four are summed as kFloat32.
  DType dtype = DType::kFloat64;
  // Type of B. Absent: the type of A. A and B may use the two different 8-bit types.
  std::optional<DType> dtype_b = {};
  // Type of C and D. Absent: the type of A. With kFloat16 and kBFloat16 it may be kFloat32. With
  // 8-bit types it may be any real type except kFloat64. A value too large for 8 bits becomes the
  // largest number.
  std::optional<DType> result = {};
  MatmulForm form = MatmulForm::kCheapest;
  // Number in this process of the GPU whose memory holds the arrays. Either all ranks have one, or
  // none has. Absent: host memory.
  std::optional<int> gpu = {};
  // folders that are searched for cuBLAS before the system's
  std::vector<std::string> library_folders = {};
  std::optional<Duration> deadline = {};
};
// A real or complex factor. A value; C++ numbers convert to it.
struct MatmulFactor {
  constexpr MatmulFactor(double real_part, double imag_part = 0) noexcept  // NOLINT: as the number
      : real(real_part), imag(imag_part) {}
  template <typename T>
    requires requires(const T& number) {
      { number.real() } -> std::convertible_to<double>;
      { number.imag() } -> std::convertible_to<double>;
    }
  constexpr MatmulFactor(const T& number) noexcept  // NOLINT: as the number
      : real(number.real()), imag(number.imag()) {}

  double real = 0;
  double imag = 0;
};
struct MatmulScale {
  MatmulFactor alpha = 1, beta = 1;
};

// A resource: a product that can be repeated on one communicator, which it keeps alive. One thread
// may use it at a time. Arrays have no gaps, and lie in the memory of the plan.
class [[nodiscard("it is gone, and has multiplied nothing: keep it and call it")]] Matmul {
 public:
  // Makes the plan. Collective: the arguments of all ranks are compared.
  // @param comm The communicator.
  // @param size Sizes of the matrices.
  // @param a,b,d The matrices. C is distributed as D is.
  // @param options See MatmulOptions; all ranks pass the same.
  // @throws InvalidArgument on all ranks if they differ or do not fit together.
  Matmul(Communicator& comm,
         const MatmulSize& size,
         const MatmulOperand& a,
         const MatmulOperand& b,
         const MatmulOperand& d,
         const MatmulOptions& options = {});
  Matmul(Matmul&&) noexcept;
  Matmul& operator=(Matmul&&) noexcept;
  ~Matmul();

  // Computes D = alpha op(A) op(B). Collective. After an error D is undefined. Arrays that cuBLASLt
  // multiplies must begin at multiples of 16 bytes.
  // @param a,b This rank's parts of A and B.
  // @param d This rank's part of D.
  // @param alpha The factor, the same on all ranks.
  // @param stream On GPUs, the stream. Absent: the legacy default stream.
  // @throws InvalidArgument on all ranks if an array does not fit on one of them, or plans or
  //   factors differ. On GPUs such a difference is a Mismatch.
  //
  // On GPUs the call enqueues everything on `stream` and returns. It cannot be captured into a
  // graph. If only one rank refuses, ranks whose GPUs have started get Aborted.
  void operator()(ConstArrayView a,
                  ConstArrayView b,
                  ArrayView d,
                  MatmulFactor alpha = 1,
                  std::optional<StreamRef> stream = {});
  // Computes D = alpha op(A) op(B) + beta C. `c` is distributed as D is, and may be D itself. If D
  // is replicated, C must be the same on all ranks.
  void operator()(ConstArrayView a,
                  ConstArrayView b,
                  ConstArrayView c,
                  detail::TypedArrayView d,
                  const MatmulScale& scale = {},
                  std::optional<StreamRef> stream = {});

  // Returns the library that multiplies on this rank: "OpenBLAS 0.3.29", "Eigen 3.4.0", "cuBLAS
  // 13.1.0". It is "cuBLASLt 13.1.0" if 8-bit factors are multiplied directly.
  //
  // 8-bit factors are widened first in three cases. A or B does not lie along the inner extent, a
  // part's length is not a multiple of 16, or the GPU does not support them.
  const std::string& library() const;
  // Returns the form that was chosen, never kCheapest.
  MatmulForm form() const;
  // Returns whether ranks read each other's memory instead of sending messages.
  bool is_shared() const;

 private:
  struct Plan;
  Held<"Matmul", std::unique_ptr<Plan>> plan_;
};

}  // namespace hocket
