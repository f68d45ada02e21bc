// Products of matrices that are spread over ranks: D = alpha op(A) op(B) + beta C.
//
//     hocket::MatmulOperand rows{.spread = hocket::Slab{0}};
//     hocket::Matmul product(comm, {.m = 4096, .n = 4096, .k = 4096}, rows, rows, rows);
//     product(a, b, d);  // again and again
//
// The products within a rank are a BLAS's: OpenBLAS, MKL or BLIS where one is found at run time,
// else Eigen's. HOCKET_BLAS_LIBRARY chooses. On GPUs they are cuBLAS's.
#pragma once

#include <complex>
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

// Every rank has the whole.
struct Replicated {};
// How a matrix is spread: by rows (Slab{0}), by columns (Slab{1}), in one block a rank, in blocks
// that are dealt out in turn, or not at all. Grids have two axes.
using MatrixSpread = std::variant<Slab, BlockNonCyclic, BlockCyclic, Replicated>;
// Of a rank's part of a matrix of shape `whole`. Throws InvalidArgument where the two do not fit.
Extents local_shape(const MatrixSpread& spread, const Extents& whole, int rank, int ranks);

enum class MatrixOp : std::uint8_t { kNone, kTranspose, kConjugateTranspose };
// What travels. kGathered: each rank gets of A and B what its part of D needs, in panels while it
// multiplies. kReduced: each rank multiplies its part of the inner extent, and the sums are reduced
// to where D wants them, or to all where D is replicated. kCheapest: whichever costs less.
enum class MatmulForm : std::uint8_t { kCheapest, kGathered, kReduced };

// op(A) is m x k, op(B) is k x n, C and D are m x n.
struct MatmulSize {
  std::size_t m = 0, n = 0, k = 0;
};
// A matrix as it is stored, before `op`. `order` says how a rank's part lies; kAny is kC.
struct MatmulOperand {
  MatrixSpread spread = Slab{0};
  MatrixOp op = MatrixOp::kNone;
  MemoryOrder order = MemoryOrder::kC;
};
struct MatmulOptions {
  // Of A and B: kFloat32, kFloat64, kComplex64, kComplex128; kFloat16, kBFloat16, kFloat8E4M3 and
  // kFloat8E5M2, whose products are summed as kFloat32.
  DType dtype = DType::kFloat64;
  // Of B. Absent: the same. A and B of 8 bits may be of the two kinds.
  std::optional<DType> dtype_b = {};
  // Of C and D. Absent: as A's. For kFloat16 and kBFloat16 also kFloat32; for those of 8 bits
  // any type of real numbers but kFloat64. What is too large for 8 bits becomes the largest number.
  std::optional<DType> result = {};
  MatmulForm form = MatmulForm::kCheapest;
  // The GPU, by its number in this process, whose memory the arrays lie in. All ranks have one, or
  // none has: then they lie in the host's memory.
  std::optional<int> gpu = {};
  std::vector<std::string> library_folders = {};  // where to look for cuBLAS, before the system's
  std::optional<Duration> deadline = {};
};
struct MatmulScale {
  std::complex<double> alpha = 1, beta = 1;
};

// A resource: a product to be made again and again, on one communicator, which it keeps alive;
// one thread. Arrays are without gaps, in the plan's memory.
class [[nodiscard("it is gone, and has multiplied nothing: keep it and call it")]] Matmul {
 public:
  // Collective: all that is given is compared. Throws InvalidArgument, the same on all ranks, where
  // what they give differs, or does not fit together.
  Matmul(Communicator& comm,
         const MatmulSize& size,
         const MatmulOperand& a,
         const MatmulOperand& b,
         const MatmulOperand& d,
         const MatmulOptions& options = {});
  Matmul(Matmul&&) noexcept;
  Matmul& operator=(Matmul&&) noexcept;
  ~Matmul();

  // Collective. D = alpha op(A) op(B). Throws InvalidArgument on all ranks where an array does not
  // fit on one of them, or ranks execute different plans or give different scales; on GPUs the
  // latter is Mismatch.
  // After an error D is undefined. Arrays that cuBLASLt multiplies begin at multiples of 16 bytes.
  //
  // On GPUs all is put on `stream`, by default the legacy default stream, and goes on there; it
  // cannot be captured into a graph. What one rank alone refuses is Aborted on those whose GPUs had
  // begun, as of any call on GPUs.
  void operator()(ConstArrayView a,
                  ConstArrayView b,
                  ArrayView d,
                  std::complex<double> alpha = 1,
                  std::optional<StreamRef> stream = {});
  // D = alpha op(A) op(B) + beta C. `c` is spread as D is, and may be D itself. Where D is
  // replicated, C is the same on all ranks.
  void operator()(ConstArrayView a,
                  ConstArrayView b,
                  ConstArrayView c,
                  detail::TypedArrayView d,
                  const MatmulScale& scale = {},
                  std::optional<StreamRef> stream = {});

  // What multiplies within this rank: "OpenBLAS 0.3.29", "Eigen 3.4.0", "cuBLAS 13.1.0"; "cuBLASLt
  // 13.1.0" where factors of 8 bits are multiplied as they are. Elsewhere they are widened first:
  // where A or B does not lie along the inner extent, a part is no multiple of 16 long, or the GPU
  // does not know them.
  const std::string& library() const;
  // Never kCheapest.
  MatmulForm form() const;
  // Whether ranks read each other's memory, instead of sending messages.
  bool is_shared() const;

 private:
  struct Plan;
  Held<"Matmul", std::unique_ptr<Plan>> plan_;
};

}  // namespace hocket
