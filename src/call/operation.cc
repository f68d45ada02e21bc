#include "call/operation.h"

#include <utility>

#include "call/core.h"

namespace hocket::call {

void Operation::finish(std::exception_ptr error) noexcept {
  call.reset();
  carrying.reset();  // its stream goes on
  if (call.message != nullptr) {
    if (!error && !message.call.sends) received = received_of(message.sender);
    message.end(error != nullptr);
  }
  error_ = std::move(error);
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    done_.store(true, std::memory_order_release);
    callback = std::exchange(callback_, nullptr);
  }
  // It may have gone to sleep, behind the fence that Waiter puts up: then we see it here.
  const std::uintptr_t waiter = waiter_.load(std::memory_order_relaxed);
  if (waiter != 0 && waiter != base::this_thread()) {
    control::HostControl& host = owner_->surroundings().host();
    host.ring(host.self());
  }
  if (callback) callback();
}

void Operation::rethrow() {
  if (!error_) return;
  told_ = true;
  owner_->told();
  std::rethrow_exception(error_);
}

void Operation::on_done(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    if (!done()) {
      callback_ = std::move(f);
      return;
    }
  }
  f();
}

}  // namespace hocket::call
