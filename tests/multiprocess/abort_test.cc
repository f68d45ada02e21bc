// Calls that are given up: abort from elsewhere, work that is destroyed, threads that collide, and
// children forked after init.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;

TEST(Abort, FromAnotherThreadFreesEverybody) {
  for (const Collective& each : collectives()) {
    SCOPED_TRACE(each.name);
    const auto ranks = run_job({.size = 3}, [&](Rank& rank) {
      World world = rank.join();
      auto comm = world.communicator().duplicate();
      std::thread aborter;
      if (rank.rank() == 2) {
        // This rank never comes to the call.
        aborter = std::thread([&] {
          rank.await(0, 2);
          std::this_thread::sleep_for(milliseconds(5));
          comm.abort("enough of it");
        });
      } else {
        Arrays arrays(3, 20'000);
        rank.mark(0);
        rank.attempt("call", [&] {
          for (;;) each.run(comm, arrays, 2, {});
        });
        const auto status = comm.status();
        rank.check(status && status->code == ErrorCode::kAborted, "status() is not Aborted");
      }
      if (aborter.joinable()) aborter.join();
      rank.attempt("later", [&] { comm.barrier(); });
      world.communicator().barrier();  // others are not concerned
    });
    for (const Result& rank : ranks) {
      EXPECT_EQ(rank.get("later"), "Aborted");
      EXPECT_EQ(rank.get("later.message"), ranks[0].get("later.message"));
      EXPECT_NE(rank.get("later.message").find("enough of it"), std::string::npos);
    }
    EXPECT_EQ(ranks[0].get("call"), "Aborted");
    EXPECT_EQ(ranks[0].number("call.peer"), 2);
  }
}

// The thread that aborts is of the rank that waits.
TEST(Abort, OfOnesOwnCallFreesIt) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto comm = world.communicator().duplicate();
    if (rank.rank() == 0) {
      std::atomic<bool> waits{false};
      std::thread aborter([&] {
        while (!waits) std::this_thread::yield();
        std::this_thread::sleep_for(milliseconds(20));
        comm.abort();
      });
      waits = true;
      std::vector<int> x(3);
      rank.attempt("call", [&] { comm.recv(x, 1); });
      aborter.join();
    }
    world.communicator().barrier();
    rank.attempt("later", [&] { comm.barrier(); });
  });
  EXPECT_EQ(ranks[0].get("call"), "Aborted");
  EXPECT_EQ(ranks[0].get("later"), "Aborted");
  EXPECT_EQ(ranks[1].get("later"), "Aborted");
}

TEST(Abort, ByDestroyingPendingWorkEndsTheCommunicator) {
  for (const bool message : {false, true}) {
    const auto ranks = run_job({.size = 2}, [&](Rank& rank) {
      World world = rank.join();
      auto comm = world.communicator().duplicate();
      if (rank.rank() == 0) {
        std::vector<float> x(100'000, 3.0F);
        {
          Work work = message ? comm.recv_async(x, 1) : comm.all_reduce_async(x);
          Work moved = std::move(work);
          rank.check(!moved.test(), "a call ended without the other rank");
        }
        // hocket does not touch the array any more.
        std::fill(x.begin(), x.end(), 5.0F);
        rank.mark(0);
        rank.await(1, 1);
        rank.check(std::count(x.begin(), x.end(), 5.0F) == 100'000, "the array was written to");
      } else {
        std::vector<float> x(100'000, 1.0F);
        rank.await(0, 1);
        rank.attempt("call", [&] {
          if (message) comm.send(x, 0);
          if (!message) comm.all_reduce(x);
        });
        rank.mark(1);
      }
      rank.attempt("later", [&] { comm.barrier(); });
      world.communicator().barrier();
    });
    EXPECT_EQ(ranks[1].get("call"), "Aborted");
    EXPECT_EQ(ranks[0].get("later"), "Aborted");
    EXPECT_EQ(ranks[1].get("later"), "Aborted");
    EXPECT_NE(ranks[1].get("call.message").find("rank 0"), std::string::npos);
  }
}

TEST(Abort, ByClosingWithWorkUnderWayIsHeard) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto comm = world.communicator().duplicate();
    std::vector<float> x(50);
    if (rank.rank() == 0) {
      Work work = comm.all_reduce_async(x);
      comm.close();
      rank.attempt("call", [&] { work.wait(); });
      rank.mark(0);
    } else {
      rank.await(0, 1);
      rank.attempt("call", [&] { comm.all_reduce(x); });
    }
    const Outcome closed = outcome_of([&] { comm.barrier(); });
    rank.check(!closed.ok(), "a call after the end");
    world.communicator().barrier();
  });
  EXPECT_EQ(ranks[0].get("call"), "Aborted");
  EXPECT_EQ(ranks[1].get("call"), "Aborted");
}

// --- Threads ------------------------------------------------------------------------------------

TEST(Threads, AtOnceOnOneCommunicatorAreFound) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    if (rank.rank() == 0) {
      std::atomic<bool> begun{false};
      std::thread first([&] {
        begun = true;
        comm.barrier();
      });
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(50));
      rank.attempt("second", [&] { comm.barrier(); });
      rank.mark(0);
      first.join();
    } else {
      rank.await(0, 1);
      comm.barrier();
    }
    // No harm was done.
    const std::string wrong = wrong_results(comm, 1, 100);
    rank.check(wrong.empty(), wrong);
  });
  EXPECT_EQ(ranks[0].get("second"), "InvalidArgument");
  EXPECT_NE(ranks[0].get("second.message").find("two threads"), std::string::npos)
      << ranks[0].get("second.message");
}

