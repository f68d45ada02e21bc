// Work under way: many calls outstanding, several communicators, messages between them, and more
// ranks than processors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

TEST(Async, ManyOutstandingEndInOrderWithTheirOwnResults) {
  for (const char* engine : {"shm", "algorithm"}) {
    run_job({.size = 3, .engines = {engine}}, [](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      constexpr int kCalls = 120;
      std::vector<std::vector<int>> arrays;
      std::vector<Work> works;
      for (int i = 0; i < kCalls; ++i) {
        const std::size_t count = i % 10 == 0 ? 30'000 : static_cast<std::size_t>(1 + i);
        arrays.emplace_back(count);
        std::iota(arrays.back().begin(), arrays.back().end(), 1000 * i + rank.rank());
      }
      for (auto& array : arrays) works.push_back(comm.all_reduce_async(array));
      // Each rank waits in a different order.
      std::vector<int> order(kCalls);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(rank.rank())));
      for (const int i : order) {
        works[static_cast<std::size_t>(i)].wait();
        const auto& array = arrays[static_cast<std::size_t>(i)];
        const int last = static_cast<int>(array.size()) - 1;
        rank.check(array[0] == 3000 * i + 3 && array.back() == 3000 * i + 3 + 3 * last,
                   fmt::format("the result of call {} is wrong", i));
      }
    });
  }
}

TEST(Async, OneThreadWaitsWhileAnotherMakesCalls) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (int i = 0; i < 300; ++i) {
      int first = rank.rank() + i;
      int second = rank.rank() * i;
      Work work = comm.all_reduce_async(scalar(first));
      {
        const std::jthread waiter([&] { work.wait(); });
        comm.all_reduce(scalar(second));
      }
      rank.check(first == 2 * i + 1 && second == i, fmt::format("call {} is wrong", i));
    }
  });
}

TEST(Async, OppositeOrdersOnTwoCommunicatorsDoNotDeadlock) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto a = world.communicator().duplicate();
    auto b = world.communicator().duplicate();
    for (int round = 0; round < 100; ++round) {
      const std::size_t count = round % 5 == 0 ? 50'000 : 3;
      std::vector<int> x(count, 1);
      std::vector<int> y(count, 10);
      auto& first = rank.rank() == 0 ? a : b;
      auto& second = rank.rank() == 0 ? b : a;
      Work one = first.all_reduce_async(rank.rank() == 0 ? x : y);
      Work two = second.all_reduce_async(rank.rank() == 0 ? y : x);
      one.wait();
      two.wait();
      rank.check(x.back() == 2 && y.back() == 20, fmt::format("round {} is wrong", round));
    }
  });
}

TEST(Async, BlockingCallsWorkAndMessagesMix) {
  for (const char* engine : {"shm", "algorithm"}) {
    run_job({.size = 4, .engines = {engine}}, [](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      const int next = (rank.rank() + 1) % 4;
      const int before = (rank.rank() + 3) % 4;
      for (int round = 0; round < 40; ++round) {
        const std::size_t count = round % 4 == 0 ? 40'000 : 20;
        std::vector<int> sum(count, rank.rank() + round);
        std::vector<int> out(count, 100 * rank.rank() + round);
        std::vector<int> in(count);
        std::vector<int> copy(5, rank.rank() == round % 4 ? round : -1);
        Work reduces = comm.all_reduce_async(sum);
        Work receives = comm.recv_async(in, before, {.tag = round});
        comm.broadcast(copy, {.root = round % 4});
        Work sends = comm.send_async(out, next, {.tag = round});
        comm.barrier();
        rank.check(reduces.test(), "a call before the barrier is not done");
        reduces.wait();
        sends.wait();
        receives.wait();
        rank.check(sum.back() == 6 + 4 * round, "the sum is wrong");
        rank.check(in.back() == 100 * before + round, "the message is wrong");
        rank.check(copy[4] == round, "the broadcast is wrong");
      }
    });
  }
}

TEST(Async, CallbacksRunOnce) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    std::atomic<int> calls{0};
    std::vector<int> x(10, 1);
    Work work = world.communicator().all_reduce_async(x);
    work.on_done([&] { ++calls; });
    work.wait();
    work.wait();
    work.on_done([&] { ++calls; });
    rank.check(calls == 2, fmt::format("{} callbacks ran, expected 2", calls.load()));
  });
}

TEST(Async, CallbacksOfOneCallRunInOrder) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    std::vector<int> x(10);
    if (rank.rank() == 1) {
      rank.await(0, 1);  // both callbacks are there
      world.communicator().send(x, 0);
      rank.await(1, 1);
      return;
    }
    std::promise<void> told;
    std::string order;
    Work work = world.communicator().recv_async(x, 1);
    work.on_done([&] { order += "a"; });
    work.on_done([&] {
      order += "b";
      told.set_value();
    });
    rank.mark(0);
    work.wait();
    told.get_future().wait();
    rank.mark(1);
    rank.check(order == "ab", "the callbacks ran as \"" + order + "\"");
  });
}

