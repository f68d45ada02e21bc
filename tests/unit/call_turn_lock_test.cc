// One thread at a time, however it comes in: the counters below are plain on purpose.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "calls/call/turn_lock.h"

namespace hocket::call {
namespace {

using Who = TurnLock::Who;

bool fences() { return os::register_for_heavy_fence() && os::heavy_fence(); }

// Comes in as a user's thread does and says whether it did.
template <typename F>
bool visit(TurnLock& lock, F inside) {
  if (lock.enter_fast()) {
    inside();
    lock.leave_fast();
    return true;
  }
  if (!lock.try_enter(Who::kUser)) return false;
  inside();
  lock.leave_quietly();
  return true;
}

void become_favourite(TurnLock& lock) {
  for (int i = 0; i < 100 && !lock.enter_fast(); ++i) {
    ASSERT_TRUE(lock.try_enter(Who::kUser));
    lock.leave_quietly();
    if (i == 99) FAIL() << "a hundred visits made no favourite";
  }
  lock.leave_fast();
}

TEST(TurnLock, whoever_comes_often_gets_the_short_way) {
  if (!fences()) GTEST_SKIP() << "this kernel has no membarrier";
  TurnLock lock(true);
  EXPECT_FALSE(lock.enter_fast());
  become_favourite(lock);
}

TEST(TurnLock, without_fences_there_is_no_short_way) {
  TurnLock lock(false);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(lock.enter_fast());
    ASSERT_TRUE(lock.try_enter(Who::kUser));
    lock.leave_quietly();
  }
}

// A thread that reads it while another enters would take that one's call for its own.
TEST(TurnLock, a_user_that_has_left_is_not_here) {
  TurnLock lock(fences());
  EXPECT_FALSE(lock.is_user_here());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(visit(lock, [&] { EXPECT_TRUE(lock.is_user_here()); }));
    EXPECT_FALSE(lock.is_user_here());
  }
}

// Whichever way a user came in: others take steps meanwhile, and other users see that one is in.
void expect_lent(TurnLock& lock) {
  lock.lend();
  Who found = Who::kNobody;
  std::thread([&] {
    EXPECT_FALSE(lock.try_enter(Who::kUser, &found));
    EXPECT_FALSE(lock.is_user_here());
    for (const Who who : {Who::kProgress, Who::kWaiter}) {
      ASSERT_TRUE(lock.try_enter(who));
      EXPECT_FALSE(lock.try_enter(Who::kUser));
      lock.leave();
    }
  }).join();
  EXPECT_EQ(found, Who::kUser);
  EXPECT_TRUE(lock.is_user_here());
  lock.take_back();
  EXPECT_FALSE(lock.try_enter(Who::kProgress, &found));
  EXPECT_EQ(found, Who::kUser);
}

TEST(TurnLock, a_user_lends_its_place_to_those_who_take_steps) {
  TurnLock lock(fences());
  ASSERT_TRUE(lock.try_enter(Who::kUser));
  expect_lent(lock);
  lock.leave();
  ASSERT_TRUE(lock.try_enter(Who::kProgress)) << "the place is free";
  lock.leave();
}

TEST(TurnLock, so_does_the_favourite) {
  if (!fences()) GTEST_SKIP() << "this kernel has no membarrier";
  TurnLock lock(true);
  become_favourite(lock);
  ASSERT_TRUE(lock.enter_fast());
  expect_lent(lock);
  lock.leave_fast();
  EXPECT_FALSE(lock.enter_fast()) << "the fast path was taken away meanwhile";
  ASSERT_TRUE(lock.try_enter(Who::kProgress)) << "the place is free";
  lock.leave();
  become_favourite(lock);
}

