// A task farm that survives its workers: `hocket run -n 4 --keep-going -- task_farm 2` kills rank 2
// with its first task. Without a number no rank dies.
#include <hocket/hocket.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

namespace {

constexpr int kTasks = 40;
constexpr int kNoMore = kTasks;  // a tag, as each task's number is
constexpr long long kNone = -1;  // no task has this result

long long solve(long long task) { return task * task; }

// Rank 0: fills in the results that are missing. A receive from any rank raises PeerDied as soon as
// a rank dies that could have sent.
void hand_out(hocket::Communicator& comm, std::vector<long long>& results) {
  std::vector<int> left;
  for (int task = 0; task < kTasks; ++task) {
    if (results[static_cast<std::size_t>(task)] == kNone) left.push_back(task);
  }
  if (comm.size() == 1) {
    for (const int task : left) results[static_cast<std::size_t>(task)] = solve(task);
    return;
  }
  std::vector<int> idle;
  for (int rank = 1; rank < comm.size(); ++rank) idle.push_back(rank);
  int under_way = 0;
  while (!left.empty() || under_way > 0) {
    for (; !left.empty() && !idle.empty(); ++under_way) {
      long long task = left.back();
      comm.send(hocket::scalar(task), idle.back(), {.tag = left.back()});
      left.pop_back();
      idle.pop_back();
    }
    long long result = 0;
    const hocket::Received from =
        comm.recv(hocket::scalar(result), hocket::kAnySource, {.tag = hocket::kAnyTag});
    results[static_cast<std::size_t>(from.tag)] = result;
    idle.push_back(from.source);
    --under_way;
  }
  long long none = kNone;
  for (const int rank : idle) comm.send(hocket::scalar(none), rank, {.tag = kNoMore});
}

void work(hocket::Communicator& comm, bool dies) {
  for (;;) {
    long long task = 0;
    const hocket::Received received = comm.recv(hocket::scalar(task), 0, {.tag = hocket::kAnyTag});
    if (received.tag == kNoMore) return;
    if (dies) std::raise(SIGKILL);
    long long result = solve(task);
    comm.send(hocket::scalar(result), 0, {.tag = received.tag});
  }
}

}  // namespace

int main(int argc, char** argv) try {
  hocket::World world = hocket::init();
  const bool dies = argc > 1 && world.rank() == std::atoi(argv[1]);
  std::vector<long long> results(kTasks, kNone);
  for (bool done = false; !done;) {
    try {
      if (world.rank() == 0) {
        hand_out(world.communicator(), results);
      } else {
        work(world.communicator(), dies);
      }
      done = true;
    } catch (const hocket::Error& failure) {
      // PeerDied on ranks that waited, Aborted on ranks that came later. All ranks that are left
      // meet here.
      world.rebuild();
      if (world.rank() == 0) {
        std::printf("%s\ngoing on with %d ranks\n", failure.what(), world.size());
      }
    }
  }
  if (world.rank() != 0) return 0;
  for (int task = 0; task < kTasks; ++task) {
    examples::expect_equal(results[static_cast<std::size_t>(task)], solve(task), "a result");
  }
  std::printf("%d tasks are done\n", kTasks);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
