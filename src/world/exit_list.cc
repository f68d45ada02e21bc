#include "world/exit_list.h"

#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "call/core.h"
#include "world/world.h"
#include "hocket/exit.h"

namespace hocket {

bool finish_calls() noexcept {
  world::ExitList& list = world::ExitList::instance();
  list.finish_calls();
  return !list.has_reported();
}

namespace world {

ExitList& ExitList::instance() {
  static ExitList* const list = new ExitList;  // outlives all destructors
  return *list;
}

void ExitList::add(std::weak_ptr<WorldImpl> world) {
  static const int once = std::atexit([] { instance().leave_all(); });
  static_cast<void>(once);
  const std::lock_guard lock(mutex_);
  std::erase_if(worlds_, [](const auto& entry) { return entry.expired(); });
  worlds_.push_back(std::move(world));
}

void ExitList::add(std::weak_ptr<call::Core> communicator) {
  // Handlers are called in the opposite order; what the GNU C library's exit does when it is called
  // by one is to go on with the rest, and to take the newer code.
  static const int once = ::on_exit(
      [](int code, void*) {
        instance().finish_calls();
        if (code == 0 && instance().has_reported()) std::exit(1);
      },
      nullptr);
  static_cast<void>(once);
  const std::lock_guard lock(mutex_);
  std::erase_if(communicators_, [](const auto& entry) { return entry.expired(); });
  communicators_.push_back(std::move(communicator));
}

void ExitList::finish_calls() noexcept {
  std::vector<std::weak_ptr<call::Core>> communicators;
  {
    const std::lock_guard lock(mutex_);
    communicators = communicators_;
  }
  for (const auto& entry : communicators) {
    const auto communicator = entry.lock();
    if (!communicator) continue;
    try {
      communicator->finish_device_calls();
    } catch (const std::exception& error) {
      report(error.what());
    }
  }
}

void ExitList::report(const std::string& error) noexcept {
  base::log(base::LogLevel::kError,
            "a call on a GPU has failed, and what it should have brought was not: " + error);
  const std::lock_guard lock(mutex_);
  reported_by_ = ::getpid();
}

bool ExitList::has_reported() const noexcept {
  const std::lock_guard lock(mutex_);
  return reported_by_ == ::getpid();
}

void ExitList::leave_all() noexcept {
  std::vector<std::weak_ptr<WorldImpl>> worlds;
  {
    const std::lock_guard lock(mutex_);
    worlds.swap(worlds_);
  }
  for (const auto& entry : worlds) {
    const auto world = entry.lock();
    if (world && !world->forked()) world->depart(WorldImpl::Manner::kAtExit);
  }
}

}  // namespace world
}  // namespace hocket
