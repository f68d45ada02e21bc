// Threads of which none begins unless all can, where memory ends at any point of their start.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "foundation/base/poll.h"
#include "foundation/base/threads.h"
#include "hocket/error.h"

namespace {
thread_local int allocations_left = -1;  // until one fails; -1: none does
}

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace hocket::base {
namespace {

// Before any thread has run, whose stack would be used again.
TEST(Threads, WhatTheSystemRefusesIsSaidWithTheLimits) {
  std::free(std::malloc(1 << 18));  // room for the words
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_AS, &none);
  std::string said;
  int number = 0;
  try {
    start_thread("hocket", [] {}).join();
  } catch (const SystemError& error) {
    said = error.what();
    number = error.error_number();
  }
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(number, EAGAIN);
  EXPECT_NE(said.find("cannot start the thread \"hocket\" (see `ulimit -u`"), std::string::npos)
      << said;
}

TEST(Threads, OneOfHocketsOwnTakesNoSignals) {
  sigset_t blocked;
  std::string name(16, '\0');
  start_thread("hocket-test", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    while (std::string_view(name.c_str()) != "hocket-test") {  // named by who started it
      pthread_getname_np(pthread_self(), name.data(), name.size());
    }
  }).join();
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGINT), 0);
}

TEST(Threads, RunAllOrNoneWhereMemoryEnds) {
  constexpr int kThreads = 4;
  bool has_failed = false, has_run = false;
  for (int n = 0; !has_run; ++n) {
    ASSERT_LT(n, 1000);
    std::atomic<int> ran = 0;
    try {
      const std::function<void(int)> body = [&](int) { ++ran; };
      allocations_left = n;
      auto threads = start_threads(kThreads, body);
      allocations_left = -1;
      threads.clear();
      EXPECT_EQ(ran, kThreads);
      has_run = true;
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(ran, 0) << "allocation " << n;
      has_failed = true;
    }
  }
  EXPECT_TRUE(has_failed);
}

TEST(Polls, LookUntilItIsSoOrTheTimeIsOver) {
  int looks = 0;
  const auto third = [&] { return ++looks == 3; };
  EXPECT_TRUE(poll_until(third, Deadline::never(), std::chrono::microseconds(1)));
  EXPECT_EQ(looks, 3);
  // A condition that is already true takes no time. Without time, a condition gets one look.
  looks = 2;
  EXPECT_TRUE(poll_until(third, Deadline::in(Duration(0)), kForever));
  looks = 0;
  EXPECT_FALSE(poll_until(third, Deadline::in(Duration(0)), kForever));
  EXPECT_EQ(looks, 1);
  // It does not sleep for ever: not between the first looks, and not past the deadline.
  looks = 0;
  EXPECT_TRUE(poll_until(third, Deadline::never(), kForever, 2));
  EXPECT_FALSE(poll_until(third, Deadline::in(std::chrono::milliseconds(1)), kForever));
}

TEST(Polls, EndByWhatTheLookThrows) {
  const auto refuse = []() -> bool { throw InvalidArgument("no"); };
  EXPECT_THROW(poll_until(refuse, Deadline::never(), kForever), InvalidArgument);
}

}  // namespace
}  // namespace hocket::base
