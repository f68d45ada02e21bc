#include "foundation/base/interrupt.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "foundation/base/lookout.h"
#include "hocket/error.h"
#include "hocket/interrupt.h"

namespace hocket {
namespace {
// The function of `set_interrupt_check`. It is global, because signals belong to the whole process.
std::atomic<bool (*)()> registered_check{nullptr};

constexpr std::chrono::milliseconds kBetweenLooks{20};
constexpr std::chrono::milliseconds kBetweenChecks{50};
}  // namespace

void set_interrupt_check(bool (*check)()) noexcept { registered_check.store(check); }

namespace base {

namespace {
// The Lookout of this thread; null if there is none. A thread has one while it joins a job.
thread_local Lookout* lookout = nullptr;
}  // namespace

Lookout::Lookout(std::function<void()> look) : look_(std::move(look)) { lookout = this; }
Lookout::~Lookout() { lookout = nullptr; }
void Lookout::end() noexcept { lookout = nullptr; }

void look_out() {
  if (lookout != nullptr) lookout->look_();
}

bool interrupted() {
  bool (*check)() = registered_check.load(std::memory_order_relaxed);
  return check != nullptr && check();
}

void throw_if_interrupted(std::string_view what) {
  if (!interrupted()) return look_out();
  throw Aborted({.code = ErrorCode::kAborted,
                 .message = fmt::format("{} was interrupted by the user", what)});
}

Deadline until_asked(Deadline deadline) noexcept {
  if (lookout != nullptr) return std::min(deadline, Deadline::in(kBetweenLooks));
  if (registered_check.load(std::memory_order_relaxed) == nullptr) return deadline;
  return std::min(deadline, Deadline::in(kBetweenChecks));
}

}  // namespace base
}  // namespace hocket
