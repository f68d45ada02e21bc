#include "base/interrupt.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "hocket/error.h"
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

void throw_if_interrupted(std::string_view what) {
  if (!interrupted()) return;
  throw Aborted({.code = ErrorCode::kAborted,
                 .message = fmt::format("{} was interrupted by the user", what)});
}

Deadline until_asked(Deadline deadline) noexcept {
  if (registered_check.load(std::memory_order_relaxed) == nullptr) return deadline;
  return std::min(deadline, Deadline::in(std::chrono::milliseconds(50)));
}

}  // namespace base
}  // namespace hocket
