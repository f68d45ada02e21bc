// Applies Eigen's transform of one line to all lines of an array.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <unsupported/Eigen/FFT>

#include "arrays/fft/lay.h"
#include "arrays/fft/local.h"

namespace hocket::fft {
namespace {

template <typename Real>
class EigenTransform final : public Transform {
 public:
  explicit EigenTransform(const Lines& lines) : lines_(lines) {
    fft_.SetFlag(Eigen::FFT<Real>::Unscaled);
    fft_.SetFlag(Eigen::FFT<Real>::HalfSpectrum);
    const bool is_real = lines.kind != FftKind::kComplex;
    spectrum_ = is_real ? Fft::spectrum_of(lines.shape) : lines.shape;
    if (lines.kind == FftKind::kComplexToReal && lines.axes.size() > 1) {
      between_lay_ = Lay::packed(Box(Extents(spectrum_.size()), spectrum_));
      between_.resize(count_of(spectrum_));
    }
    std::size_t longest = 0;
    for (const std::size_t axis : lines.axes) longest = std::max(longest, lines.shape[axis]);
    line_.resize(longest);
    result_.resize(longest);
    reals_.resize(longest);
  }

  void run(void* in, void* out) override {
    const std::size_t last = lines_.shape.size() - 1;
    switch (lines_.kind) {
      case FftKind::kComplex: {
        const C* source = static_cast<const C*>(in);
        const Extents* strides = &lines_.in_strides;
        for (const std::size_t axis : lines_.axes) {
          pass(source, *strides, static_cast<C*>(out), lines_.out_strides, axis);
          source = static_cast<const C*>(out);
          strides = &lines_.out_strides;
        }
        return;
      }
      case FftKind::kRealToComplex: {
        each_line(lines_.in_strides,
                  lines_.out_strides,
                  lines_.shape,
                  last,
                  [&](std::size_t from, std::size_t to) {
                    const Real* x = static_cast<const Real*>(in) + from;
                    C* y = static_cast<C*>(out) + to;
                    const std::size_t n = lines_.shape[last];
                    for (std::size_t i = 0; i < n; ++i) reals_[i] = x[i * lines_.in_strides[last]];
                    if (n == 1) {
                      result_[0] = reals_[0];
                    } else {
                      fft_.fwd(result_.data(), reals_.data(), static_cast<Eigen::Index>(n));
                    }
                    for (std::size_t i = 0; i < spectrum_[last]; ++i) {
                      y[i * lines_.out_strides[last]] = result_[i];
                    }
                  });
        for (const std::size_t axis : lines_.axes) {
          if (axis == last) continue;
          pass(static_cast<const C*>(out),
               lines_.out_strides,
               static_cast<C*>(out),
               lines_.out_strides,
               axis);
        }
        return;
      }
      case FftKind::kComplexToReal: {
        const C* source = static_cast<const C*>(in);
        const Extents* strides = &lines_.in_strides;
        for (const std::size_t axis : lines_.axes) {
          if (axis == last) continue;
          pass(source, *strides, between_.data(), between_lay_.strides, axis);
          source = between_.data();
          strides = &between_lay_.strides;
        }
        each_line(*strides,
                  lines_.out_strides,
                  lines_.shape,
                  last,
                  [&](std::size_t from, std::size_t to) {
                    Real* y = static_cast<Real*>(out) + to;
                    for (std::size_t i = 0; i < spectrum_[last]; ++i) {
                      line_[i] = source[from + i * (*strides)[last]];
                    }
                    to_real(lines_.shape[last]);
                    for (std::size_t i = 0; i < lines_.shape[last]; ++i) {
                      y[i * lines_.out_strides[last]] = reals_[i];
                    }
                  });
        return;
      }
    }
  }

 private:
  using C = std::complex<Real>;

  // Transforms the spectrum in line_ to reals_. In a real array's spectrum, the first element has
  // no imaginary part. The same holds for the last element if the length is even. Such parts are
  // ignored.
  void to_real(std::size_t n) {
    line_[0] = line_[0].real();
    if (n % 2 == 0) line_[n / 2] = line_[n / 2].real();
    for (std::size_t i = n / 2 + 1; i < n; ++i) line_[i] = std::conj(line_[n - i]);
    one_line(n, true);
    for (std::size_t i = 0; i < n; ++i) reals_[i] = result_[i].real();
  }

  // Transforms line_ to result_. A line of one element is copied, because Eigen loops forever on
  // it.
  void one_line(std::size_t n, bool is_inverse) {
    const auto length = static_cast<Eigen::Index>(n);
    if (n == 1) {
      result_[0] = line_[0];
    } else if (is_inverse) {
      fft_.inv(result_.data(), line_.data(), length);
    } else {
      fft_.fwd(result_.data(), line_.data(), length);
    }
  }

  // Transforms all complex lines along `axis`.
  void pass(const C* in,
            const Extents& in_strides,
            C* out,
            const Extents& out_strides,
            std::size_t axis) {
    const std::size_t n = spectrum_[axis];
    each_line(in_strides, out_strides, spectrum_, axis, [&](std::size_t from, std::size_t to) {
      for (std::size_t i = 0; i < n; ++i) line_[i] = in[from + i * in_strides[axis]];
      one_line(n, lines_.is_inverse);
      for (std::size_t i = 0; i < n; ++i) out[to + i * out_strides[axis]] = result_[i];
    });
  }

  // Calls `f` with the start of each line along `axis`, in the input and in the output.
  template <typename F>
  static void each_line(
      const Extents& in, const Extents& out, const Extents& shape, std::size_t axis, F&& f) {
    std::array<std::size_t, kMostAxes> at{};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && shape[i] == 0) return;
    }
    while (true) {
      std::size_t from = 0, to = 0;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        from += at[i] * in[i];
        to += at[i] * out[i];
      }
      f(from, to);
      std::size_t i = shape.size();
      while (true) {
        if (i == 0) return;
        --i;
        if (i == axis) continue;
        if (++at[i] < shape[i]) break;
        at[i] = 0;
      }
    }
  }

  const Lines lines_;
  Extents spectrum_;  // the complex side's shape
  Lay between_lay_;
  std::vector<C> between_, line_, result_;
  std::vector<Real> reals_;
  Eigen::FFT<Real> fft_;
};

class EigenLibrary final : public FftLibrary {
 public:
  const std::string& name() const noexcept override { return name_; }
  std::unique_ptr<Transform> make(const Lines& lines) override {
    if (lines.is_double) return std::make_unique<EigenTransform<double>>(lines);
    return std::make_unique<EigenTransform<float>>(lines);
  }

 private:
  std::string name_ =
      fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
};

}  // namespace

std::unique_ptr<FftLibrary> eigen() { return std::make_unique<EigenLibrary>(); }

}  // namespace hocket::fft
