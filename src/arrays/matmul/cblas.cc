// OpenBLAS, MKL, BLIS: any library with the C interface of BLAS, found at run time.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "arrays/matmul/blas.h"
#include "foundation/os/library.h"

namespace hocket::matmul {
namespace {

// Values of enumerations in cblas.h.
constexpr int kByColumns = 102;
constexpr int flag_of(Stored stored) {
  return stored == Stored::kPlain ? 111 : stored == Stored::kTransposed ? 112 : 113;
}

// `Index` is int, or 64 bits wide for a library built that way. Complex numbers are passed by
// address.
template <typename T, typename Index>
using Gemm = void(
    int, int, int, Index, Index, Index, T, const void*, Index, const void*, Index, T, void*, Index);

template <typename Index>
struct GemmFunctions {
  Gemm<float, Index>* floats = nullptr;
  Gemm<double, Index>* doubles = nullptr;
  Gemm<const void*, Index>* complex_floats = nullptr;
  Gemm<const void*, Index>* complex_doubles = nullptr;

  bool fill(os::LoadedLibrary& library, const char* before, const char* after) {
    const auto look = [&](char letter, auto*& function) {
      return library.look(fmt::format("{}{}gemm{}", before, letter, after).c_str(), function);
    };
    return look('s', floats) && look('d', doubles) && look('c', complex_floats) &&
           look('z', complex_doubles);
  }

  template <typename T, typename Function>
  static void call(Function* function, const LocalProduct& p, T alpha, T beta) {
    const auto index = [](std::size_t i) { return static_cast<Index>(i); };
    // BLAS refuses a stride below 1, even of an empty factor.
    const auto stride = [&](std::size_t i) { return index(i == 0 ? 1 : i); };
    function(kByColumns,
             flag_of(p.left_stored),
             flag_of(p.right_stored),
             index(p.m),
             index(p.n),
             index(p.k),
             alpha,
             p.left.at,
             stride(p.left.stride),
             p.right.at,
             stride(p.right.stride),
             beta,
             p.target.at,
             stride(p.target.stride));
  }

  void multiply(const LocalProduct& p) const {
    if (p.dtype == DType::kFloat32) {
      return call(floats, p, static_cast<float>(p.alpha.real()), static_cast<float>(p.beta.real()));
    }
    if (p.dtype == DType::kFloat64) return call(doubles, p, p.alpha.real(), p.beta.real());
    if (p.dtype == DType::kComplex64) {
      const std::complex<float> alpha(p.alpha), beta(p.beta);
      return call<const void*>(complex_floats, p, &alpha, &beta);
    }
    call<const void*>(complex_doubles, p, &p.alpha, &p.beta);
  }
};

// Returns the library's name and version. Each library has a different function for them.
std::string name_of_library(os::LoadedLibrary& library) {
  for (const char* function :
       {"openblas_get_config", "scipy_openblas_get_config64_", "scipy_openblas_get_config"}) {
    char* (*config)() = nullptr;
    if (library.look(function, config)) {
      // The text is "OpenBLAS 0.3.29 USE64BITINT DYNAMIC_ARCH ...".
      const std::string text = config();
      return text.substr(0, text.find(' ', text.find(' ') + 1));
    }
  }
  void (*mkl_version)(char*, int) = nullptr;
  if (library.look("mkl_get_version_string", mkl_version)) return "MKL";
  const char* (*blis_version)() = nullptr;
  if (library.look("bli_info_get_version_str", blis_version)) {
    return fmt::format("BLIS {}", blis_version());
  }
  return library.path();
}

// True for OpenBLAS built for one thread (Debian: libopenblas0-serial). It has one buffer for all
// callers, and silently makes wrong products if two threads call it at once.
bool is_for_one_thread(os::LoadedLibrary& library) {
  for (const char* function :
       {"openblas_get_parallel", "scipy_openblas_get_parallel64_", "scipy_openblas_get_parallel"}) {
    int (*threads_of)() = nullptr;
    if (library.look(function, threads_of)) return threads_of() == 0;
  }
  return false;
}

// Returns the mutex for calls of a library that is for one thread. It is global, because all ranks
// that are threads share the library.
std::mutex& turn_in_the_library() {
  static std::mutex mutex;
  return mutex;
}

class CBlas final : public Blas {
 public:
  // Finds the functions. Returns whether the library has them all.
  bool fill(os::LoadedLibrary& library) {
    name_ = name_of_library(library);
    takes_turns_ = is_for_one_thread(library);
    for (const char* before : {"cblas_", "scipy_cblas_"}) {
      if (short_.fill(library, before, "")) return true;
      for (const char* after : {"64_", "_64"}) {
        if (long_.fill(library, before, after)) return is_long_ = true;
      }
    }
    return false;
  }
  const std::string& name() const noexcept override { return name_; }
  void multiply(const LocalProduct& product) const override {
    if (product.m == 0 || product.n == 0) return;
    std::optional<std::lock_guard<std::mutex>> turn;
    if (takes_turns_) turn.emplace(turn_in_the_library());
    if (is_long_) return long_.multiply(product);
    short_.multiply(product);
  }

