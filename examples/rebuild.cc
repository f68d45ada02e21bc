// Going on without a rank that has died. `hocket run -n 4 --keep-going -- rebuild 2` kills rank 2
// in the middle; without a number no rank dies, and the communicator is rebuilt with the same
// ranks.
#include <hocket/hocket.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main(int argc, char** argv) try {
  hocket::World world = hocket::init();
  const int me = world.rank();  // kept, as the world's rank changes by a rebuild
  const int victim = argc > 1 ? std::atoi(argv[1]) : -1;

  // The state of a long computation: here a counter, which all ranks add to in each step.
  struct State {
    int step = 0;
    long long total = 0;
  } state;
  bool rebuilt = false;
  while (state.step < 100) {
    try {
      if (state.step == 50) {
        if (me == victim) std::raise(SIGKILL);
        if (victim < 0 && !rebuilt) throw hocket::Error({.message = "a fault of some other kind"});
      }
      long long part = 1;
      world.communicator().all_reduce(hocket::scalar(part));
      state = {state.step + 1, state.total + part};
    } catch (const hocket::Error& failure) {
      // Repeats until no rank is lost meanwhile. Some ranks may have ended the failed step, and
      // others not. So all take over the state of the rank that has come furthest.
      for (bool agreed = false; !agreed;) {
        hocket::Communicator& comm = world.rebuild({.exclude_missing = true});
        try {
          std::vector<int> steps(static_cast<std::size_t>(comm.size()));
          comm.all_gather(hocket::scalar(state.step), steps);
          const auto furthest = std::max_element(steps.begin(), steps.end()) - steps.begin();
          comm.broadcast(hocket::scalar(state.step), {.root = static_cast<int>(furthest)});
          comm.broadcast(hocket::scalar(state.total), {.root = static_cast<int>(furthest)});
          agreed = true;
        } catch (const hocket::PeerDied&) {
        }
      }
      rebuilt = true;
      if (world.rank() == 0) {
        std::printf(
            "%s\ngoing on at step %d with %d ranks\n", failure.what(), state.step, world.size());
      }
    }
  }
  expect_equal(world.communicator().epoch() > 0, true, "whether it was rebuilt");
  const long long lost = victim < 0 ? 0 : 50;  // the steps that the dead rank did not add to
  const int ranks = world.size() + (victim < 0 ? 0 : 1);
  expect_equal(state.total, 100LL * ranks - lost, "the total");
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
