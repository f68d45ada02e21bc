// Transforms within a rank: whose library makes them, and how it is asked.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// What is transformed: lines along some axes of an array, all the others being loops. A value.
struct Lines {
  FftKind kind = FftKind::kComplex;
  bool is_double = true;
  bool is_inverse = false;
  FftPlanning planning = FftPlanning::kEstimated;
  Extents shape;                    // where the kind has a real side, that one's
  std::vector<std::size_t> axes;    // at least one; with a real side the last axis of all is there
  Extents in_strides, out_strides;  // in elements of either side
};

// A transform that is ready. One thread; `in` and `out` are different arrays of those strides, and
// `in` stays as it was where `keeps_input`.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual void run(void* in, void* out) = 0;
  virtual bool keeps_input() const noexcept { return true; }
};

// A library. Any thread.
class FftLibrary {
 public:
  virtual ~FftLibrary() = default;
  virtual const std::string& name() const noexcept = 0;  // with its version
  // Null where it cannot.
  virtual std::unique_ptr<Transform> make(const Lines& lines) = 0;
};

// The one that is always there.
std::unique_ptr<FftLibrary> eigen();
// FFTW 3, or what has its functions: `file` names another one than the system's. Null, and why.
std::unique_ptr<FftLibrary> fftw(const std::string& file, std::string& why_not);
// MKL by FFTW's functions. Null, and why.
std::unique_ptr<FftLibrary> mkl(std::string& why_not);

// As HOCKET_FFT_LIBRARY says. Throws InvalidArgument where that one is not there.
std::shared_ptr<FftLibrary> find_library();

}  // namespace hocket::fft
