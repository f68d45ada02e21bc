// A waiting thread looks at more than what it waits for.
#pragma once

#include <functional>

namespace hocket::base {

// A resource: while it lives, every wait of this thread that heeds interrupts (foundation/base/interrupt.h)
// calls `look` again and again, at least every 20 ms. What `look` throws ends the wait. One a
// thread; made and destroyed by that thread.
class Lookout {
 public:
  explicit Lookout(std::function<void()> look);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  ~Lookout();

  // This thread's waits look no longer: what was looked out for cannot come any more.
  static void end() noexcept;

 private:
  friend void look_out();
  std::function<void()> look_;
};

}  // namespace hocket::base