// The closing thread has its turn for a while; the other thread's error says why.
TEST(Threads, HearThatTheCommunicatorIsClosed) {
  run_job({.size = 1}, [](Rank& rank) {
    World world = rank.join();
    for (int round = 0; round < 300; ++round) {
      auto comm = world.communicator().duplicate();
      std::atomic<int> calls{0};
      std::thread caller([&] {
        const Outcome end = outcome_of([&] {
          for (;; ++calls) comm.barrier();
        });
        rank.check(end.message.find("closed") != std::string::npos, end.message);
      });
      while (calls < 20) std::this_thread::yield();
      comm.close();
      caller.join();
    }
  });
}

TEST(Threads, InTurnsOnOneCommunicatorAreFine) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    for (int round = 0; round < 20; ++round) {
      std::thread([&] {
        const std::string wrong = wrong_results(world.communicator(), round, 60);
        rank.check(wrong.empty(), wrong);
      }).join();
    }
  });
}

TEST(Threads, OnCommunicatorsOfTheirOwnAreFine) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    std::vector<Communicator> comms;
    for (int i = 0; i < 4; ++i) comms.push_back(world.communicator().duplicate());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 60; ++round) {
          const std::string wrong =
              wrong_results(comms[i], round + 100 * static_cast<int>(i), 10 + 3000 * i);
          rank.check(wrong.empty(), wrong);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

// --- Fork ---------------------------------------------------------------------------------------

enum class End { kReturn, kExit, kAtOnce };

// The actions of a child forked by a rank; returns 0 if all are right. `work` is pending, or empty.
int in_child(World& world, SymmetricArray& array, Work& work) {
  std::vector<float> x(4);
  int wrong = 0;
  const auto refused = [&](const std::function<void()>& action) {
    const Outcome outcome = outcome_of(action);
    const bool right = outcome.kind == "InvalidArgument" &&
                       outcome.message.find("forked after hocket::init") != std::string::npos &&
                       outcome.message.find("by spawning instead of forking") != std::string::npos;
    if (!right) ++wrong;
  };
  refused([&] { world.communicator().all_reduce(x); });
  refused([&] { static_cast<void>(world.communicator().barrier_async()); });
  refused([&] { world.communicator().send(x, 0); });
  refused([&] { static_cast<void>(world.communicator().recv_async(x, 0)); });
  refused([&] { static_cast<void>(world.communicator().duplicate()); });
  refused([&] { static_cast<void>(world.communicator().symmetric().empty<float>(3)); });
  refused([&] { static_cast<void>(world.communicator().status()); });
  refused([&] { static_cast<void>(world.communicator().last_calls()); });
  refused([&] { static_cast<void>(world.communicator().recent_calls()); });
  refused([&] { static_cast<void>(world.communicator().dump("/tmp")); });
  bool done_before = false;
  outcome_of([&] { done_before = work.test(); });
  if (!done_before) {
    refused([&] { work.wait(); });
    refused([&] { static_cast<void>(work.wait_for(std::chrono::seconds(1))); });
    refused([&] { work.test(); });
  }
  world.communicator().abort("a child has no say");
  array.free();
  return wrong;
}

TEST(Fork, AfterInitIsRefusedAndHarmless) {
  for (const End end : {End::kReturn, End::kExit, End::kAtOnce}) {
    SCOPED_TRACE(static_cast<int>(end));
    run_job({.size = 2}, [&](Rank& rank) {
      std::optional<World> world(rank.join());
      auto array = world->communicator().symmetric().empty<float>(100);
      std::vector<float> pending(30, 1.0F);
      Work work = rank.rank() == 0 ? world->communicator().all_reduce_async(pending) : Work();
      const pid_t child = fork();
      if (child == 0) {
        const int wrong = in_child(*world, array, work);
        if (end == End::kAtOnce) _exit(wrong);
        if (end == End::kExit) exit(wrong);
        {
          Work ended = std::move(work);
        }
        world.reset();
        exit(wrong);
      }
      int status = 0;
      waitpid(child, &status, 0);
      rank.check(status == 0, fmt::format("the child ended with status {:#x}", status));
      if (rank.rank() == 0) work.wait();
      if (rank.rank() == 1) world->communicator().all_reduce(pending);
      rank.check(pending[29] == 2.0F, "work across the fork is wrong");
      for (int round = 0; round < 20; ++round) {
        const std::string wrong = wrong_results(world->communicator(), round, 500);
        rank.check(wrong.empty(), wrong);
      }
    });
  }
}

// A child that lives on does not hide its parent's death, nor does its own death count.
TEST(Fork, ChildrenDoNotHideADeath) {
  const auto ranks = run_job({.size = 2},
                             [](Rank& rank) {
                               World world = rank.join();
                               world.communicator().barrier();
                               if (rank.rank() == 1) {
                                 const pid_t dies = fork();
                                 if (dies == 0) raise(SIGKILL);
                                 waitpid(dies, nullptr, 0);
                                 world.communicator().barrier();
                                 if (fork() == 0) {
                                   while (getppid() != 1)
                                     std::this_thread::sleep_for(milliseconds(5));
                                   _exit(0);
                                 }
                                 raise(SIGKILL);
                               }
                               world.communicator().barrier();
                               rank.attempt("call", [&] { world.communicator().barrier(); });
                             },
                             {1});
  EXPECT_EQ(ranks[0].get("call"), "PeerDied");
  EXPECT_EQ(ranks[0].number("call.pid"), ranks[1].pid);
}

}  // namespace
}  // namespace hocket::multiprocess
