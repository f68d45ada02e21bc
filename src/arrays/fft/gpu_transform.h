// Transforms of a rank's part in a GPU's memory, by cuFFT.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "arrays/fft/cufft.h"
#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// A resource: a transform of an array in C order without gaps. One thread makes, runs and destroys
// it, with the GPU's context current.
class GpuTransform {
 public:
  // `shape` is the real side's shape, if the kind has a real side. `axes` has at least one axis, in
  // rising order. With a real side, its last entry is the array's last axis.
  GpuTransform(std::shared_ptr<const Cufft> cufft,
               FftKind kind,
               bool is_double,
               bool is_inverse,
               const Extents& shape,
               const std::vector<std::size_t>& axes);
  GpuTransform(const GpuTransform&) = delete;
  GpuTransform& operator=(const GpuTransform&) = delete;

  // Return whether the input stays unchanged, and whether the output may be the input.
  bool keeps_input() const noexcept { return kind_ != FftKind::kComplexToReal; }
  bool works_in_place() const noexcept { return kind_ == FftKind::kComplex; }
  void run(void* in, void* out, cuda::Stream stream) const;

 private:
  // One plan of cuFFT, for consecutive axes. It is executed `loops` times, at a distance of `step`
  // bytes.
  struct Pass {
    CufftHandle plan;
    FftKind kind{};
    std::size_t loops = 1, step = 0;
    bool from_in = false, to_out = false;  // false: it reads `out`, or writes `in`
  };
  void add(FftKind kind, const Extents& shape, std::size_t first, std::size_t last);
  void execute(const Pass& pass, std::byte* from, std::byte* to) const;

  const std::shared_ptr<const Cufft> cufft_;
  const FftKind kind_;
  const bool is_double_, is_inverse_;
  std::vector<Pass> passes_;
};

// Cuts a box into `count` contiguous slices along its first axis. The last slices may be empty.
std::vector<Box> slices_of(const Box& box, std::size_t count);

// A resource: a leg's transform of a rank's part, slice by slice. Threads as for GpuTransform.
class SlicedTransform {
 public:
  // The result of a slice.
  struct Made {
    std::byte* at;
    std::size_t elements;
  };
  // Bytes of an element before and after. If the first axis is transformed, there is one slice.
  struct Elements {
    std::size_t before, after;
  };
  SlicedTransform(const std::shared_ptr<const Cufft>& cufft,
                  FftKind kind,
                  bool is_double,
                  bool is_inverse,
                  const std::array<Box, 2>& boxes,  // before and after
                  const std::vector<std::size_t>& axes,
                  std::size_t slices,
                  Elements elements);

  bool keeps_input() const noexcept { return kind_ != FftKind::kComplexToReal; }
  bool works_in_place() const noexcept { return kind_ == FftKind::kComplex; }
  // `in` and `out` are the starts of the whole arrays.
  Made run(std::size_t slice, void* in, void* out, cuda::Stream stream) const;

 private:
  struct Slice {
    const GpuTransform* transform;  // null: the slice is empty
    std::size_t from, to;           // bytes
    std::size_t elements;
  };
  const FftKind kind_;
  std::vector<std::unique_ptr<GpuTransform>> transforms_;  // one for each distinct extent of slices
  std::vector<Slice> slices_;
};

}  // namespace hocket::fft
