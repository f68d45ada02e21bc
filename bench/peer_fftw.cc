// FFTW's own transforms over MPI, which `hocket bench fft` measures. Compiled with Open MPI's
// compiler wrapper.
#include <fftw3-mpi.h>

#include <algorithm>
#include <complex>
#include <stdexcept>

#include "interfaces/cli/bench/numeric.h"
#include "interfaces/cli/bench/peer.h"

namespace hocket::cli::bench {
namespace {

// A resource: a plan with its arrays. FFTW plans for these arrays and needs its own alignment.
class Transform {
 public:
  Transform(std::ptrdiff_t n, bool is_transposed) {
    std::ptrdiff_t rows, first, columns, second;
    const auto room = static_cast<std::size_t>(fftw_mpi_local_size_3d_transposed(
        n, n, n, MPI_COMM_WORLD, &rows, &first, &columns, &second));
    in = fftw_alloc_complex(room);
    out = fftw_alloc_complex(room);
    plan_ = fftw_mpi_plan_dft_3d(n,
                                 n,
                                 n,
                                 in,
                                 out,
                                 MPI_COMM_WORLD,
                                 FFTW_FORWARD,
                                 FFTW_MEASURE | (is_transposed ? FFTW_MPI_TRANSPOSED_OUT : 0u));
    if (plan_ == nullptr) throw std::runtime_error("FFTW made no plan");
  }
  ~Transform() {
    fftw_destroy_plan(plan_);
    fftw_free(in);
    fftw_free(out);
  }
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;
  void run() const { fftw_execute(plan_); }

  fftw_complex *in = nullptr, *out = nullptr;

 private:
  fftw_plan plan_ = nullptr;
};

// A resource: MPI and FFTW, from their start to their end. One thread. MPI ends the job on errors.
class Fftw final : public Library {
 public:
  Fftw(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &job_rank_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job_rank_.ranks);
  }
  ~Fftw() override { MPI_Finalize(); }

  JobRank job_rank() const override { return job_rank_; }
  std::string name() const override { return "fftw"; }
  std::string version() const override { return std::string(fftw_version) + " over Open MPI"; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (!is_numeric(subject.collective) || subject.collective == Collective::kMatmul) {
      return "it transforms alone";
    }
    if (subject.dtype != DType::kComplex128) return "it is measured with complex128 alone";
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank_);
    const bool is_transposed = subject.collective == Collective::kFftTransposed;
    const std::size_t n = subject.elements, share = n / static_cast<std::size_t>(job_rank_.ranks);
    auto transform = std::make_shared<Transform>(static_cast<std::ptrdiff_t>(n), is_transposed);
    auto* const in = static_cast<const std::complex<double>*>(bound.arrays.in);
    auto* const out = static_cast<std::complex<double>*>(bound.arrays.out);
    bound.calls = [transform](long calls) {
      for (long i = 0; i < calls; ++i) transform->run();
    };
    bound.upload = [=] {
      std::copy_n(in, share * n * n, reinterpret_cast<std::complex<double>*>(transform->in));
    };
    // In a transposed result the second axis comes first. This copy puts the first axis first.
    bound.download = [=] {
      const auto* const made = reinterpret_cast<const std::complex<double>*>(transform->out);
      if (!is_transposed) {
        std::copy_n(made, share * n * n, out);
        return;
      }
      for (std::size_t j = 0; j < share; ++j) {
        for (std::size_t i = 0; i < n; ++i)
          std::copy_n(made + (j * n + i) * n, n, out + (i * share + j) * n);
      }
    };
    return bound;
  }

 private:
  JobRank job_rank_;
};

}  // namespace
}  // namespace hocket::cli::bench

int main(int argc, char** argv) {
  hocket::cli::bench::Fftw fftw(argc, argv);
  return hocket::cli::bench::serve(fftw);
}
