#include <fmt/format.h>

#include "arrays/matmul/blas.h"
#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::matmul {

std::shared_ptr<Blas> find_blas() {
  const std::string wanted = base::environment("HOCKET_BLAS_LIBRARY").value_or("");
  if (wanted == "none" || wanted == "eigen") return eigen_blas();
  const bool is_file =
      wanted.find('/') != std::string::npos || wanted.find(".so") != std::string::npos;
  if (!wanted.empty() && !is_file && wanted != "openblas" && wanted != "mkl" && wanted != "blis") {
    throw InvalidArgument(fmt::format(
        "HOCKET_BLAS_LIBRARY is \"{}\", expected openblas, mkl, blis, none or a library's file",
        wanted));
  }
  std::string why_not;
  if (auto found = loaded_blas(wanted, why_not)) return found;
  if (wanted.empty()) return eigen_blas();
  throw InvalidArgument(fmt::format("HOCKET_BLAS_LIBRARY is \"{}\": {}", wanted, why_not));
}

}  // namespace hocket::matmul
