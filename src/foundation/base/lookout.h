// Lets a thread check for other events while it waits.
#pragma once

#include <functional>

namespace hocket::base {

// A resource. While it exists, every wait of this thread that supports interrupts
// (foundation/base/interrupt.h) calls `look` at least every 20 ms. An exception of `look` ends the
// wait. A thread has at most one Lookout, which it makes and destroys itself.
class Lookout {
 public:
  explicit Lookout(std::function<void()> look);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  ~Lookout();

  // Removes this thread's Lookout early, when the event can no longer occur.
  static void end() noexcept;

 private:
  friend void look_out();
  std::function<void()> look_;
};

}  // namespace hocket::base