TEST(Async, ACallbackMayDestroyTheWorkThatIsWaitedFor) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (int round = 0; round < 30; ++round) {
      if (rank.rank() == 1) rank.await(0, round + 1);
      std::vector<double> x(100, 1.0);
      auto work = std::make_unique<Work>(comm.all_reduce_async(x));
      if (rank.rank() == 0) {
        // If this thread ends the call, it does so in the wait.
        work->on_done([&, main = std::this_thread::get_id()] {
          if (std::this_thread::get_id() == main) work.reset();
        });
        rank.mark(0);
      }
      work->wait();
      rank.check(x[99] == 2, "the sum is wrong");
    }
  });
}

// A callback runs in the middle of a step, so no other thread can take a step before it has
// returned.
TEST(Async, ACallbackMayDestroyPendingWork) {
  for (const bool fails : {false, true}) {
    run_job({.size = 2}, [fails](Rank& rank) {
      World world = rank.join();
      auto comm = world.communicator().duplicate();
      std::vector<int> x(10, 1);
      std::vector<int> y(10, 1);
      std::vector<int> z(10, 1);
      if (rank.rank() == 1) {
        rank.await(0, 1);
        if (fails) comm.abort("enough");
        const Outcome outcome = outcome_of([&] {
          comm.all_reduce(x);
          comm.all_reduce(y);
        });
        rank.check(outcome.kind == "Aborted", outcome.kind + outcome.message);
        return;
      }
      auto pending = std::make_unique<Work>();
      auto message = std::make_unique<Work>();
      Work first = comm.all_reduce_async(x);
      *pending = comm.all_reduce_async(y);
      *message = comm.recv_async(z, 1);
      std::atomic<bool> called{false};
      first.on_done([&] {
        pending.reset();
        message.reset();
        called = true;
      });
      rank.mark(0);
      const Outcome outcome = outcome_of([&] { first.wait(); });
      rank.check(fails ? outcome.kind == "Aborted" : outcome.ok(), outcome.kind + outcome.message);
      while (!called) std::this_thread::yield();
      rank.check(z[0] == 1 && y[0] == 1, "what was given up was written to");
      const Outcome later = outcome_of([&] { comm.barrier(); });
      rank.check(later.kind == "Aborted", later.kind + later.message);
    });
  }
}

// The thread that runs a callback may be at a step of the communicator's calls, and would wait for
// itself. A call that had ended before is no exception: the program cannot tell which it is.
void refuse_calls_of_callbacks(bool has_ended) {
  run_job({.size = 2}, [has_ended](Rank& rank) {
    World world = rank.join();
    auto comm = world.communicator().duplicate();
    const int peer = 1 - rank.rank();
    const std::vector<int> x(10, 1);
    std::vector<int> y(10);
    std::vector<int> z(10);
    const std::vector<std::function<void(Work&)>> uses{
        [&](Work&) { comm.barrier(); },
        [&](Work&) { static_cast<void>(comm.barrier_async()); },
        [&](Work&) { comm.send(x, peer); },
        [&](Work&) { static_cast<void>(comm.duplicate()); },
        [&](Work&) { static_cast<void>(comm.rebuild()); },
        [&](Work& pending) { pending.wait(); },
        [&](Work& pending) { static_cast<void>(pending.wait_for(std::chrono::seconds(5))); },
        [&](Work& pending) { static_cast<void>(wait_any({&pending, 1})); },
        [&](Work&) { comm.close(); },
    };
    int round = 0;
    for (const auto& use : uses) {
      rank.stage(fmt::format("use {}", ++round));
      std::promise<Outcome> told;
      Work pending = comm.recv_async(y, peer, {.tag = 1});
      Work work = comm.recv_async(z, peer, {.tag = 2});
      const auto callback = [&] { told.set_value(outcome_of([&] { use(pending); })); };
      if (!has_ended) work.on_done(callback);
      rank.mark(0);
      rank.await(0, 2 * round);  // the callback is there: it is not called by on_done itself
      comm.send(x, peer, {.tag = 2});
      work.wait();
      if (has_ended) work.on_done(callback);
      const Outcome outcome = told.get_future().get();
      rank.check(outcome.kind == "InvalidArgument" &&
                     outcome.message.find("tell another thread") != std::string::npos,
                 fmt::format("use {}: {} {}", round, outcome.kind, outcome.message));
      rank.mark(1);
      rank.await(1, 2 * round);  // `pending` has been so all the time
      comm.send(x, peer, {.tag = 1});
      pending.wait();
      rank.check(y == x && z == x, "a message is wrong");
    }
    comm.barrier();
    comm.close();
  });
}

