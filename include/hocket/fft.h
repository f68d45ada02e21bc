// Fourier transforms of arrays that are spread over ranks.
//
//     hocket::Extents shape{256, 256, 256};
//     hocket::Box from = hocket::Slab{0}.box(shape, comm.rank(), comm.size());
//     hocket::Box to = hocket::Slab{1}.box(shape, comm.rank(), comm.size());
//     hocket::Fft fft(comm, shape, from, to);
//     fft(x, spectrum);  // again and again
//
// The transforms within a rank are a library's: FFTW 3 or MKL where one is found at run time, else
// Eigen's; HOCKET_FFT_LIBRARY chooses. On GPUs they are cuFFT's; HOCKET_CUFFT_LIBRARY names its file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/distribution.h"
#include "hocket/held.h"
#include "hocket/stream.h"

namespace hocket {

namespace fft {
class FftPlan;
}

enum class FftKind : std::uint8_t { kComplex, kRealToComplex, kComplexToReal };
// kForward has the minus sign in the exponent.
enum class FftDirection : std::uint8_t { kForward, kInverse };
// Which transform divides by the number of elements that are transformed together. kBackward: the
// inverse one; kForward: the forward one; kOrtho: each, by its square root; kNone: neither.
enum class FftNorm : std::uint8_t { kBackward, kOrtho, kForward, kNone };
// How long the library may look for its quickest way: kMeasured tries several, which takes seconds
// for large arrays.
enum class FftPlanning : std::uint8_t { kEstimated, kMeasured };

struct FftOptions {
  FftKind kind = FftKind::kComplex;
  DType precision = DType::kFloat64;  // or kFloat32: of the real numbers, and of complex parts
  // How many axes are transformed, the last ones, 1 to 3; those before are batches. 0: all.
  std::size_t axes = 0;
  FftNorm norm = FftNorm::kBackward;
  FftPlanning planning = FftPlanning::kMeasured;
  // The GPU, by its number in this process, whose memory the arrays lie in. All ranks have one, or
  // none has: then they lie in the host's memory.
  std::optional<int> gpu = {};
  std::vector<std::string> library_folders = {};  // where to look for cuFFT, before the system's
  std::optional<Duration> deadline = {};
};

// A resource: a transform to be made again and again, on one communicator, which it keeps alive;
// one thread. Each rank holds the box `from` of the array and wants the box `to` of the result;
// both lie in C order.
//
// Of real numbers the spectrum has half the last axis: n / 2 + 1 elements, see `spectrum_of`.
class [[nodiscard("it is gone, and has transformed nothing: keep it and call it")]] Fft {
 public:
  // Collective: all that is given is compared. `shape` is the whole array's, for either real kind
  // that of the real one. Throws InvalidArgument, the same on all ranks, where what they give
  // differs, or the boxes of `from` or of `to` do not tile the array.
  Fft(Communicator& comm,
      const Extents& shape,
      const Box& from,
      const Box& to,
      const FftOptions& options = {});
  Fft(Fft&&) noexcept;
  Fft& operator=(Fft&&) noexcept;
  ~Fft();

  // Collective. `in` and `out` may be one array (begin at one address), and must not overlap
  // otherwise. `in` stays as it was where it is another. Absent: forward, of kComplexToReal
  // inverse, and the real kinds know no other. The first call in a direction allocates, later ones
  // do not. Throws InvalidArgument on all ranks where an array does not fit on one of them, or
  // ranks execute different plans; on GPUs the latter is Mismatch.
  //
  // On GPUs all is put on `stream`, by default the legacy default stream, and goes on there; it
  // cannot be captured into a graph. What one rank alone refuses is Aborted on those whose GPUs had
  // begun, as of any call on GPUs.
  void operator()(ConstArrayView in,
                  ArrayView out,
                  std::optional<FftDirection> direction = {},
                  std::optional<StreamRef> stream = {});

  // Of whole arrays: of the real one, its spectrum's.
  static Extents spectrum_of(Extents shape);
  // What transforms this rank's lines: "FFTW 3.3.10", "Eigen 3.4.0".
  const std::string& library() const;
  // Whether ranks read each other's memory, instead of sending messages.
  bool is_shared() const;
  // How often the array is spread anew in one transform.
  std::size_t transposes() const;

 private:
  Held<"Fft", std::unique_ptr<fft::FftPlan>> plan_;
};

}  // namespace hocket