TEST(TurnLock, a_step_that_goes_on_is_awaited_when_the_place_is_taken_back) {
  TurnLock lock(fences());
  constexpr int kTurns = 2000;
  int count = 0;
  std::atomic<bool> over{false};
  std::thread steps([&] {
    while (!over) {
      if (!lock.try_enter(Who::kProgress)) continue;
      ++count;
      lock.leave();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    if (lock.enter_fast()) {
      lock.lend();
      lock.take_back();
      ++count;
      lock.leave_fast();
    } else if (lock.try_enter(Who::kUser)) {
      lock.lend();
      lock.take_back();
      ++count;
      lock.leave_quietly();
    }
  }
  over = true;
  steps.join();
  EXPECT_GT(count, 0);
}

TEST(TurnLock, others_see_the_favourite_inside_and_then_take_its_place) {
  if (!fences()) GTEST_SKIP() << "this kernel has no membarrier";
  TurnLock lock(true);
  become_favourite(lock);
  ASSERT_TRUE(lock.enter_fast());
  EXPECT_FALSE(lock.enter_fast()) << "from within";
  Who found = Who::kNobody;
  std::thread([&] {
    EXPECT_FALSE(lock.try_enter(Who::kUser, &found));
    EXPECT_FALSE(lock.is_user_here());
  }).join();
  EXPECT_EQ(found, Who::kUser);
  EXPECT_TRUE(lock.is_user_here());
  lock.leave_fast();

  std::thread([&] {
    ASSERT_TRUE(lock.try_enter(Who::kProgress));
    EXPECT_TRUE(lock.is_progress());
  }).join();
  EXPECT_FALSE(lock.enter_fast()) << "the fast path was taken away";
  EXPECT_FALSE(lock.try_enter(Who::kUser, &found));
  EXPECT_EQ(found, Who::kProgress);
  lock.leave();
  become_favourite(lock);
}

TEST(TurnLock, who_waits_is_told_from_who_makes_a_call) {
  if (!fences()) GTEST_SKIP() << "this kernel has no membarrier";
  TurnLock lock(true);
  ASSERT_TRUE(lock.try_enter(Who::kWaiter));
  Who found = Who::kNobody;
  std::thread([&] { EXPECT_FALSE(lock.try_enter(Who::kUser, &found)); }).join();
  EXPECT_EQ(found, Who::kWaiter);
  EXPECT_FALSE(lock.is_progress());
  lock.leave();
  // Waiting for one's own calls in between does not cost the fast path.
  for (int i = 0; i < 40 && !lock.enter_fast(); ++i) {
    ASSERT_LT(i, 39) << "no visits made a favourite";
    ASSERT_TRUE(lock.try_enter(Who::kUser));
    lock.leave_quietly();
    if (i == 5) {
      ASSERT_TRUE(lock.try_enter(Who::kWaiter));
      lock.leave();
    }
  }
  lock.leave_fast();
}

TEST(TurnLock, lets_in_one_at_a_time) {
  TurnLock lock(fences());
  constexpr int kThreads = 3;
  constexpr int kVisits = 100'000;
  long inside = 0;
  std::vector<long> entered(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kVisits; ++i) {
        // Entries come in bursts, so that each thread is the favourite now and then.
        entered[t] += visit(lock, [&] { inside = inside + 1; });
        if (i % 500 == 499) std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(inside, entered[0] + entered[1] + entered[2]);
  for (const long count : entered) EXPECT_GT(count, 0);
}

// A signal's handler finds its own thread inside, whichever instruction the signal interrupts.
// Otherwise the handler's call would wait for ever for a thread that it holds up.
struct Interrupted {
  TurnLock lock{fences()};
  std::atomic<int> handled{0};
  std::atomic<int> lost{0};
};
Interrupted* interrupted = nullptr;

void come_by_signal(int /*number*/) {
  TurnLock& lock = interrupted->lock;
  if (lock.enter_fast()) {
    lock.leave_fast();
  } else if (lock.try_enter(Who::kUser)) {
    lock.leave();
  } else if (!lock.is_user_here() && !lock.is_step_here()) {
    ++interrupted->lost;
  }
  ++interrupted->handled;
}

TEST(TurnLock, a_signal_s_handler_finds_its_own_thread_inside) {
  constexpr int kSignals = 5000;
  Interrupted state;
  interrupted = &state;
  struct sigaction before{};
  struct sigaction handler{};
  handler.sa_handler = &come_by_signal;
  ASSERT_EQ(::sigaction(SIGUSR1, &handler, &before), 0);
  std::thread sender([&state, victim = ::pthread_self()] {
    for (int sent = 0; sent < kSignals; ++sent) {
      ::pthread_kill(victim, SIGUSR1);
      while (state.handled.load() <= sent) std::this_thread::yield();
    }
  });
  for (int i = 0; state.handled.load() < kSignals; ++i) {
    if (i % 64 < 32) {
      if (state.lock.try_enter(Who::kWaiter)) state.lock.leave();
    } else if (state.lock.enter_fast()) {
      state.lock.leave_fast();
    } else if (state.lock.try_enter(Who::kUser)) {
      state.lock.lend();
      state.lock.take_back();
      state.lock.leave_quietly();
    }
  }
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(state.lost.load(), 0);
}

}  // namespace
}  // namespace hocket::call
