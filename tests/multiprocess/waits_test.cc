// Waits for the first of several calls to end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Places = std::vector<std::size_t>;

TEST(Waits, AnyReturnsThemAsTheyEnd) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator& comm = world.communicator();
    const std::array<int, 4> order{2, 0, 3, 1};
    if (rank.rank() == 1) {
      for (int i = 0; i < 4; ++i) {
        rank.await(0, i + 1);
        comm.send(std::vector<int>(10, order[static_cast<std::size_t>(i)]),
                  0,
                  {.tag = order[static_cast<std::size_t>(i)]});
      }
      rank.await(1, 1);
      return;
    }
    std::array<std::vector<int>, 4> in;
    std::vector<Work> works;
    for (int tag = 0; tag < 4; ++tag) {
      in[static_cast<std::size_t>(tag)].resize(10);
      works.push_back(comm.recv_async(in[static_cast<std::size_t>(tag)], 1, {.tag = tag}));
    }
    Places places{0, 1, 2, 3};  // of the works that are left
    for (const int expected : order) {
      rank.check(!wait_any(works, Duration::zero()), "something has ended before it was sent");
      rank.mark(0);
      const std::size_t at = wait_any(works).value();
      rank.check(places[at] == static_cast<std::size_t>(expected),
                 fmt::format("{} came, expected {}", places[at], expected));
      works[at].wait();
      rank.check(in[places[at]] == std::vector<int>(10, expected), "the message is wrong");
      works.erase(works.begin() + static_cast<std::ptrdiff_t>(at));
      places.erase(places.begin() + static_cast<std::ptrdiff_t>(at));
    }
    rank.mark(1);
  });
}

// A thread that sleeps waits for calls of several communicators.
TEST(Waits, SomeReturnsAllThatHaveEnded) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator other = world.communicator().duplicate();
    std::vector<int> a(4), b(4), c(4);
    const std::vector<int> one(4, 1);
    if (rank.rank() == 1) {
      rank.await(0, 1);
      other.send(one, 0, {.tag = 7});
      rank.await(0, 2);
      world.communicator().send(one, 0);
      rank.await(1, 1);
      return;
    }
    std::vector<Work> works;
    works.push_back(world.communicator().recv_async(a, 1));
    works.push_back(other.recv_async(b, 1, {.tag = 8}));
    works.push_back(other.recv_async(c, 1, {.tag = 7}));
    std::jthread later([&] {
      std::this_thread::sleep_for(milliseconds(20));  // so that the other sleeps
      rank.mark(0);
    });
    rank.check(wait_some(works) == Places{2}, "the second communicator's");
    works.emplace_back();  // of nothing: has ended
    rank.check(wait_some(works) == Places{2, 3}, "two that have ended");
    rank.mark(0);
    works[0].wait();
    rank.check(wait_some(works) == Places{0, 2, 3}, "three that have ended");
    rank.check(!wait_all(works, milliseconds(5)), "one is pending");
    other.abort("enough");
    rank.check(wait_some(std::span(works).subspan(1, 1)) == Places{0}, "it has ended by an error");
    const Outcome outcome = outcome_of([&] { wait_all(works); });
    rank.check(outcome.kind == "Aborted", outcome.kind + outcome.message);
    rank.mark(1);
  });
}

TEST(Waits, AllReturnsWhenAllHaveEnded) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    std::vector<std::vector<int>> arrays(20, std::vector<int>(1000, rank.rank()));
    std::vector<Work> works;
    for (auto& array : arrays) works.push_back(world.communicator().all_reduce_async(array));
    wait_all(works);
    rank.check(std::ranges::all_of(works, [](Work& work) { return work.test(); }),
               "one is pending");
    rank.check(arrays == std::vector(20, std::vector<int>(1000, 3)), "a sum is wrong");
  });
}

TEST(Waits, WhatCannotEndIsRefused) {
  std::array<Work, 1> done;
  EXPECT_EQ(wait_some(done), Places{0});
  EXPECT_THROW(static_cast<void>(wait_some({})), InvalidArgument);
  Work* const none[] = {nullptr};
  EXPECT_THROW(static_cast<void>(wait_some_of(none)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(wait_any_of(none)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(wait_all_of(none, kForever)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(wait_any({})), InvalidArgument);
  EXPECT_THROW(static_cast<void>(wait_any(done, seconds(-1))), InvalidArgument);
  EXPECT_THROW(static_cast<void>(wait_all(done, seconds(-1))), InvalidArgument);
  wait_all({});
}

}  // namespace
}  // namespace hocket::multiprocess
