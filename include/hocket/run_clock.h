// The clock of all deadlines. It counts the time in which this process could run.
#pragma once

#include <chrono>
#include <cstdint>

#include "hocket/cplusplus.h"

namespace hocket {

// A clock as in std::chrono, for one process. While a RunClock::Watch lives, the clock leaves out
// time in which the process was stopped or its machine suspended. Such a gap is a pause between two
// beats of the watch's thread that is far longer than the thread's sleep. Each gap still counts as
// a fifth of a second. Without a watch this is the steady clock. Any thread may use it.
class RunClock {
 public:
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RunClock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;

  // A resource: the thread "hocket-clock" runs while any watch lives. If the system provides no
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
