// One library's part of bench/matmul.py: D = A B of n x n doubles in blocks that are dealt out over
// a grid, again and again. Compiled once with hocket, once with ScaLAPACK. Arguments: n, the grid's
// rows, the block, calls; of hocket also "alone", where each rank makes as many operations by
// itself. Prints the seconds of each call, the slowest rank's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#ifdef HOCKET_BENCH_SCALAPACK
#include <mpi.h>

extern "C" {
void blacs_get_(const int*, const int*, int*);
void blacs_gridinit_(int*, const char*, const int*, const int*);
void blacs_gridinfo_(const int*, int*, int*, int*, int*);
int numroc_(const int*, const int*, const int*, const int*, const int*);
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
#else
#include "hocket/group.h"
#include "hocket/matmul.h"
#endif

namespace {

struct Given {
  int n, rows, block;
  bool alone;
};

#ifdef HOCKET_BENCH_SCALAPACK
class Product {
 public:
  explicit Product(const Given& given) : given_(given) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    const int minus = -1, zero = 0;
    columns = ranks_ / given.rows;
    int context = 0, rows = given.rows;
    blacs_get_(&minus, &zero, &context);
    blacs_gridinit_(&context, "Row", &rows, &columns);
    blacs_gridinfo_(&context, &rows, &columns, &place[0], &place[1]);
    height = numroc_(&given.n, &given.block, &place[0], &zero, &rows);
    width = numroc_(&given.n, &given.block, &place[1], &zero, &columns);
    int info = 0;
    descinit_(description_,
              &given.n,
              &given.n,
              &given.block,
              &given.block,
              &zero,
              &zero,
              &context,
              &height,
              &info);
    if (info != 0) std::abort();
    const auto count = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
    a.resize(count);
    b.resize(count);
    d.resize(count);
  }
  ~Product() { MPI_Finalize(); }
  void run() {
    const int one = 1;
    const double alpha = 1, beta = 0;
    pdgemm_("N",
            "N",
            &given_.n,
            &given_.n,
            &given_.n,
            &alpha,
            a.data(),
            &one,
            &one,
            description_,
            b.data(),
            &one,
            &one,
            description_,
            &beta,
            d.data(),
            &one,
            &one,
            description_);
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  double slowest(double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  }

 private:
  const Given given_;
  int ranks_ = 0, description_[9];

 public:
  std::vector<double> a, b, d;  // along columns
  int rank = 0, columns = 0, height = 0, width = 0, place[2] = {};
};
#else
class Product {
 public:
  explicit Product(const Given& given)
      : world_(hocket::init()),
        comm_(world_.communicator()),
        alone_(comm_.split({.color = comm_.rank()})),
        rank(comm_.rank()),
        columns(comm_.size() / given.rows) {
    const auto n = static_cast<std::size_t>(given.n), side = static_cast<std::size_t>(given.block);
    const hocket::BlockCyclic blocks(hocket::ProcessGrid({static_cast<std::size_t>(given.rows),
                                                          static_cast<std::size_t>(columns)}),
                                     {side, side});
    const hocket::Extents shape = blocks.shape({n, n}, rank), at = blocks.grid().place_of(rank);
    hocket::MatmulOperand spread{.spread = blocks, .order = hocket::MemoryOrder::kFortran};
    std::size_t of_a = hocket::count_of(shape), of_b = of_a;
    if (given.alone) {
      spread.spread = hocket::Slab{0};
      product_.emplace(alone_, hocket::MatmulSize{shape[0], shape[1], n}, spread, spread, spread);
      of_a = shape[0] * n;
      of_b = n * shape[1];
    } else {
      product_.emplace(comm_, hocket::MatmulSize{n, n, n}, spread, spread, spread);
    }
    height = static_cast<int>(shape[0]);
    width = static_cast<int>(shape[1]);
    place[0] = static_cast<int>(at[0]);
    place[1] = static_cast<int>(at[1]);
    a.resize(of_a);
    b.resize(of_b);
    d.resize(hocket::count_of(shape));
    if (rank == 0) std::fprintf(stderr, "by %s\n", product_->library().c_str());
  }
  void run() { (*product_)(a, b, d); }
  void barrier() { comm_.barrier(); }
  double slowest(double value) {
    comm_.all_reduce(hocket::scalar(value), {.op = hocket::ReduceOp::kMax});
    return value;
  }

 private:
  hocket::World world_;
  hocket::Communicator& comm_;
  hocket::Communicator alone_;
  std::optional<hocket::Matmul> product_;

 public:
  std::vector<double> a, b, d;  // along columns
  int rank, columns, height = 0, width = 0, place[2] = {};
};
#endif

// Small whole numbers, so that sums are exact.
double left(long i, long j) { return static_cast<double>((i * 7 + j * 3) % 11 - 5); }
double right(long i, long j) { return static_cast<double>((i * 5 + j * 2) % 13 - 6); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const Given given{std::atoi(argv[1]),
                    std::atoi(argv[2]),
                    std::atoi(argv[3]),
                    argc > 5 && std::strcmp(argv[5], "alone") == 0};
  const long calls = std::atol(argv[4]);
  Product product(given);
  // The index in the whole of what this rank has.
  const auto whole = [&](long local, int axis) {
    const int places = axis == 0 ? given.rows : product.columns;
    return (local / given.block * places + product.place[axis]) * given.block + local % given.block;
  };
  if (given.alone) {
    std::fill(product.a.begin(), product.a.end(), 0.5);
    std::fill(product.b.begin(), product.b.end(), 2.0);
  } else {
    for (long j = 0; j < product.width; ++j) {
      for (long i = 0; i < product.height; ++i) {
        const auto at = static_cast<std::size_t>(i + j * product.height);
        product.a[at] = left(whole(i, 0), whole(j, 1));
        product.b[at] = right(whole(i, 0), whole(j, 1));
      }
    }
  }
  product.run();
  std::vector<double> seconds;
  for (long i = 0; i < calls; ++i) {
    product.barrier();
    const auto start = std::chrono::steady_clock::now();
    product.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(product.slowest(took.count()));
  }
  for (long j = 0; j < product.width; j += 97) {
    for (long i = 0; i < product.height; i += 89) {
      double sum = given.alone ? given.n : 0;
      for (long k = 0; k < given.n && !given.alone; ++k) {
        sum += left(whole(i, 0), k) * right(k, whole(j, 1));
      }
      const double found = product.d[static_cast<std::size_t>(i + j * product.height)];
      if (found == sum) continue;
      std::fprintf(stderr, "wrong: %g in place of %g\n", found, sum);
      return 1;
    }
  }
  if (product.rank == 0) {
    for (const double one : seconds) std::printf("seconds %.9f\n", one);
  }
  return 0;
}
