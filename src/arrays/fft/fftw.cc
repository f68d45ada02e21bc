// FFTW 3, found at run time; and MKL, which has FFTW's functions.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

#include "arrays/fft/lay.h"
#include "arrays/fft/local.h"
#include "foundation/os/library.h"

namespace hocket::fft {
namespace {

// FFTW's interface. Its layouts and values are those of FFTW 3.0.
using Plan = void*;
struct Dimension {
  std::ptrdiff_t length, in_stride, out_stride;
};
constexpr unsigned kMeasure = 0, kDestroyInput = 1, kUnaligned = 2, kPreserveInput = 16,
                   kEstimate = 64;
constexpr int kForward = -1, kBackward = 1;

// The functions of one precision.
struct Functions {
  using Make = Plan(int, const Dimension*, int, const Dimension*, void*, void*, int, unsigned);
  using MakeReal = Plan(int, const Dimension*, int, const Dimension*, void*, void*, unsigned);
  using Execute = void(Plan, void*, void*);
  Make* make = nullptr;
  MakeReal* make_forward = nullptr;
  MakeReal* make_back = nullptr;
  Execute* execute = nullptr;
  Execute* execute_forward = nullptr;
  Execute* execute_back = nullptr;
  void (*destroy)(Plan) = nullptr;
  int (*alignment_of)(void*) = nullptr;  // MKL may lack it

  // Returns "", or the error text if a function is missing.
  std::string fill(os::LoadedLibrary& library, const std::string& prefix) {
    const auto need = [&](const char* name, auto*& function) {
      library.look((prefix + name).c_str(), function);
    };
    need("plan_guru64_dft", make);
    need("plan_guru64_dft_r2c", make_forward);
    need("plan_guru64_dft_c2r", make_back);
    need("execute_dft", execute);
    need("execute_dft_r2c", execute_forward);
    need("execute_dft_c2r", execute_back);
    need("destroy_plan", destroy);
    library.look((prefix + "alignment_of").c_str(), alignment_of);
    const bool whole =
        make && make_forward && make_back && execute && execute_forward && execute_back && destroy;
    return whole ? "" : fmt::format("{} has not all of {}'s functions", library.path(), prefix);
  }
};

// FFTW's planner has global state, so one thread at a time may make or destroy a plan. The mutex
// is never destroyed, because plans may be released while the process ends.
std::mutex& planner() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

struct FreeAligned {
  void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{64}); }
};
std::unique_ptr<std::byte[], FreeAligned> aligned(std::size_t bytes) {
  return std::unique_ptr<std::byte[], FreeAligned>(new (std::align_val_t{64})
                                                       std::byte[bytes == 0 ? 1 : bytes]);
}

class FftwTransform final : public Transform {
 public:
  FftwTransform(const Functions& functions, const Lines& lines)
      : functions_(functions), lines_(lines) {
    const bool is_real = lines.kind != FftKind::kComplex;
    const Extents complex_side = is_real ? Fft::spectrum_of(lines.shape) : lines.shape;
    // The shape is that of the real array, whose last axis is longer than the spectrum's.
    for (std::size_t i = 0; i < lines.shape.size(); ++i) {
      const bool transformed =
          std::find(lines.axes.begin(), lines.axes.end(), i) != lines.axes.end();
      const Dimension dimension{static_cast<std::ptrdiff_t>(lines.shape[i]),
                                static_cast<std::ptrdiff_t>(lines.in_strides[i]),
                                static_cast<std::ptrdiff_t>(lines.out_strides[i])};
      (transformed ? dimensions_ : loops_).push_back(dimension);
    }
    const Lay in{Box(Extents(lines.shape.size()),
                     lines.kind == FftKind::kComplexToReal ? complex_side : lines.shape),
                 lines.in_strides};
    const Lay out{Box(Extents(lines.shape.size()),
                      lines.kind == FftKind::kRealToComplex ? complex_side : lines.shape),
                  lines.out_strides};
    const std::size_t most = lines.is_double ? 16 : 8;
    const auto a = aligned(in.span() * most), b = aligned(out.span() * most);
    plan_ = make(a.get(), b.get(), lines.planning == FftPlanning::kMeasured ? kMeasure : kEstimate);
  }
  FftwTransform(const FftwTransform&) = delete;
  FftwTransform& operator=(const FftwTransform&) = delete;
  ~FftwTransform() override {
    const std::lock_guard lock(planner());
    for (const Plan plan : {plan_, anywhere_}) {
      if (plan != nullptr) functions_.destroy(plan);
    }
  }

  bool is_made() const noexcept { return plan_ != nullptr; }