TEST(Async, ACallbackIsRefusedCallsOfItsCommunicator) { refuse_calls_of_callbacks(false); }
TEST(Async, ACallbackOfAnEndedCallIsRefusedThemToo) { refuse_calls_of_callbacks(true); }

// Otherwise a later call of this rank would be taken for the one that was refused.
TEST(Async, ACollectiveOfACallbackIsRefusedToAllRanks) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto comm = world.communicator().duplicate();
    const bool calls_back = rank.rank() == 0;
    std::vector<int> x(10);
    // How rank 0 gets a Work, when its callback is there, and how rank 1 lets the call end.
    struct Case {
      const char* name;
      bool has_ended;
      std::function<Work()> begin;
      std::function<void()> meet;
    };
    const std::vector<Case> cases{
        {"pending", false, [&] { return comm.all_reduce_async(x); }, [&] { comm.all_reduce(x); }},
        {"ended", true, [&] { return comm.all_reduce_async(x); }, [&] { comm.all_reduce(x); }},
        {"sent", true, [&] { return comm.send_async(x, 1); }, [&] { comm.recv(x, 0); }},
        {"sent to nobody", true, [&] { return comm.send_async(x, kNullRank); }, [] {}},
    };
    const std::vector<std::function<void(std::vector<int>&)>> uses{
        [&](std::vector<int>& y) { comm.all_reduce(y); },
        [&](std::vector<int>& y) { comm.all_reduce_async(y).wait(); },
        [&](std::vector<int>& y) { comm.prepare_all_reduce(y)(); },
        [&](std::vector<int>&) { static_cast<void>(comm.split({.color = 0})); },
        [&](std::vector<int>& y) {
          const std::vector<std::size_t> counts{5, 5};
          comm.reduce_scatter_v(std::vector<int>(10, 1), std::span(y).first(5), counts);
        },
    };
    int round = 0;
    for (const Case& each : cases) {
      for (const auto& use : uses) {
        rank.stage(fmt::format("{}, round {}", each.name, ++round));
        for (int i = 0; i < 40; ++i) comm.barrier();  // this thread gets the fast path
        std::vector<int> y(10, 1), later(10, rank.rank() + 1);
        Outcome outcome;
        if (calls_back) {
          std::promise<Outcome> told;
          const auto callback = [&] { told.set_value(outcome_of([&] { use(y); })); };
          Work work = each.begin();
          if (!each.has_ended) work.on_done(callback);
          rank.mark(0);
          work.wait();
          if (each.has_ended) work.on_done(callback);
          outcome = told.get_future().get();
        } else {
          if (!each.has_ended) rank.await(0, round);
          each.meet();
          outcome = outcome_of([&] { use(y); });
        }
        rank.check(outcome.kind == "InvalidArgument" &&
                       outcome.message.find("tell another thread") != std::string::npos,
                   fmt::format("{}: {} {}", each.name, outcome.kind, outcome.message));
        comm.all_reduce(later);
        rank.check(y == std::vector(10, 1) && later == std::vector(10, 3),
                   fmt::format("{}: calls are paired wrongly", each.name));
      }
    }
    comm.close();
  });
}

TEST(Async, ACallbackHasAFunction) {
  run_threads(2, [](Communicator& comm) {
    std::vector<int> x{comm.rank()};
    std::vector<int> all(2);
    std::atomic<int> calls{0};
    Work pending = comm.all_gather_async(x, all);
    Work ended = comm.barrier_async();
    ended.wait();
    Work none;
    for (Work* work : {&pending, &ended, &none}) {
      const std::function<void()> functions[] = {nullptr, {}};
      for (const auto& f : functions) {
        const Outcome outcome = outcome_of([&] { work->on_done(f); });
        EXPECT_EQ(outcome.kind, "InvalidArgument");
        EXPECT_NE(outcome.message.find("f is empty"), std::string::npos) << outcome.message;
      }
      work->on_done([&] { ++calls; });
      work->wait();
    }
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(all, std::vector<int>({0, 1}));
  });
}

// More ranks than processors: waits must give the processor away.
TEST(Async, EightRanksMakeTwoThousandMixedCalls) {
  run_job({.size = 8, .watchdog = std::chrono::seconds(120)}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::mt19937 random(5);
    Arrays arrays(8, 3000);
    for (int i = 0; i < 2000; ++i) {
      if (i % 100 == 0) rank.stage(fmt::format("call {}", i));
      const auto& each = collectives()[random() % collectives().size()];
      Arrays small(8, 1 + random() % 50);
      each.run(comm, i % 50 == 0 ? arrays : small, static_cast<int>(random() % 8), {});
    }
    const std::string wrong = wrong_results(comm, 3, 77);
    rank.check(wrong.empty(), wrong);
  });
}

}  // namespace
}  // namespace hocket::multiprocess
