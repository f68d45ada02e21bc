// Waits for the first of several calls to end. It serves event loops, `wait_any`, and packages that
// pass results on to handles of their own.
#include <nanobind/stl/optional.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "communicator_object.h"
#include "docstrings.h"
#include "hocket/error.h"

namespace hocket::python {
namespace {

using Keys = std::list<std::uint64_t>;

// A queue of keys; each key stands for one call that has ended. A resource, shared by its waiters
// and the watched calls. Any thread may use it.
class Endings {
 public:
  Endings() = default;
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;
  ~Endings() {
    if (event_ >= 0) ::close(event_);
  }

  // Adds a key. It runs in the thread that ends a call, so it must not fail or wait. Therefore
  // `key` comes as a list with one entry, which is moved without an allocation.
  void add(Keys& key) noexcept {
    const std::lock_guard lock(mutex_);
    ended_.splice(ended_.end(), key);
    changed_.notify_one();
    signal();
  }

  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Waits for the next key and returns it. Returns nothing if the timeout passes, or if the queue
  // is closed and empty. A watched call ends by its deadline at the latest, and then adds its key.
  std::optional<std::uint64_t> next(Duration timeout) {
    std::unique_lock lock(mutex_);
    const auto has_news = [&] { return closed_ || !ended_.empty(); };
    if (timeout == kForever) {
      changed_.wait(lock, has_news);
    } else {
      changed_.wait_for(lock, timeout, has_news);
    }
    if (ended_.empty()) return std::nullopt;
    const std::uint64_t key = ended_.front();
    ended_.pop_front();
    return key;
  }

  // Returns all keys in the queue, without waiting.
  Keys take() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    if (event_ >= 0 && ::read(event_, &count, sizeof count) < 0 && errno != EAGAIN) {
      throw SystemError("cannot read an event's descriptor", errno);
    }
    return std::exchange(ended_, {});
  }

  // Returns a descriptor that is readable while `take` would return a key. The first call creates
  // it.
  int descriptor() {
    const std::lock_guard lock(mutex_);
    if (event_ >= 0) return event_;
    event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_ < 0) throw SystemError("eventfd is refused", errno);
    if (!ended_.empty()) signal();
    return event_;
  }

 private:
  void signal() const noexcept {
    if (event_ < 0) return;
    const std::uint64_t one = 1;
    // A write fails only if the counter is full. The descriptor is readable then, which is enough.
    static_cast<void>(!::write(event_, &one, sizeof one));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Keys ended_;           // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
  int event_ = -1;       // guarded by mutex_; -1: nobody has asked for a descriptor
};

using Shared = std::shared_ptr<Endings>;

}  // namespace

// The queues that get a key when one call ends. A resource; any thread may use it.
class Watchers {
 public:
  // Adds `key` to `endings` when the call ends, or at once if the call has already ended.
  void add(const Shared& endings, std::uint64_t key) {
    Keys own(1, key);
    const std::lock_guard lock(mutex_);
    if (has_ended_) {
      endings->add(own);
      return;
    }
    watching_.remove_if([](const Watch& watch) { return watch.endings.expired(); });
    watching_.push_back({endings, std::move(own)});
  }

  void remove(const Shared& endings) noexcept {
    const std::lock_guard lock(mutex_);
    watching_.remove_if([&](const Watch& watch) { return watch.endings.lock() == endings; });
  }

  void end() noexcept {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    for (Watch& watch : watching_) {
      if (const Shared endings = watch.endings.lock()) endings->add(watch.key);
    }
    watching_.clear();
  }

 private:
  struct Watch {
    std::weak_ptr<Endings> endings;
    Keys key;
  };
  std::mutex mutex_;
  std::list<Watch> watching_;  // guarded by mutex_
  bool has_ended_ = false;     // guarded by mutex_
};

namespace {

void watch(const Shared& endings, WorkHandle& work, std::uint64_t key) {
  if (work.watchers == nullptr) {
    work.watchers = std::make_shared<Watchers>();
    work.work.on_done([watchers = work.watchers] { watchers->end(); });
  }
  work.watchers->add(endings, key);
}

nb::list take(Endings& endings) {
  nb::list keys;
  for (const std::uint64_t key : endings.take()) keys.append(key);
  return keys;
}

}  // namespace

void bind_endings(nb::module_& module) {
  using nb::arg;
  struct Handle {
    Shared endings = std::make_shared<Endings>();
  };
  module.def(
      "_write_unraisable",
      [](nb::handle error, nb::handle where) {
        PyErr_SetObject(error.type().ptr(), error.ptr());
        PyErr_WriteUnraisable(where.ptr());
      },
      nb::sig("def _write_unraisable(error: BaseException, where: Any) -> None"),
      "Gives an exception that no caller can get to `sys.unraisablehook`.");
  nb::class_<Handle>(module, "_Endings", "Calls in host memory that are waited for together.")
      .def(nb::init<>())
      .def(
          "watch",
          [](Handle& h, WorkHandle& work, std::uint64_t key) { watch(h.endings, work, key); },
          arg("work").lock(),
          arg("key"),
          nb::sig("def watch(self, work: Work, key: int) -> None"),
          "Have `next` return `key` once the call has ended, or `take`.")
      .def(
          "forget",
          [](Handle& h, WorkHandle& work) {
            if (work.watchers != nullptr) work.watchers->remove(h.endings);
          },
          arg("work").lock(),
          nb::sig("def forget(self, work: Work) -> None"),
          "Stop watching a call. If it has ended, its key may still be returned.")
      .def(
          "next",
          [](Handle& h, nb::handle timeout) {
            const Duration limit = duration_argument(timeout, "timeout").value_or(kForever);
            return without_gil([&] { return h.endings->next(limit); });
          },
          arg("timeout") = nb::none(),
          nb::sig("def next(self, timeout: Timeout = None) -> Optional[int]"),
          docstring_of("_Endings.next"))
      .def(
          "take",
          [](Handle& h) { return take(*h.endings); },
          nb::sig("def take(self) -> list[int]"),
          "The keys of all calls that have ended since; never waits.")
      .def(
          "fileno",
          [](Handle& h) { return h.endings->descriptor(); },
          nb::sig("def fileno(self) -> int"),
          "A descriptor that is readable while `take` would return a key. For polling.")
      .def("close", [](Handle& h) { h.endings->close(); }, nb::sig("def close(self) -> None"));
}

}  // namespace hocket::python
