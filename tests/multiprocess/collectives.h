// Every collective under one shape, for tests that do not care which one it is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hocket/hocket.h"

namespace hocket::multiprocess {

// Arrays for any collective of `share` floats a rank. A resource of plain memory.
struct Arrays {
  Arrays(int ranks, std::size_t elements)
      : share(elements),
        in(elements * static_cast<std::size_t>(ranks), 1.0F),
        out(elements * static_cast<std::size_t>(ranks), 0.0F) {}
  std::span<float> in_share() { return std::span(in).first(share); }
  std::span<float> out_share() { return std::span(out).first(share); }

  std::size_t share;
  std::vector<float> in;
  std::vector<float> out;
};

struct Collective {
  const char* name;
  void (*run)(Communicator&, Arrays&, int root, std::optional<Duration> deadline);
};

const std::vector<Collective>& collectives();
const Collective& collective(const std::string& name);

// The asynchronous ones, by number; any number is one.
Work start_collective(Communicator& comm,
                      Arrays& arrays,
                      unsigned number,
                      std::optional<Duration> deadline = {});

// Calls of every kind, small and large, blocking and not, that all ranks make alike, from the seed.
// Returns by an exception alone.
[[noreturn]] void work_for_ever(Communicator& comm, unsigned seed);

// A round of all_reduce, broadcast and all_gather whose results are compared with what they must
// be; returns the first difference, or nothing. Values depend on rank, index and `round`.
std::string wrong_results(Communicator& comm, int round, std::size_t count);

}  // namespace hocket::multiprocess
