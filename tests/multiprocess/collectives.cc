#include "collectives.h"

#include <fmt/format.h>

#include <array>
#include <random>
#include <stdexcept>

namespace hocket::multiprocess {
namespace {

using Deadline = std::optional<Duration>;

void coalesced(Communicator& comm, Arrays& a, int, Deadline deadline) {
  const std::array<ArrayView, 2> list{a.in_share(), a.out_share()};
  comm.all_reduce_coalesced(list, {.deadline = deadline});
}

}  // namespace

const std::vector<Collective>& collectives() {
  static const std::vector<Collective> all{
      {"all_reduce",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.all_reduce(a.in_share(), a.out_share(), {.deadline = deadline});
       }},
      {"reduce",
       [](Communicator& comm, Arrays& a, int root, Deadline deadline) {
         comm.reduce(a.in_share(), a.out_share(), {.root = root, .deadline = deadline});
       }},
      {"scan",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.scan(a.in_share(), a.out_share(), {.deadline = deadline});
       }},
      {"exscan",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.exscan(a.in_share(), a.out_share(), {.deadline = deadline});
       }},
      {"broadcast",
       [](Communicator& comm, Arrays& a, int root, Deadline deadline) {
         comm.broadcast(a.out_share(), {.root = root, .deadline = deadline});
       }},
      {"reduce_scatter",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.reduce_scatter(a.in, a.out_share(), {.deadline = deadline});
       }},
      {"all_gather",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.all_gather(a.in_share(), a.out, {.deadline = deadline});
       }},
      {"gather",
       [](Communicator& comm, Arrays& a, int root, Deadline deadline) {
         comm.gather(a.in_share(), a.out, {.root = root, .deadline = deadline});
       }},
      {"scatter",
       [](Communicator& comm, Arrays& a, int root, Deadline deadline) {
         comm.scatter(a.in, a.out_share(), {.root = root, .deadline = deadline});
       }},
      {"all_to_all",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.all_to_all(a.in, a.out, {.deadline = deadline});
       }},
      {"all_gather_v",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.all_gather_v(a.in_share(), a.out, {}, {.deadline = deadline});
       }},
      {"barrier",
       [](Communicator& comm, Arrays&, int, Deadline deadline) {
         comm.barrier({.deadline = deadline});
       }},
      {"reproducible_sum",
       [](Communicator& comm, Arrays& a, int, Deadline deadline) {
         comm.reproducible_sum(a.in_share(), a.out_share(), {.deadline = deadline});
       }},
      {"coalesced", coalesced},
  };
  return all;
}

const Collective& collective(const std::string& name) {
  for (const Collective& each : collectives()) {
    if (each.name == name) return each;
  }
  throw std::logic_error("no collective " + name);
}

Work start_collective(Communicator& comm, Arrays& a, unsigned number, Deadline deadline) {
  const int root = static_cast<int>(number) % comm.size();
  switch (number % 7) {
    case 0:
      return comm.all_reduce_async(a.in_share(), a.out_share(), {.deadline = deadline});
    case 1:
      return comm.broadcast_async(a.out_share(), {.root = root, .deadline = deadline});
    case 2:
      return comm.all_gather_async(a.in_share(), a.out, {.deadline = deadline});
    case 3:
      return comm.reduce_scatter_async(a.in, a.out_share(), {.deadline = deadline});
    case 4:
      return comm.all_to_all_async(a.in, a.out, {.deadline = deadline});
    case 5:
      return comm.gather_async(a.in_share(), a.out, {.root = root, .deadline = deadline});
    default:
      return comm.barrier_async({.deadline = deadline});
  }
}

void work_for_ever(Communicator& comm, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return random() % n; };
  for (;;) {
    const std::size_t share = below(4) == 0 ? 1 + below(60'000) : 1 + below(200);
    Arrays arrays(comm.size(), share);
    switch (below(4)) {
      case 0: {
        std::vector<Arrays> many(2 + below(4), Arrays(comm.size(), share));
        std::vector<Work> works;
        for (Arrays& each : many) works.push_back(start_collective(comm, each, below(7)));
        for (Work& work : works) work.wait();
        break;
      }
      case 1: {
        const int next = (comm.rank() + 1) % comm.size();
        const int before = (comm.rank() + comm.size() - 1) % comm.size();
        comm.send_recv(arrays.in_share(), next, arrays.out_share(), before);
        break;
      }
      default:
        collectives()[below(static_cast<unsigned>(collectives().size()))].run(
            comm, arrays, static_cast<int>(below(static_cast<unsigned>(comm.size()))), {});
    }
  }
}

std::string wrong_results(Communicator& comm, int round, std::size_t count) {
  const int n = comm.size();
  const auto value = [&](int rank, std::size_t i) {
    return static_cast<std::int64_t>(rank * 1000 + round) * 7 + static_cast<std::int64_t>(i);
  };
  std::vector<std::int64_t> own(count);
  for (std::size_t i = 0; i < count; ++i) own[i] = value(comm.rank(), i);

  std::vector<std::int64_t> sum(count);
  comm.all_reduce(own, sum);
  const int root = round % n;
  std::vector<std::int64_t> copy = own;
  comm.broadcast(copy, {.root = root});
  std::vector<std::int64_t> all(count * static_cast<std::size_t>(n));
  comm.all_gather(own, all);

  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t expected = 0;
    for (int r = 0; r < n; ++r) {
      expected += value(r, i);
      if (all[static_cast<std::size_t>(r) * count + i] != value(r, i)) {
        return fmt::format("all_gather: round {}, rank {}'s element {} is wrong", round, r, i);
      }
    }
    if (sum[i] != expected) {
      return fmt::format(
          "all_reduce: round {}, element {} is {}, expected {}", round, i, sum[i], expected);
    }
    if (copy[i] != value(root, i)) {
      return fmt::format("broadcast: round {}, element {} is wrong", round, i);
    }
  }
  return "";
}

}  // namespace hocket::multiprocess
