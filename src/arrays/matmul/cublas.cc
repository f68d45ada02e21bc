#include "arrays/matmul/cublas.h"

#include <fmt/format.h>

#include <array>

#include "foundation/base/config.h"
#include "foundation/os/library.h"
#include "hocket/error.h"

namespace hocket::matmul {
namespace {

using os::LibraryName;

constexpr const char* kVariable = "HOCKET_CUBLAS_LIBRARY";
constexpr std::array kNames{
    LibraryName{"libcublas.so.13", kVariable, "cuBLAS", "of CUDA 13; pip: nvidia-cublas"},
    LibraryName{"libcublas.so.12", kVariable, "cuBLAS", "of CUDA 12; pip: nvidia-cublas-cu12"},
};

std::string name_of(cublas::Status status) {
  switch (static_cast<int>(status)) {
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 8:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return fmt::format("status {}", static_cast<int>(status));
}

}  // namespace

std::shared_ptr<const Cublas> Cublas::find(const std::vector<std::string>& folders) {
  std::string why_not;
  const os::LibrarySearch search{base::environment(kVariable).value_or(""), folders};
  if (os::LoadedLibrary library = os::first_library(kNames, search, why_not)) {
    std::shared_ptr<Cublas> found(new Cublas);
    library.need("cublasCreate_v2", found->create);
    library.need("cublasDestroy_v2", found->destroy);
    library.need("cublasSetStream_v2", found->set_stream);
    library.need("cublasGetVersion_v2", found->get_version);
    library.need("cublasGemmEx", found->gemm);
    library.need("cublasSgeam", found->geam_float);
    library.need("cublasDgeam", found->geam_double);
    library.need("cublasCgeam", found->geam_complex_float);
    library.need("cublasZgeam", found->geam_complex_double);
    why_not = library.why_not_whole();
    // dlsym also finds functions of cuBLASLt, with which cuBLAS is linked.
    const bool has_lt = library.look("cublasLtMatmulDescCreate", found->lt_describe) &&
                        library.look("cublasLtMatmulDescDestroy", found->lt_forget) &&
                        library.look("cublasLtMatmulDescSetAttribute", found->lt_set) &&
                        library.look("cublasLtMatrixLayoutCreate", found->lt_lay) &&
                        library.look("cublasLtMatrixLayoutDestroy", found->lt_forget_layout) &&
                        library.look("cublasLtMatmul", found->lt_multiply);
    if (!has_lt) found->lt_multiply = nullptr;
    if (why_not.empty()) return found;
  }
  throw InvalidArgument("matrices in a GPU's memory are multiplied by cuBLAS: " + why_not);
}

void Cublas::check(cublas::Status status, std::string_view what) const {
  if (status == cublas::Status::kSuccess) return;
  throw DeviceError(fmt::format("cuBLAS cannot {}: {}", what, name_of(status)));
}

CublasHandle::CublasHandle(std::shared_ptr<const Cublas> cublas) : cublas_(std::move(cublas)) {
  cublas_->check(cublas_->create(&handle_), "begin");
}

CublasHandle::~CublasHandle() { cublas_->destroy(handle_); }

std::string CublasHandle::name() const {
  int version = 0;
  cublas_->check(cublas_->get_version(handle_, &version), "tell its version");
  return "cuBLAS " + os::text_of_version(version);
}

}  // namespace hocket::matmul
