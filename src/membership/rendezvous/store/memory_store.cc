#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "foundation/base/interrupt.h"
#include "membership/rendezvous/store/request_store.h"
#include "membership/rendezvous/store/table.h"

namespace hocket {
namespace rendezvous {
namespace {

// A store in the memory of this process: a table and a lock. A resource. Each waiting thread also
// ends requests of other threads whose deadline has passed.
class MemoryStore final : public RequestStore {
 protected:
  Reply perform(StoreRequest&& request) override {
    std::unique_lock lock(mutex_);
    // The table shares the reply, because its entry outlives this call if this call throws.
    const auto reply = std::make_shared<std::optional<Reply>>();
    table_.execute(0, std::move(request), [reply](Reply&& given) { *reply = std::move(given); });
    changed_.notify_all();
    while (!*reply) {
      const auto deadline = base::until_asked(table_.next_deadline());
      if (deadline.is_never()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, deadline.when()) == std::cv_status::timeout) {
        lock.unlock();
        base::throw_if_interrupted("the wait in the store");
        lock.lock();
      }
      // Notify the others only if a deadline has passed. Otherwise waiting threads would wake each
      // other forever.
      if (!table_.next_deadline().has_passed()) continue;
      table_.expire(base::Deadline::Clock::now());
      changed_.notify_all();
    }
    return std::move(**reply);
  }

 private:
  const RunClock::Watch clock_watch_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Table table_{std::numeric_limits<std::size_t>::max() / 2};
};

}  // namespace
}  // namespace rendezvous

std::shared_ptr<Store> make_memory_store() { return std::make_shared<rendezvous::MemoryStore>(); }

}  // namespace hocket
