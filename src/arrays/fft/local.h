// Transforms within a rank, and the libraries that make them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// Lines to transform along some axes of an array; the other axes are loops. A value.
struct Lines {
  FftKind kind = FftKind::kComplex;
  bool is_double = true;
  bool is_inverse = false;
  FftPlanning planning = FftPlanning::kEstimated;
  Extents shape;                    // the real side's, if the kind has one
  std::vector<std::size_t> axes;    // at least one; with a real side they include the last axis
  Extents in_strides, out_strides;  // in elements of either side
};

// A prepared transform, used by one thread. `in` and `out` are different arrays with the strides of
// its Lines. `in` is unchanged if `keeps_input`.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual void run(void* in, void* out) = 0;
  virtual bool keeps_input() const noexcept { return true; }
};

// A library of transforms. Any thread may use it.
class FftLibrary {
 public:
  virtual ~FftLibrary() = default;
  virtual const std::string& name() const noexcept = 0;  // name of the library, with its version
  // Returns null if the library cannot make the transform.
  virtual std::unique_ptr<Transform> make(const Lines& lines) = 0;
};

// The built-in library, which always exists.
std::unique_ptr<FftLibrary> eigen();
// Returns FFTW 3, or a library with its functions; `file` names a library other than the system's.
// If there is none, returns null and sets `why_not`.
std::unique_ptr<FftLibrary> fftw(const std::string& file, std::string& why_not);
// Returns MKL, used by FFTW's functions. If there is none, returns null and sets `why_not`.
std::unique_ptr<FftLibrary> mkl(std::string& why_not);

// The library that HOCKET_FFT_LIBRARY selects. Throws InvalidArgument if it is missing.
std::shared_ptr<FftLibrary> find_library();

}  // namespace hocket::fft
