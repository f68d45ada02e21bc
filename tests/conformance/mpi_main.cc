// The conformance suite over the engine mpi: a program for mpirun, whose ranks are the suite's.
// Prints errors, and returns an exit code other than 0 if there are any.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string>

#include "cases.h"
#include "engines/mpi/library.h"
#include "engines/mpi/mpi_engine.h"

namespace hocket::conformance {
namespace {

// Reads the environment directly, because hocket's own detection is not under test here.
std::string launcher() {
  return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr ? "Open MPI" : "MPICH";
}

int run() {
  const auto found = engines::mpi::MpiLibrary::find(launcher());
  if (!found.library) {
    std::printf("no MPI: %s\n", found.why_not.c_str());
    return 77;
  }
  found.library->start();
  const auto world = found.library->world();
  int rank = 0;
  int size = 1;
  found.library->place(*world, rank, size);
  const engine::GroupFacts facts{.rank = rank, .size = size, .hosts = {}};
  std::vector<int> everybody(static_cast<std::size_t>(size));
  std::iota(everybody.begin(), everybody.end(), 0);
  engines::mpi::MpiEngine engine(found.library->create(*world, everybody, 1), facts);
  Board board;
  const EngineRank self{
      .rank = rank, .size = size, .engine = &engine, .board = &board, .ordered = false};
  std::uint64_t sequence = 0;
  for (const engine::Kind kind : kKinds) {
    for (const Case& c : sweep(kind, size)) run_case(self, c, ++sequence);
  }
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    run_case(self, random_case(seed, size), ++sequence);
  }
  // A part of the ranks, in another order.
  std::vector<int> ranks;
  for (int r = size - 1; r >= 0; r -= 2) ranks.push_back(r);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != rank) continue;
    const auto some = found.library->create(*world, ranks, 5);
    const engine::GroupFacts inside{
        .rank = static_cast<int>(i), .size = static_cast<int>(ranks.size()), .hosts = {}};
    engines::mpi::MpiEngine group(some, inside);
    const EngineRank place{.rank = inside.rank,
                           .size = inside.size,
                           .engine = &group,
                           .board = &board,
                           .ordered = false};
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      run_case(place, random_case(seed + 1000, place.size), seed);
    }
  }
  if (rank == 0) {
    std::printf("%llu calls on %d ranks of %s\n",
                static_cast<unsigned long long>(sequence),
                size,
                found.library->name().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace hocket::conformance

int main() {
  try {
    return hocket::conformance::run();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
    std::_Exit(1);  // the other ranks are in the middle of a call
  }
}
