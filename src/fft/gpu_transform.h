// Transforms of a rank's part in a GPU's memory, by cuFFT.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fft/cufft.h"
#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// A resource: a transform of an array that lies in C order without gaps. One thread; the GPU's
// context is current whenever it is made, run or given back.
class GpuTransform {
 public:
  // `shape`: where the kind has a real side, that one's. `axes`: in rising order, at least one;
  // with a real side the last one is the array's.
  GpuTransform(std::shared_ptr<const Cufft> cufft,
               FftKind kind,
               bool is_double,
               bool is_inverse,
               const Extents& shape,
               const std::vector<std::size_t>& axes);
  GpuTransform(const GpuTransform&) = delete;
  GpuTransform& operator=(const GpuTransform&) = delete;

  // Whether it leaves its input as it was, and whether that may be its output, too.
  bool keeps_input() const noexcept { return kind_ != FftKind::kComplexToReal; }
  bool works_in_place() const noexcept { return kind_ == FftKind::kComplex; }
  void run(void* in, void* out, cuda::Stream stream) const;

 private:
  // One plan of cuFFT: axes that follow each other. It is executed so often, so many bytes apart.
  struct Pass {
    CufftHandle plan;
    FftKind kind{};
    std::size_t loops = 1, step = 0;
    bool from_in = false, to_out = false;  // else from `out`, to `in`
  };
  void add(FftKind kind, const Extents& shape, std::size_t first, std::size_t last);
  void execute(const Pass& pass, std::byte* from, std::byte* to) const;

  const std::shared_ptr<const Cufft> cufft_;
  const FftKind kind_;
  const bool is_double_, is_inverse_;
  std::vector<Pass> passes_;
};

}  // namespace hocket::fft
