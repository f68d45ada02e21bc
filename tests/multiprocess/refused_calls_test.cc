// Kernels that refuse system calls, as a container's profile or an old version does. hocket then
// uses a slower way, or init fails and names the call. Nothing spins, hangs, or hides a death.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "collectives.h"
#include "ranks.h"
#include "refusing.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;

struct Refusal {
  std::string call;
  int error = 0;
};

const std::set<std::string> kNeeded{"MADV_WIPEONFORK", "memfd_create", "set_robust_list"};

std::vector<Refusal> all_refusals() {
  std::vector<Refusal> all;
  for (const std::string& call : refusing::refusable()) {
    if (kNeeded.contains(call)) continue;
    for (const int error : {EPERM, ENOSYS}) all.push_back({call, error});
  }
  return all;
}

std::string name_of(const Refusal& refusal) {
  return refusal.call + (refusal.error == EPERM ? "_EPERM" : "_ENOSYS");
}

using Clock = std::chrono::steady_clock;

// Time that each thread of this process has run, or waited for a processor, so far.
std::map<std::string, std::chrono::nanoseconds> busy_times() {
  std::map<std::string, std::chrono::nanoseconds> times;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "schedstat");
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    if (file >> ran >> waited)
      times[task.path().filename()] = std::chrono::nanoseconds(ran + waited);
  }
  return times;
}

// Checks that no thread of an idle rank spins. A spinning thread always runs or waits for a
// processor, even on a busy machine.
void expect_idle(const Rank& rank) {
  const auto before = busy_times();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(milliseconds(300));
  for (const auto& [thread, busy] : busy_times()) {
    const auto at = before.find(thread);
    if (at == before.end()) continue;
    const double share = std::chrono::duration<double>(busy - at->second) / (Clock::now() - begin);
    rank.check(share < 0.8, fmt::format("thread {} of an idle rank spins ({:.2f})", thread, share));
  }
}

// Groups are created and closed, so that memory is freed and allocated again, beside a lasting
// group.
void expect_fresh_memory(const std::function<void(bool, const std::string&)>& check,
                         Communicator& comm) {
  auto stays = comm.symmetric().empty<int>(3001);
  std::fill_n(stays.data<int>(), 3001, comm.rank() + 7);
  for (int round = 0; round < 5; ++round) {
    Communicator group = comm.duplicate();
    const std::string wrong = wrong_results(group, round, 20'000);
    check(wrong.empty(), fmt::format("in round {}: {}", round, wrong));
    {
      auto array = group.symmetric().empty<int>(5001);
      const int* own = array.data<int>();
      check(std::count(own, own + 5001, 0) == 5001, "a new symmetric array is not zero");
      std::fill_n(array.data<int>(), 5001, -1);
      group.barrier();
    }
    group.close();
  }
  const int* own = stays.data<int>();
  check(std::count(own, own + 3001, comm.rank() + 7) == 3001, "an array that stayed has changed");
  comm.barrier();
}

class Calls : public testing::TestWithParam<Refusal> {};

// `refuses`: who does not get its call.
void run_without(const Refusal& refusal, const std::vector<int>& refuses) {
  const int victim = 1;
  const auto ranks = run_job(
      {.size = 3},
      [&](Rank& rank) {
        if (std::find(refuses.begin(), refuses.end(), rank.rank()) != refuses.end()) {
          refusing::refuse(refusal.call, refusal.error);
        }
        const auto check = [&rank](bool good, const std::string& what) { rank.check(good, what); };
        rank.stage("threads");
        run_threads(2, [&](Communicator& comm) { expect_fresh_memory(check, comm); });
        rank.stage("join");
        World world = rank.join();
        auto& comm = world.communicator();
        for (const std::size_t count : {7, 60'000}) {
          const std::string wrong = wrong_results(comm, 1, count);
          rank.check(wrong.empty(), wrong);
        }
        rank.stage("groups");
        expect_fresh_memory(check, comm);
        rank.stage("idle");
        expect_idle(rank);
        comm.barrier();
        rank.stage("death");
        rank.mark(0);
        if (rank.rank() == victim) {
          rank.await(0, 3);
          std::this_thread::sleep_for(milliseconds(5));
          raise(SIGKILL);
        }
        const Outcome outcome = rank.attempt("call", [&] {
          for (;;) comm.barrier();
        });
        rank.check(
            outcome.kind == "PeerDied" && outcome.peer == victim,
            fmt::format("expected the death of rank 1, got {}: {}", outcome.kind, outcome.message));
      },
      {victim});
}

TEST_P(Calls, AreDoneWithout) { run_without(GetParam(), {0, 1, 2}); }

INSTANTIATE_TEST_SUITE_P(Refused, Calls, testing::ValuesIn(all_refusals()), [](const auto& each) {
  return name_of(each.param);
});

// Ranks of one host may run in containers with different profiles.
TEST(Refused, ToOneRankAloneTheyAreDoneWithout) {
  for (const char* call : {"membarrier", "futex_waitv"}) {
    SCOPED_TRACE(call);
    run_without({call, EPERM}, {2});
  }
}

TEST(Refused, WhatNothingStandsInForIsNamedByInit) {
  for (const std::string& call : kNeeded) {
    for (const int error : {EPERM, ENOSYS}) {
      SCOPED_TRACE(fmt::format("{} {}", call, error));
      const auto ranks = run_job({.size = 3}, [&](Rank& rank) {
        if (rank.rank() == 1) refusing::refuse(call, error);
        rank.attempt("init", [&] { static_cast<void>(rank.join()); });
      });
      EXPECT_EQ(ranks[1].get("init"), "Error");
      const std::string message = ranks[1].get("init.message");
      EXPECT_NE(message.find(call), std::string::npos) << message;
      for (const std::size_t other : {0, 2}) {
        EXPECT_EQ(ranks[other].get("init"), "RendezvousError");
        EXPECT_EQ(ranks[other].get("init.message"), "rank 1 cannot join: " + message);
      }
    }
  }
}

}  // namespace
}  // namespace hocket::multiprocess