  void run(void* in, void* out) override {
    Plan plan = plan_;
    if (!is_aligned(in) || !is_aligned(out)) {
      if (anywhere_ == nullptr) anywhere_ = make(in, out, kEstimate | kUnaligned);
      if (anywhere_ != nullptr) plan = anywhere_;
    }
    switch (lines_.kind) {
      case FftKind::kComplex:
        return functions_.execute(plan, in, out);
      case FftKind::kRealToComplex:
        return functions_.execute_forward(plan, in, out);
      case FftKind::kComplexToReal:
        return functions_.execute_back(plan, in, out);
    }
  }
  bool keeps_input() const noexcept override { return lines_.kind != FftKind::kComplexToReal; }

 private:
  bool is_aligned(void* at) const {
    if (functions_.alignment_of == nullptr) return reinterpret_cast<std::uintptr_t>(at) % 64 == 0;
    // The parameter of fftw_alignment_of is declared as an address of real numbers.
    return functions_.alignment_of(at) == 0;
  }

  Plan make(void* in, void* out, unsigned flags) const {
    const std::lock_guard lock(planner());
    const int rank = static_cast<int>(dimensions_.size()), loops = static_cast<int>(loops_.size());
    flags |= keeps_input() ? kPreserveInput : kDestroyInput;
    switch (lines_.kind) {
      case FftKind::kComplex:
        return functions_.make(rank,
                               dimensions_.data(),
                               loops,
                               loops_.data(),
                               in,
                               out,
                               lines_.is_inverse ? kBackward : kForward,
                               flags);
      case FftKind::kRealToComplex:
        return functions_.make_forward(
            rank, dimensions_.data(), loops, loops_.data(), in, out, flags);
      case FftKind::kComplexToReal:
        return functions_.make_back(rank, dimensions_.data(), loops, loops_.data(), in, out, flags);
    }
    return nullptr;
  }

  const Functions& functions_;
  const Lines lines_;
  std::vector<Dimension> dimensions_, loops_;
  Plan plan_ = nullptr, anywhere_ = nullptr;
};

class FftwLibrary final : public FftLibrary {
 public:
  FftwLibrary(std::string name, const Functions& doubles, const Functions& floats)
      : name_(std::move(name)), doubles_(doubles), floats_(floats) {}
  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<Transform> make(const Lines& lines) override {
    const Functions& functions = lines.is_double ? doubles_ : floats_;
    auto made = std::make_unique<FftwTransform>(functions, lines);
    if (!made->is_made()) return nullptr;
    return made;
  }

 private:
  std::string name_;
  Functions doubles_, floats_;
};

std::unique_ptr<FftLibrary> with_functions_of(const os::LibraryName& doubles,
                                              const os::LibraryName& floats,
                                              const std::string& file,
                                              const std::string& float_file,
                                              std::string& why_not) {
  os::LoadedLibrary one(doubles, {file, {}}, why_not);
  if (!one) return nullptr;
  os::LoadedLibrary other(floats, {float_file, {}}, why_not);
  if (!other) return nullptr;
  Functions of_doubles, of_floats;
  why_not = of_doubles.fill(one, "fftw_");
  if (why_not.empty()) why_not = of_floats.fill(other, "fftwf_");
  if (!why_not.empty()) return nullptr;
  // The text is "fftw-3.3.10-sse2-avx".
  std::string name = doubles.title;
  char* version = nullptr;
  if (one.look("fftw_version", version)) {
    const std::string text(version, ::strnlen(version, 64));
    const std::size_t begin = text.find('-');
    if (begin != std::string::npos) {
      const std::size_t length = text.find('-', begin + 1) - begin - 1;
      name = fmt::format("{} {}", name, text.substr(begin + 1, length));
    }
  }
  return std::make_unique<FftwLibrary>(std::move(name), of_doubles, of_floats);
}

}  // namespace

std::unique_ptr<FftLibrary> fftw(const std::string& file, std::string& why_not) {
  constexpr auto kSystem = os::LibraryName::First::kSystem;
  constexpr os::LibraryName kDoubles{
      "libfftw3.so.3", "HOCKET_FFT_LIBRARY", "FFTW", "Debian: libfftw3-double3", kSystem};
  constexpr os::LibraryName kFloats{
      "libfftw3f.so.3", "HOCKET_FFT_LIBRARY", "FFTW", "Debian: libfftw3-single3", kSystem};
  // The file for float32 differs by one letter ("libfftw3f"). MKL has both precisions in one file.
  std::string float_file = file;
  if (const std::size_t at = file.rfind("libfftw3."); at != std::string::npos) {
    float_file.replace(at, std::strlen("libfftw3."), "libfftw3f.");
  }
  return with_functions_of(kDoubles, kFloats, file, float_file, why_not);
}

std::unique_ptr<FftLibrary> mkl(std::string& why_not) {
  constexpr os::LibraryName kMkl{
      "libmkl_rt.so.2", "HOCKET_FFT_LIBRARY", "MKL", "pip: mkl", os::LibraryName::First::kSystem};
  return with_functions_of(kMkl, kMkl, "", "", why_not);
}

}  // namespace hocket::fft
