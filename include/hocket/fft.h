// Fourier transforms of arrays that are distributed over ranks.
//
//     hocket::Extents shape{256, 256, 256};
//     hocket::Box from = hocket::Slab{0}.box(shape, comm.rank(), comm.size());
//     hocket::Box to = hocket::Slab{1}.box(shape, comm.rank(), comm.size());
//     hocket::Fft fft(comm, shape, from, to);
//     fft(x, spectrum);  // again and again
//
// A library computes the transforms within a rank: FFTW 3 or MKL if one is found at run time, else
// Eigen. HOCKET_FFT_LIBRARY chooses. On GPUs it is cuFFT; HOCKET_CUFFT_LIBRARY names its file.
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
// Selects which of the two transforms divides. The divisor is n, the number of elements that are
// transformed together, or its square root.
//
//   kBackward  the inverse divides by n
//   kOrtho     both divide by the square root of n
//   kForward   the forward transform divides by n
//   kNone      neither divides
enum class FftNorm : std::uint8_t { kBackward, kOrtho, kForward, kNone };
// Selects how long the library may search for its fastest method. kMeasured tries several, which
// takes seconds for large arrays.
enum class FftPlanning : std::uint8_t { kEstimated, kMeasured };

struct FftOptions {
  FftKind kind = FftKind::kComplex;
  DType precision = DType::kFloat64;  // kFloat32 or kFloat64: of real numbers, and of complex parts
  // Number of axes that are transformed, 1 to 3: the last ones. The axes before are batches. 0:
  // all.
  std::size_t axes = 0;
  FftNorm norm = FftNorm::kBackward;
  FftPlanning planning = FftPlanning::kMeasured;
  // Number in this process of the GPU whose memory holds the arrays. Either all ranks have one, or
  // none has. Absent: host memory.
  std::optional<int> gpu = {};
  // folders that are searched for cuFFT before the system's
  std::vector<std::string> library_folders = {};
  std::optional<Duration> deadline = {};
};

// A resource: a transform that can be repeated on one communicator, which it keeps alive. One
// thread may use it at a time. Each rank passes the box `from` of the array and gets the box `to`
// of the result. Both lie in C order.
//
// The spectrum of real numbers has only n / 2 + 1 elements on the last axis; see `spectrum_of`.
class [[nodiscard("it is gone, and has transformed nothing: keep it and call it")]] Fft {
 public:
  // Makes the plan. Collective: the arguments of all ranks are compared.
  // @param comm The communicator.
  // @param shape Extents of the whole array; for both real kinds, of the real array.
  // @param from The box that this rank passes.
  // @param to The box that this rank gets.
  // @param options See FftOptions; all ranks pass the same.
  // @throws InvalidArgument on all ranks if they differ, or the boxes do not tile the array.
  Fft(Communicator& comm,
      const Extents& shape,
      const Box& from,
      const Box& to,
      const FftOptions& options = {});
  Fft(Fft&&) noexcept;
  Fft& operator=(Fft&&) noexcept;
  ~Fft();

  // Transforms. Collective. The first call in a direction allocates memory; later calls do not.
  // @param in The elements of `from`. They stay unchanged unless `out` is the same array.
  // @param out The elements of `to`. It may begin at the address of `in`, and must not overlap it
  //   otherwise.
  // @param direction Absent: the only direction of a real kind, else kForward.
  // @param stream On GPUs, the stream. Absent: the legacy default stream.
  // @throws InvalidArgument on all ranks if an array does not fit on one of them, or their plans
  //   differ. On GPUs different plans are a Mismatch.
  //
  // On GPUs the call enqueues everything on `stream` and returns. It cannot be captured into a
  // graph. If only one rank refuses, ranks whose GPUs have started get Aborted.
  void operator()(ConstArrayView in,
                  ArrayView out,
                  std::optional<FftDirection> direction = {},
                  std::optional<StreamRef> stream = {});

  // Returns the extents of the spectrum of a real array with these extents.
  static Extents spectrum_of(Extents shape);
  // Returns the library that transforms on this rank: "FFTW 3.3.10", "Eigen 3.4.0".
  const std::string& library() const;
  // Returns whether ranks read each other's memory instead of sending messages.
  bool is_shared() const;
  // Returns how often one transform redistributes the array.
  std::size_t transposes() const;

 private:
  Held<"Fft", std::unique_ptr<fft::FftPlan>> plan_;
};

}  // namespace hocket
