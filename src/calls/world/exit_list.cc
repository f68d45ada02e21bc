#include "calls/world/exit_list.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "calls/call/core.h"
#include "calls/world/world.h"
#include "foundation/base/log.h"
#include "foundation/base/threads.h"
#include "hocket/exit.h"

namespace hocket {

bool finish_calls() noexcept {
  world::ExitList& list = world::ExitList::instance();
  list.finish_calls();
  return !list.has_reported();
}

void announce_failure() noexcept { world::ExitList::instance().say_goodbye(); }
void tell_end(std::string_view why) noexcept { world::ExitList::instance().tell_end(why); }

void tell_trouble(std::string_view what) noexcept {
  world::ExitList::instance().tell_trouble(what);
}

namespace world {

using base::Deadline;

namespace {

// Time that closing may take in addition to the calls that it waits for.
constexpr std::chrono::seconds kPatience{10};

thread_local bool is_apart = false;

}  // namespace

ExitList& ExitList::instance() {
  static ExitList* const list = new ExitList;  // outlives all destructors
  return *list;
}

void ExitList::add(std::weak_ptr<WorldImpl> world) {
  static const int once = ::on_exit(
      [](int code, void*) {
        instance().compare_calls();
        const int status = instance().status_of(code);
        instance().leave_kept(status);
        instance().leave_all(status);
        end_with_error(code);
      },
      nullptr);
  static_cast<void>(once);
  const std::lock_guard lock(mutex_);
  std::erase_if(worlds_, [](const auto& entry) { return entry.expired(); });
  worlds_.push_back(std::move(world));
}

void ExitList::add(std::weak_ptr<call::Core> communicator) {
  const std::lock_guard lock(mutex_);
  communicators_.add(std::move(communicator));
}

void ExitList::add_with_gpus(std::weak_ptr<call::Core> communicator) {
  static const int once = ::on_exit(
      [](int code, void*) {
        instance().finish_calls();
        instance().leave_kept(instance().status_of(code));  // before the GPU's driver ends
        instance().exit();
        end_with_error(code);
      },
      nullptr);
  static_cast<void>(once);
  const std::lock_guard lock(mutex_);
  with_gpus_.add(std::move(communicator));
}

// exit() calls handlers in reverse order. If a handler calls exit() again, the GNU C library runs
// the remaining ones and uses the new code.
void ExitList::end_with_error(int code) noexcept {
  if (instance().status_of(code) != code) std::exit(1);
}

int ExitList::status_of(int code) const noexcept { return code == 0 && has_reported() ? 1 : code; }

bool ExitList::run_apart(std::function<void()> end, Duration allowed) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (exits_) return false;
    // In a forked child, `apart_` still counts the parent's threads.
    if (std::exchange(apart_of_, ::getpid()) != ::getpid()) apart_ = 0;
    const auto until = Deadline::in(allowed == kForever ? kForever : allowed + kPatience);
    apart_until_ = apart_++ == 0 ? until : std::max(apart_until_, until);
  }
  const auto note_end = [this] {
    const std::lock_guard lock(mutex_);
    --apart_;
    apart_ended_.notify_all();
  };
  try {
    base::start_thread("hocket-end", [note_end, end = std::move(end)] {
      is_apart = true;
      end();
      note_end();
    }).detach();
    return true;
  } catch (...) {
    note_end();
    return false;
  }
}

void ExitList::Communicators::add(std::weak_ptr<call::Core> communicator) {
  if (all_.size() >= cleared_at_) {
    std::erase_if(all_, [](const auto& entry) { return entry.expired(); });
    cleared_at_ = 2 * all_.size() + 16;
  }
  all_.push_back(std::move(communicator));
}

std::vector<std::shared_ptr<call::Core>> ExitList::Communicators::living() const {
  std::vector<std::shared_ptr<call::Core>> living;
  for (const auto& entry : all_) {
    if (auto communicator = entry.lock()) living.push_back(std::move(communicator));
  }
  return living;
}

void ExitList::call_each(const Communicators& communicators, void (*step)(call::Core&)) noexcept {
  const auto living = [&] {
    const std::lock_guard lock(mutex_);
    return communicators.living();
  }();
  for (const auto& communicator : living) {
    try {
      step(*communicator);
    } catch (const std::exception& error) {
      report(error.what());
    }
  }
}

void ExitList::compare_calls() noexcept {
  call_each(communicators_, [](call::Core& core) { core.closing.compare_at_exit(); });
}

void ExitList::finish_calls() noexcept {
  call_each(with_gpus_, [](call::Core& core) { core.finish_device_calls(); });
  compare_calls();
  if (!await_apart()) report("a communicator that was let go of has not come to its end");
}

bool ExitList::await_apart() noexcept {
  if (is_apart) return true;
  std::unique_lock lock(mutex_);
  const auto have_ended = [this] { return apart_ == 0 || apart_of_ != ::getpid(); };
  while (!have_ended() && !apart_until_.has_passed()) {
    apart_ended_.wait_for(lock, std::min<Duration>(apart_until_.left(), std::chrono::seconds(1)));
  }
  return have_ended();
}

void ExitList::report(const std::string& error) noexcept {
  base::log(base::LogLevel::kError,
            "a call has failed, and the program ended without hearing of it: " + error);
  const std::lock_guard lock(mutex_);
  reported_by_ = ::getpid();
}

bool ExitList::has_reported() const noexcept {
  const std::lock_guard lock(mutex_);
  return reported_by_ == ::getpid();
}

void ExitList::exit() noexcept {
  const std::lock_guard lock(mutex_);
  exits_ = true;
}

std::vector<std::shared_ptr<WorldImpl>> ExitList::living_worlds() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<WorldImpl>> living;
  for (const auto& entry : worlds_) {
    if (auto world = entry.lock()) living.push_back(std::move(world));
  }
  return living;
}

void ExitList::tell_end(std::string_view why) noexcept {
  try {
    for (const auto& world : living_worlds()) world->tell_end(why);
  } catch (const std::bad_alloc&) {  // the other ranks then learn only the exit status
  }
}

void ExitList::say_goodbye() noexcept {
  try {
    for (const auto& world : living_worlds()) world->say_goodbye();
  } catch (const std::bad_alloc&) {  // the launcher then sees only the ends of processes
  }
}

void ExitList::tell_trouble(std::string_view what) noexcept {
  try {
    for (const auto& world : living_worlds()) world->tell_trouble(what);
  } catch (const std::bad_alloc&) {  // then the other ranks do not learn of it
  }
}

bool ExitList::keep(std::shared_ptr<WorldImpl> world) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(world));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ExitList::leave_kept(int status) noexcept {
  std::vector<std::shared_ptr<WorldImpl>> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
  }
  for (const auto& world : kept) {
    world->tell_status(status);
    world->set_ending();
    world->leave();
  }
}

void ExitList::leave_all(int status) noexcept {
  std::vector<std::weak_ptr<WorldImpl>> worlds;
  {
    const std::lock_guard lock(mutex_);
    worlds.swap(worlds_);
  }
  for (const auto& entry : worlds) {
    const auto world = entry.lock();
    if (!world || world->forked()) continue;
    world->tell_status(status);
    world->set_ending();
    world->say_goodbye();
    world->depart(WorldImpl::Manner::kAtExit);
  }
}

}  // namespace world
}  // namespace hocket
