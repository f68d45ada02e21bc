// The clock of all deadlines: it counts the time in which this process could run.
#pragma once

#include <chrono>
#include <cstdint>

#include "hocket/cplusplus.h"

namespace hocket {

// A clock as std::chrono has them. While a RunClock::Watch lives, it leaves out what lies between
// two beats of the watch's thread, as long as that is far longer than the watch sleeps: the process
// was stopped, or its machine was suspended. Each such gap still counts as a fifth of a second.
// Without a watch this is the steady clock. Any thread.
class RunClock {
 public:
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;

  // A resource: the thread "hocket-clock" runs while any of these lives. Where the system gives no
  // thread, the clock counts all time. After a fork, the child's copies do nothing.
  class Watch {
   public:
    Watch() noexcept;
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    void* thread_;
  };
};

}  // namespace hocket
