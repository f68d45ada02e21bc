// The loop of a rank of bench/hosts.py, for any library that carries its calls. The rank sleeps
// until its pipe has a line such as "all_gather 1048576 20" (kind, bytes, calls). It makes the
// calls, and answers with the microseconds of one call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace hosts {

enum class Kind { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kAllToAll };

inline Kind kind_of(const std::string& name) {
  if (name == "all_reduce") return Kind::kAllReduce;
  if (name == "all_gather") return Kind::kAllGather;
  if (name == "reduce_scatter") return Kind::kReduceScatter;
  if (name == "broadcast") return Kind::kBroadcast;
  return Kind::kAllToAll;
}

// The arrays of one call. The larger array of a rank has `count` elements; `part` is one rank's
// share of it. Values depend on the rank and on the position, so a permutation is noticed. Their
// sums are exact.
class Case {
 public:
  Case(Kind kind, std::size_t bytes, int rank, int size)
      : kind(kind),
        part(bytes / sizeof(float) / static_cast<std::size_t>(size)),
        count(part * static_cast<std::size_t>(size)),
        in(kind == Kind::kAllGather ? part : count),
        out(kind == Kind::kReduceScatter ? part : count),
        rank_(rank),
        size_(size) {
    if (kind == Kind::kAllReduce || kind == Kind::kBroadcast) {
      in.resize(bytes / sizeof(float));
      out.resize(in.size());
    }
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
    if (kind == Kind::kBroadcast && rank == 0) out = in;
  }

  bool is_right() const {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != expected(i)) return false;
    }
    return true;
  }

  const Kind kind;
  const std::size_t part, count;
  std::vector<float> in, out;

 private:
  static float value(int rank, std::size_t i) {
    return static_cast<float>(static_cast<std::size_t>(rank) * 3 + i % 1021);
  }
  float total(std::size_t i) const {
    float sum = 0;
    for (int rank = 0; rank < size_; ++rank) sum += value(rank, i);
    return sum;
  }
  float expected(std::size_t i) const {
    const auto own = static_cast<std::size_t>(rank_) * part;
    switch (kind) {
      case Kind::kAllReduce:
        return total(i);
      case Kind::kReduceScatter:
        return total(own + i);
      case Kind::kBroadcast:
        return value(0, i);
      case Kind::kAllGather:
        return value(static_cast<int>(i / part), i % part);
      case Kind::kAllToAll:
        return value(static_cast<int>(i / part), own + i % part);
    }
    return 0;
  }

  int rank_, size_;
};

// Serves commands until the pipe is closed. `library` has rank(), size(), barrier() and
// call(Case&). The first argument of the program is the folder of the pipes, the second the
// library's name.
template <typename Library>
int serve(char** argv, Library& library) {
  const std::string own =
      std::string(argv[1]) + "/" + argv[2] + "." + std::to_string(library.rank());
  std::ofstream answers(own + ".answers");  // first, because the other end opens it first
  std::ifstream commands(own);
  std::string kind;
  std::size_t bytes = 0;
  long calls = 0;
  while (commands >> kind >> bytes >> calls) {
    Case each(kind_of(kind), bytes, library.rank(), library.size());
    library.call(each);
    if (!each.is_right()) {
      std::cerr << argv[2] << " got " << kind << " of " << bytes << " bytes wrong\n";
      return EXIT_FAILURE;
    }
    library.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < calls; ++i) library.call(each);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    library.barrier();
    answers << took.count() / static_cast<double>(calls) << std::endl;
  }
  return EXIT_SUCCESS;
}

}  // namespace hosts
