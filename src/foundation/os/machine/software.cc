#include "foundation/os/machine/software.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <sstream>

#include "foundation/base/config.h"
#include "foundation/os/library.h"
#include "foundation/os/machine/probe.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// Each of the following functions gets a loaded library. It returns the library's version, or "" if
// the library does not tell it.
std::string mpi_version(void* library) {
  auto* get = symbol<int(char*, int*)>(library, "MPI_Get_library_version");
  if (get == nullptr) return "";
  std::array<char, 8192> text{};
  int length = 0;
  get(text.data(), &length);
  // The text is "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\nMPICH Release date:
  // ...".
  const std::string all(text.data());
  const std::size_t digit = all.find_first_of("0123456789");
  if (digit == std::string::npos) return all.substr(0, 40);
  return all.substr(digit, all.find_first_of(", \t\n", digit) - digit);
}

std::string ucx_version(void* library) {
  auto* get = symbol<void(unsigned*, unsigned*, unsigned*)>(library, "ucp_get_version");
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  if (get == nullptr) return "";
  get(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::string cuda_version(void* library) {
  auto* get_version = symbol<int(int*)>(library, "cuDriverGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return "";
  std::string text = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  auto* init = symbol<int(unsigned)>(library, "cuInit");
  auto* count = symbol<int(int*)>(library, "cuDeviceGetCount");
  auto* name = symbol<int(char*, int, int)>(library, "cuDeviceGetName");
  int devices = 0;
  if (init == nullptr || count == nullptr || name == nullptr) return text;
  if (init(0) != 0 || count(&devices) != 0) return text + ", no usable GPU";
  std::array<char, 256> first{};
  if (devices > 0) name(first.data(), static_cast<int>(first.size()), 0);
  return fmt::format("{}, {} GPU{} {}", text, devices, devices == 1 ? "" : "s", first.data());
}

std::string nccl_version(void* library) {
  auto* get = symbol<int(int*)>(library, "ncclGetVersion");
  int version = 0;
  if (get == nullptr || get(&version) != 0) return "";
  return text_of_version(version);
}

std::string nvshmem_version(void* library) {
  auto* get = symbol<void(int*, int*, int*)>(library, "nvshmemx_vendor_get_version_info");
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (get == nullptr) return "";
  get(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// Returns "3.3.10" for "fftw-3.3.10-sse2-avx". MKL also has the functions of FFTW, but not this
// version text.
std::string fftw_version(void* library) {
  const auto* text = static_cast<const char*>(::dlsym(library, "fftw_version"));
  if (text == nullptr) return "";
  const std::string all(text, ::strnlen(text, 64));
  const std::size_t begin = all.find('-');
  return begin == std::string::npos ? all
                                    : all.substr(begin + 1, all.find('-', begin + 1) - begin - 1);
}

std::string cufft_version(void* library) {
  auto* get = symbol<int(int*)>(library, "cufftGetVersion");
  int version = 0;
  if (get == nullptr || get(&version) != 0) return "";
  return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
}

std::string cufft_note(const std::string& version) {
  return version.empty() ? "no Fourier transforms of GPUs' arrays (pip: nvidia-cufft, or "
                           "HOCKET_CUFFT_LIBRARY)"
                         : "transforms GPUs' arrays in hocket::Fft";
}

// Asks for the version as a property. The other query, cublasGetVersion, needs a handle and
// therefore a GPU.
std::string cublas_version(void* library) {
  auto* get = symbol<int(int, int*)>(library, "cublasGetProperty");
  std::array<int, 3> parts{};
  for (int i = 0; i < 3; ++i) {
    if (get == nullptr || get(i, &parts[static_cast<std::size_t>(i)]) != 0) return "";
  }
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

std::string cublas_note(const std::string& version) {
  return version.empty() ? "no products of GPUs' matrices (pip: nvidia-cublas, or "
                           "HOCKET_CUBLAS_LIBRARY)"
                         : "multiplies GPUs' matrices in hocket::Matmul";
}

using ReadChoice = base::LibraryChoice (*)();

// Returns the choice that the user has set. If the value is bad, returns an empty choice, and
// `fault` is the error.
base::LibraryChoice choice_by(ReadChoice read, std::string& fault) {
  try {
    return read();
  } catch (const InvalidArgument& error) {
    fault = error.what();
    return {};
  }
}

// Returns the note of `hocket doctor` about FFTW: whether and for which purpose hocket uses it. A
// bad value of HOCKET_FFT_LIBRARY gives its error.
std::string fftw_note(const std::string& version) {
  std::string fault;
  const std::string wanted = choice_by(base::fft_library, fault).word;
  if (!fault.empty()) return fault;
  if (wanted == "eigen" || wanted == "mkl") return "not used: HOCKET_FFT_LIBRARY is " + wanted;
  return version.empty() ? "Fourier transforms are Eigen's, and slower (Debian: libfftw3-double3 "
                           "libfftw3-single3, or HOCKET_FFT_LIBRARY)"
                         : "transforms lines of hocket::Fft";
}

// Returns "0.3.21 Prescott" for "OpenBLAS 0.3.21 DYNAMIC_ARCH ... Prescott ...": the version, and
// the processor for which its kernels are made. For other libraries it is the version alone. The
// file name tells which library it is.
std::string blas_version(void* library) {
  if (auto* config = symbol<char*()>(library, "openblas_get_config")) {
    const std::string text = config();
    const std::size_t begin = text.find(' ') + 1;
    const std::string version = text.substr(begin, text.find(' ', begin) - begin);
    auto* kernels = symbol<char*()>(library, "openblas_get_corename");
    return kernels == nullptr ? version : fmt::format("{} {}", version, kernels());
  }
  auto* blis = symbol<const char*()>(library, "bli_info_get_version_str");
  return blis == nullptr ? "" : blis();
}

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// Returns whether OpenBLAS uses kernels without AVX2 although the processor has it. It does so on
// processors that are newer than its release. These kernels are several times slower than
// necessary.
bool kernels_are_old(const std::string& version) {
  return has_avx2() && (version.ends_with(" Prescott") || version.ends_with(" Nehalem") ||
                        version.ends_with(" Sandybridge"));
}

// Returns the note of `hocket doctor` about the BLAS: whether and for which purpose hocket uses it.
// A bad value of HOCKET_BLAS_LIBRARY gives its error.
std::string blas_note(const std::string& version) {
  std::string fault;
  const std::string wanted = choice_by(base::blas_library, fault).word;
  if (!fault.empty()) return fault;
  if (wanted == "none") return "not used: HOCKET_BLAS_LIBRARY is none";
  if (kernels_are_old(version)) {
    return "multiplies without this processor's AVX2, several times slower "
           "(OPENBLAS_CORETYPE=HASWELL, or SKYLAKEX where it has AVX-512)";
  }
  return version.empty() ? "products of matrices are Eigen's, and slower, where the program has "
                           "loaded none (Debian: libopenblas0, or HOCKET_BLAS_LIBRARY)"
                         : "multiplies in hocket::Matmul, where the program has loaded no other";
}

struct KnownLibrary {
  const char* name;
  std::array<const char*, 3> files;
  std::string (*version)(void*);
  const char* variable = nullptr;  // the variable that names its file
  std::string (*note)(const std::string& version) = nullptr;
  ReadChoice choice = nullptr;  // reads a variable that may be a word or a file
};

// Returns the note of `hocket doctor` about NVSHMEM, whose heap hocket uses on request. An empty
// version means that NVSHMEM is missing.
std::string nvshmem_note(const std::string& version) {
  if (version.empty()) {
    return "symmetric memory has no heap \"nvshmem\" (pip: nvidia-nvshmem-cu13, or "
           "HOCKET_NVSHMEM_LIBRARY)";
  }
  int major = 0;
  int minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  if (major != 3 || minor < 2) return "not used: hocket needs 3.2, or a later 3";
  return "symmetric memory's heap \"nvshmem\", when asked for";
}

const std::array kLibraries{
    KnownLibrary{"Open MPI", {"libmpi.so.40", nullptr}, mpi_version},
    KnownLibrary{"MPICH", {"libmpich.so.12", "libmpi.so.12"}, mpi_version},
    KnownLibrary{"UCX", {"libucp.so.0", nullptr}, ucx_version, "HOCKET_UCX_LIBRARY"},
    KnownLibrary{"CUDA driver", {"libcuda.so.1", nullptr}, cuda_version},
    KnownLibrary{"NCCL", {"libnccl.so.2", nullptr}, nccl_version, "HOCKET_NCCL_LIBRARY"},
    KnownLibrary{"NVSHMEM",
                 {"libnvshmem_host.so.3", nullptr},
                 nvshmem_version,
                 "HOCKET_NVSHMEM_LIBRARY",
                 nvshmem_note},
    KnownLibrary{"cuFFT",
                 {"libcufft.so.12", "libcufft.so.11"},
                 cufft_version,
                 "HOCKET_CUFFT_LIBRARY",
                 cufft_note},
    KnownLibrary{"cuBLAS",
                 {"libcublas.so.13", "libcublas.so.12"},
                 cublas_version,
                 "HOCKET_CUBLAS_LIBRARY",
                 cublas_note},
    KnownLibrary{
        "FFTW", {"libfftw3.so.3", nullptr}, fftw_version, nullptr, fftw_note, base::fft_library},
    KnownLibrary{"BLAS",
                 {"libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4"},
                 blas_version,
                 nullptr,
                 blas_note,
                 base::blas_library},
};

// Returns the files that hocket tries for a library, in the order of its search.
std::vector<std::string> candidates(const KnownLibrary& wanted,
                                    const std::vector<std::string>& folders) {
  std::string named;
  // If the variable holds a word instead of a file, the library has one of its usual file names.
  if (wanted.choice != nullptr) {
    std::string fault;
    named = choice_by(wanted.choice, fault).file;
  } else if (wanted.variable != nullptr) {
    named = base::environment(wanted.variable).value_or("");
  }
  if (named.find_first_of("/.") != std::string::npos) return {named};
  std::vector<std::string> all;
  for (const char* file : wanted.files) {
    if (file == nullptr) continue;
    for (const std::string& folder : folders) {
      const std::string path = folder + "/" + file;
      if (::access(path.c_str(), R_OK) == 0) all.push_back(path);
    }
    all.emplace_back(file);
  }
  return all;
}

// Returns "version\npath" of a library, or "" if the library is not installed. Runs in a child
// process, because loading a library may crash or hang.
std::string look_for(const KnownLibrary& wanted, const std::vector<std::string>& folders) {
  for (const std::string& file : candidates(wanted, folders)) {
    void* library = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    link_map* map = nullptr;
    ::dlinfo(library, RTLD_DI_LINKMAP, &map);
    const std::string version = wanted.version(library);
    return (version.empty() ? "of unknown version" : version) + "\n" + (map ? map->l_name : file);
  }
  return "";
}

constexpr const char* kPythonScript =
    "import os, sys, importlib.metadata as m\n"
    "print('Python', sys.version.split()[0], sys.executable, sep='\\t')\n"
    "names = ('hocket', 'numpy', 'cupy-cuda12x', 'cupy-cuda13x', 'torch', 'jax', 'ml_dtypes',\n"
    "         'mpi4py', 'nvidia-nccl-cu12', 'nvidia-nccl-cu13', 'nvidia-nvshmem-cu12',\n"
    "         'nvidia-nvshmem-cu13', 'libucx-cu12', 'libucx-cu13')\n"
    "for name in names:\n"
    "    try: print(name, m.version(name), '', sep='\\t')\n"
    "    except m.PackageNotFoundError: pass\n"
    "for path in sys.path:\n"
    "    for name in ({}):\n"
    "        folder = os.path.join(path, name)\n"
    "        if os.path.isdir(folder): print('', folder, sep='\\t')\n";

std::string ask_python() {
  std::string folders;
  for (const std::string& folder : package_library_folders()) folders += "'" + folder + "',";
  const std::string command = fmt::format("python3 -I -c \"{}\" 2>/dev/null </dev/null",
                                          fmt::format(kPythonScript, folders));
  FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 512> buffer;
  while (const std::size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), length);
  }
  ::pclose(pipe);
  return text;
}

}  // namespace

std::vector<Software> find_libraries(const std::vector<std::string>& folders) {
  std::vector<Software> result;
  for (const KnownLibrary& wanted : kLibraries) {
    const auto answer = run_in_child([&] { return look_for(wanted, folders); }, 5000);
    if (!answer) {
      result.push_back({wanted.name, "unusable: it crashed or hung when it was loaded", "", ""});
      continue;
    }
    const std::size_t line = answer->find('\n');
    const std::string version = answer->substr(0, line);
    result.push_back({wanted.name,
                      version,
                      line == std::string::npos ? "" : answer->substr(line + 1),
                      wanted.note == nullptr ? "" : wanted.note(version)});
  }
  return result;
}

Python find_python() {
  Python result;
  std::istringstream lines(run_in_child(ask_python, 3000).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Software package;
    std::getline(fields, package.name, '\t');
    std::getline(fields, package.version, '\t');
    if (package.name.empty()) {
      result.folders.push_back(std::move(package.version));
      continue;
    }
    std::getline(fields, package.where, '\t');
    result.packages.push_back(std::move(package));
  }
  return result;
}

}  // namespace hocket::os

namespace hocket {

std::vector<std::string> package_library_folders() {
  return {"nvidia/nccl/lib",
          "nvidia/nvshmem/lib",
          "nvidia/cu13/lib",
          "nvidia/cublas/lib",
          "nvidia/cufft/lib",
          "libucx/lib"};
}

}  // namespace hocket
