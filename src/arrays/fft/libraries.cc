#include <fmt/format.h>

#include "arrays/fft/local.h"
#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::fft {

std::shared_ptr<FftLibrary> find_library() {
  const base::LibraryChoice choice = base::fft_library();
  if (choice.word == "eigen") return eigen();
  std::string why_not;
  std::shared_ptr<FftLibrary> found =
      choice.word == "mkl" ? mkl(why_not) : fftw(choice.file, why_not);
  if (found) return found;
  if (choice.text().empty()) return eigen();
  throw InvalidArgument(fmt::format("HOCKET_FFT_LIBRARY={}: {}", choice.text(), why_not));
}

}  // namespace hocket::fft
