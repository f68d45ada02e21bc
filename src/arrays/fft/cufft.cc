#include "arrays/fft/cufft.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "foundation/base/config.h"
#include "foundation/os/library.h"
#include "hocket/error.h"

namespace hocket::fft {
namespace {

using os::LibraryName;

constexpr std::array kNames{
    LibraryName{"libcufft.so.12", "HOCKET_CUFFT_LIBRARY", "cuFFT", "of CUDA 13; pip: nvidia-cufft"},
    LibraryName{
        "libcufft.so.11", "HOCKET_CUFFT_LIBRARY", "cuFFT", "of CUDA 12; pip: nvidia-cufft-cu12"},
};

std::string name_of(cufft::CufftResult status) {
  constexpr std::array kStatus{"CUFFT_SUCCESS",
                               "CUFFT_INVALID_PLAN",
                               "CUFFT_ALLOC_FAILED",
                               "CUFFT_INVALID_TYPE",
                               "CUFFT_INVALID_VALUE",
                               "CUFFT_INTERNAL_ERROR",
                               "CUFFT_EXEC_FAILED",
                               "CUFFT_SETUP_FAILED",
                               "CUFFT_INVALID_SIZE",
                               "CUFFT_UNALIGNED_DATA"};
  const auto number = static_cast<std::size_t>(status);
  return number < kStatus.size() ? kStatus[number] : fmt::format("status {}", number);
}

}  // namespace

std::shared_ptr<const Cufft> Cufft::find(const std::vector<std::string>& folders) {
  std::string why_not;
  const os::LibrarySearch search{base::environment("HOCKET_CUFFT_LIBRARY").value_or(""), folders};
  if (os::LoadedLibrary library = os::first_library(kNames, search, why_not)) {
    std::shared_ptr<Cufft> found(new Cufft);
    library.need("cufftCreate", found->create);
    library.need("cufftDestroy", found->destroy);
    library.need("cufftMakePlanMany64", found->make_plan_many);
    library.need("cufftSetStream", found->set_stream);
    library.need("cufftExecC2C", found->exec_c2c);
    library.need("cufftExecZ2Z", found->exec_z2z);
    library.need("cufftExecR2C", found->exec_r2c);
    library.need("cufftExecD2Z", found->exec_d2z);
    library.need("cufftExecC2R", found->exec_c2r);
    library.need("cufftExecZ2D", found->exec_z2d);
    why_not = library.why_not_whole();
    if (why_not.empty()) {
      cufft::CufftResult (*get_version)(int*) = nullptr;
      int version = 0;
      if (library.look("cufftGetVersion", get_version)) get_version(&version);
      found->name_ =
          fmt::format("cuFFT {}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
      return found;
    }
  }
  throw InvalidArgument("arrays in a GPU's memory are transformed by cuFFT: " + why_not);
}

void Cufft::check(cufft::CufftResult status, std::string_view what) const {
  if (status == cufft::CufftResult::kSuccess) return;
  throw DeviceError(fmt::format("cuFFT cannot {}: {}", what, name_of(status)));
}

CufftHandle::CufftHandle(const Cufft& cufft) : cufft_(&cufft) {
  cufft.check(cufft.create(&handle_), "make a plan");
}

CufftHandle::~CufftHandle() {
  if (cufft_ != nullptr) cufft_->destroy(handle_);
}

CufftHandle::CufftHandle(CufftHandle&& other) noexcept
    : cufft_(std::exchange(other.cufft_, nullptr)), handle_(other.handle_) {}

}  // namespace hocket::fft