 private:
  std::string name_;
  GemmFunctions<int> short_;
  GemmFunctions<std::int64_t> long_;
  bool is_long_ = false;
  bool takes_turns_ = false;
};

// Returns whether the library multiplies correctly. Some releases choose wrong kernels on
// processors that are newer than the release. The check compares sums of the product's rows with
// expected sums.
template <typename T>
bool multiplies(const Blas& blas, DType dtype) {
  constexpr std::size_t n = 93;  // no multiple of any kernel's tile
  std::vector<T> left(n * n), right(n * n), made(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    left[i] = static_cast<T>(static_cast<float>(i * 7 % 11) - 5);
    right[i] = static_cast<T>(static_cast<float>(i * 5 % 13) - 6);
  }
  const auto bytes = [](const std::vector<T>& values) {
    return Columns<const std::byte>{reinterpret_cast<const std::byte*>(values.data()), n};
  };
  blas.multiply({.dtype = dtype,
                 .m = n,
                 .n = n,
                 .k = n,
                 .left = bytes(left),
                 .right = bytes(right),
                 .target = {reinterpret_cast<std::byte*>(made.data()), n}});
  // Small whole numbers make the sums exact in any order.
  std::vector<T> weighted(n), wanted(n), found(n);
  for (std::size_t j = 0; j < n; ++j) {
    const T weight = static_cast<T>(static_cast<float>(j % 3) + 1);
    for (std::size_t i = 0; i < n; ++i) {
      weighted[i] += right[i + j * n] * weight;
      found[i] += made[i + j * n] * weight;
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) wanted[i] += left[i + j * n] * weighted[j];
  }
  return wanted == found;
}

std::shared_ptr<Blas> checked(const os::LibraryName& name,
                              const std::string& file,
                              std::string& why_not) {
  os::LoadedLibrary library(name, {file, {}}, why_not);
  if (!library) return nullptr;
  auto blas = std::make_shared<CBlas>();
  if (!blas->fill(library)) {
    why_not =
        fmt::format("{} has not the functions cblas_sgemm, dgemm, cgemm and zgemm", library.path());
    return nullptr;
  }
  if (multiplies<float>(*blas, DType::kFloat32) && multiplies<double>(*blas, DType::kFloat64) &&
      multiplies<std::complex<float>>(*blas, DType::kComplex64) &&
      multiplies<std::complex<double>>(*blas, DType::kComplex128)) {
    return blas;
  }
  why_not = fmt::format(
      "{} ({}) makes wrong products on this processor; take a newer one, or choose its kernels "
      "(OPENBLAS_CORETYPE=HASWELL)",
      blas->name(),
      library.path());
  return nullptr;
}

}  // namespace

std::shared_ptr<Blas> loaded_blas(const base::LibraryChoice& choice, std::string& why_not) {
  constexpr auto kSystem = os::LibraryName::First::kSystem;
  constexpr const char* kVariable = "HOCKET_BLAS_LIBRARY";
  constexpr std::array kNames{
      os::LibraryName{"libopenblas.so.0", kVariable, "OpenBLAS", "Debian: libopenblas0", kSystem},
      os::LibraryName{"libmkl_rt.so.2", kVariable, "MKL", "pip: mkl", kSystem},
      os::LibraryName{"libblis.so.4", kVariable, "BLIS", "Debian: libblis4", kSystem}};
  if (choice.word == "mkl") return checked(kNames[1], "", why_not);
  if (choice.word == "blis") return checked(kNames[2], "", why_not);
  if (choice.word == "openblas") return checked(kNames[0], os::find_loaded({"openblas"}), why_not);
  if (const std::string& file = choice.file; !file.empty()) {
    const os::LibraryName named{file.c_str(), kVariable, "BLAS", "Debian: libopenblas0", kSystem};
    return checked(named, file, why_not);
  }
  // A library that is already loaded, NumPy's above all, has already started its threads.
  std::string reasons;
  if (const std::string loaded = os::find_loaded({"openblas", "libmkl_rt", "libblis"});
      !loaded.empty()) {
    const os::LibraryName named{loaded.c_str(), kVariable, "BLAS", "Debian: libopenblas0", kSystem};
    if (auto blas = checked(named, loaded, why_not)) return blas;
    reasons = why_not + "; ";
  }
  for (const os::LibraryName& name : kNames) {
    if (auto blas = checked(name, "", why_not)) return blas;
    if (&name == &kNames.front()) reasons += why_not;
  }
  why_not = reasons;
  return nullptr;
}

}  // namespace hocket::matmul
