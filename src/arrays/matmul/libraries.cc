#include <fmt/format.h>

#include "arrays/matmul/blas.h"
#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::matmul {

std::shared_ptr<Blas> find_blas() {
  const base::LibraryChoice choice = base::blas_library();
  if (choice.word == "none") return eigen_blas();
  std::string why_not;
  if (auto found = loaded_blas(choice, why_not)) return found;
  if (choice.text().empty()) return eigen_blas();
  throw InvalidArgument(fmt::format("HOCKET_BLAS_LIBRARY={}: {}", choice.text(), why_not));
}

}  // namespace hocket::matmul
