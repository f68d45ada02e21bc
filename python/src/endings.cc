// Calls whose ends somebody waits for, whichever comes first: for layers that give handles of their
// own their values.
#include <nanobind/stl/optional.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "seat.h"

namespace hocket::python {
namespace {

using Keys = std::list<std::uint64_t>;

// A resource, shared by those who wait and the calls that are watched. Any thread.
class Endings {
 public:
  // Whoever ends a call must not wait, nor fail: `key` is in a list of its own already.
  void add(Keys& key) noexcept {
    const std::lock_guard lock(mutex_);
    ended_.splice(ended_.end(), key);
    changed_.notify_one();
  }

  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Absent once it is closed and nothing is left. Every call that is watched ends, by its deadline
  // at the latest.
  std::optional<std::uint64_t> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !ended_.empty(); });
    if (ended_.empty()) return std::nullopt;
    const std::uint64_t key = ended_.front();
    ended_.pop_front();
    return key;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Keys ended_;           // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

using Shared = std::shared_ptr<Endings>;

void watch(const Shared& endings, WorkHandle& work, std::uint64_t key) {
  const auto own = std::make_shared<Keys>(1, key);
  work.work.on_done([endings, own] { endings->add(*own); });
}

}  // namespace

void bind_endings(nb::module_& module) {
  using nb::arg;
  struct Handle {
    Shared endings = std::make_shared<Endings>();
  };
  nb::class_<Handle>(module, "_Endings", "Calls in host memory that are waited for together.")
      .def(nb::init<>())
      .def(
          "watch",
          [](Handle& h, WorkHandle& work, std::uint64_t key) { watch(h.endings, work, key); },
          arg("work").lock(),
          arg("key"),
          nb::sig("def watch(self, work: Work, key: int) -> None"),
          "Have `next` return `key` once the call has ended. Once for each Work.")
      .def(
          "next",
          [](Handle& h) { return without_gil([&] { return h.endings->next(); }); },
          nb::sig("def next(self) -> Optional[int]"),
          "Waits for the next call to end; None when all that has ended has been returned and this "
          "is closed. Several threads may wait.")
      .def(
          "close", [](Handle& h) { h.endings->close(); }, nb::sig("def close(self) -> None"));
}

}  // namespace hocket::python
