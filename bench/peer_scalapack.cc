// ScaLAPACK's pdgemm, which `hocket bench matmul` measures. Compiled with Open MPI's compiler
// wrapper.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "interfaces/cli/bench/numeric.h"
#include "interfaces/cli/bench/peer.h"

extern "C" {
void blacs_get_(const int*, const int*, int*);
void blacs_gridinit_(int*, const char*, const int*, const int*);
void descinit_(int*,
               const int*,
               const int*,
               const int*,
               const int*,
               const int*,
               const int*,
               const int*,
               const int*,
               int*);
void pdgemm_(const char*,
             const char*,
             const int*,
             const int*,
             const int*,
             const double*,
             const double*,
             const int*,
             const int*,
             const int*,
             const double*,
             const int*,
             const int*,
             const int*,
             const double*,
             double*,
             const int*,
             const int*,
             const int*);
}

namespace hocket::cli::bench {
namespace {

// A resource: MPI and BLACS, from their start to their end. One thread. MPI ends the job on errors.
class Scalapack final : public Library {
 public:
  Scalapack(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job_rank_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job_rank_.ranks);
    const int minus = -1, zero = 0;
    const MatrixPart part(1, job_rank_);
    const int rows = static_cast<int>(part.grid[0]), columns = static_cast<int>(part.grid[1]);
    blacs_get_(&minus, &zero, &context_);
    blacs_gridinit_(&context_, "Row", &rows, &columns);
  }
  ~Scalapack() override { MPI_Finalize(); }

  JobRank job_rank() const override { return job_rank_; }
  std::string name() const override { return "scalapack"; }
  std::string version() const override { return "ScaLAPACK over Open MPI"; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  std::optional<std::string> refusal(const Case& subject) const override {
    if (subject.collective != Collective::kMatmul) return "it multiplies alone";
    if (subject.dtype != DType::kFloat64) return "it is measured with float64 alone";
    return std::nullopt;
  }

  Bound bind(const Case& subject) override {
    Bound bound;
    bind_ordinary_arrays(bound, subject, job_rank_);
    const MatrixPart part(subject.elements, job_rank_);
    const int n = static_cast<int>(subject.elements), block = static_cast<int>(MatrixPart::kBlock);
    const int zero = 0, height = std::max(1, static_cast<int>(part.height));
    auto description = std::make_shared<std::array<int, 9>>();
    int info = 0;
    descinit_(description->data(), &n, &n, &block, &block, &zero, &zero, &context_, &height, &info);
    if (info != 0) throw std::runtime_error("descinit refuses argument " + std::to_string(-info));
    const auto* const a = static_cast<const double*>(bound.arrays.in);
    const double* const b = a + part.count();
    auto* const d = static_cast<double*>(bound.arrays.out);
    bound.calls = [=](long calls) {
      const int one = 1;
      const double alpha = 1, beta = 0;
      const int* const how = description->data();
      for (long i = 0; i < calls; ++i) {
        pdgemm_("N",
                "N",
                &n,
                &n,
                &n,
                &alpha,
                a,
                &one,
                &one,
                how,
                b,
                &one,
                &one,
                how,
                &beta,
                d,
                &one,
                &one,
                how);
      }
    };
    return bound;
  }

 private:
  JobRank job_rank_;
  int context_ = 0;
};

}  // namespace
}  // namespace hocket::cli::bench

int main(int argc, char** argv) {
  hocket::cli::bench::Scalapack scalapack(argc, argv);
  return hocket::cli::bench::serve(scalapack);
}
