#include "base/interrupt.h"

#include <atomic>

#include "hocket/interrupt.h"

namespace hocket {
namespace {
// A signal is the process's, and so is the one hook that looks for it.
std::atomic<bool (*)()> registered_check{nullptr};
}  // namespace

void set_interrupt_check(bool (*check)()) noexcept { registered_check.store(check); }

namespace base {
bool interrupted() {
  bool (*check)() = registered_check.load(std::memory_order_relaxed);
  return check != nullptr && check();
}
}  // namespace base
}  // namespace hocket
