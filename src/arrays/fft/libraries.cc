#include <fmt/format.h>

#include "arrays/fft/local.h"
#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::fft {

std::shared_ptr<FftLibrary> find_library() {
  const std::string wanted = base::environment("HOCKET_FFT_LIBRARY").value_or("");
  std::string why_not;
  std::shared_ptr<FftLibrary> found;
  if (wanted == "eigen") return eigen();
  if (wanted == "mkl") {
    found = mkl(why_not);
  } else {
    const bool is_file =
        wanted.find('/') != std::string::npos || wanted.find(".so") != std::string::npos;
    if (!wanted.empty() && wanted != "fftw" && !is_file) {
      throw InvalidArgument(fmt::format(
          "HOCKET_FFT_LIBRARY is \"{}\", expected fftw, mkl, eigen or a library's file", wanted));
    }
    found = fftw(is_file ? wanted : "", why_not);
  }
  if (found) return found;
  if (wanted.empty()) return eigen();
  throw InvalidArgument(fmt::format("HOCKET_FFT_LIBRARY is \"{}\": {}", wanted, why_not));
}

}  // namespace hocket::fft
