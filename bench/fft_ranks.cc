// One library's part of bench/fft.py: a complex transform of N^3 from slabs to slabs, again and
// again. Compiled once with hocket, once with FFTW's MPI. Arguments: N, whether the result stays
// transposed (0 or 1), calls. Prints the seconds of each call, the slowest rank's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#ifdef HOCKET_BENCH_FFTW
#include <fftw3-mpi.h>
#else
#include "hocket/fft.h"
#include "hocket/group.h"
#endif

namespace {

using Complex = std::complex<double>;

#ifdef HOCKET_BENCH_FFTW
class Transform {
 public:
  Transform(std::ptrdiff_t n, bool transposed) {
    MPI_Init(nullptr, nullptr);
    fftw_mpi_init();
    std::ptrdiff_t rows, first, columns, second;
    const std::ptrdiff_t room = fftw_mpi_local_size_3d_transposed(
        n, n, n, MPI_COMM_WORLD, &rows, &first, &columns, &second);
    x = reinterpret_cast<Complex*>(fftw_alloc_complex(static_cast<std::size_t>(room)));
    y = reinterpret_cast<Complex*>(fftw_alloc_complex(static_cast<std::size_t>(room)));
    in = static_cast<std::size_t>(rows * n * n);
    out = static_cast<std::size_t>((transposed ? columns : rows) * n * n);
    plan_ = fftw_mpi_plan_dft_3d(n,
                                 n,
                                 n,
                                 reinterpret_cast<fftw_complex*>(x),
                                 reinterpret_cast<fftw_complex*>(y),
                                 MPI_COMM_WORLD,
                                 FFTW_FORWARD,
                                 FFTW_MEASURE | (transposed ? FFTW_MPI_TRANSPOSED_OUT : 0));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  ~Transform() { MPI_Finalize(); }
  void run() { fftw_execute(plan_); }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  double all(double value, bool sum) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, sum ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
    return value;
  }
  Complex *x = nullptr, *y = nullptr;
  std::size_t in = 0, out = 0;
  int rank = 0;

 private:
  fftw_plan plan_;
};
#else
class Transform {
 public:
  Transform(std::ptrdiff_t n, bool transposed)
      : world_(hocket::init()), comm_(world_.communicator()), rank(comm_.rank()) {
    const hocket::Extents shape(3, static_cast<std::size_t>(n));
    const hocket::Box from = hocket::Slab{0}.box(shape, comm_.rank(), comm_.size());
    const hocket::Box to =
        hocket::Slab{transposed ? 1u : 0u}.box(shape, comm_.rank(), comm_.size());
    fft_.emplace(comm_, shape, from, to);
    given_.resize(from.count());
    result_.resize(to.count());
    x = given_.data();
    y = result_.data();
    in = given_.size();
    out = result_.size();
  }
  void run() { (*fft_)(given_, result_); }
  void barrier() { comm_.barrier(); }
  double all(double value, bool sum) {
    comm_.all_reduce(hocket::scalar(value),
                     {.op = sum ? hocket::ReduceOp::kSum : hocket::ReduceOp::kMax});
    return value;
  }

 private:
  hocket::World world_;
  hocket::Communicator& comm_;
  std::optional<hocket::Fft> fft_;
  std::vector<Complex> given_, result_;

 public:
  Complex *x = nullptr, *y = nullptr;
  std::size_t in = 0, out = 0;
  int rank;
};
#endif

double energy(const Complex* values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::norm(values[i]);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long n = std::atol(argv[1]), calls = std::atol(argv[3]);
  Transform transform(n, std::atoi(argv[2]) != 0);
  std::mt19937 random(static_cast<unsigned>(transform.rank));
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < transform.in; ++i) transform.x[i] = {normal(random), normal(random)};
  transform.run();
  std::vector<double> seconds;
  for (long i = 0; i < calls; ++i) {
    transform.barrier();
    const auto start = std::chrono::steady_clock::now();
    transform.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(transform.all(took.count(), false));
  }
  const double before = transform.all(energy(transform.x, transform.in), true);
  const double after = transform.all(energy(transform.y, transform.out), true);
  const double points = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  if (std::abs(after / points / before - 1) > 1e-12) {
    std::fprintf(stderr, "wrong: %g of %g\n", after / points, before);
    return 1;
  }
  if (transform.rank == 0) {
    for (const double one : seconds) std::printf("seconds %.9f\n", one);
  }
  return 0;
}
