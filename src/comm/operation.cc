#include "comm/operation.h"

#include <utility>

#include "comm/device_work.h"
#include "comm/world.h"
#include "hocket/work.h"

namespace hocket {
namespace comm {

void Operation::finish(std::exception_ptr error) noexcept {
  task.reset();
  staged.reset();  // its stream goes on
  span.end(error != nullptr);
  error_ = std::move(error);
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    done_.store(true, std::memory_order_release);
    callback = std::exchange(callback_, nullptr);
  }
  // It may have gone to sleep, behind the fence that Waiter puts up: then we see it here.
  const std::uintptr_t waiter = waiter_.load(std::memory_order_relaxed);
  if (waiter != 0 && waiter != this_thread()) {
    owner_->world()->host().ring(owner_->world()->host().self());
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

}  // namespace comm

Work::Work() noexcept = default;
Work::Work(std::shared_ptr<comm::Operation> operation) noexcept
    : operation_(std::move(operation)) {}
Work::Work(Work&&) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    const Work old(std::move(*this));
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Work::~Work() {
  if (operation_ && operation_->device) {
    // Whoever ends the call meanwhile sees the one, or this thread sees the other.
    operation_->dropped.store(true, std::memory_order_seq_cst);
    if (operation_->done() && operation_->error() && !operation_->told()) {
      operation_->owner().miss(*operation_);
    }
    return;
  }
  if (operation_ && !operation_->done()) operation_->owner().abandon(*operation_);
}

void Work::wait() {
  if (!operation_) return;
  if (operation_->device) return operation_->owner().check_device_work(*operation_);
  operation_->owner().wait(*operation_, base::Deadline::never());
  operation_->rethrow();
}

void Work::wait(StreamRef stream) {
  wait();
  if (operation_ && operation_->device) operation_->device->hold(stream.handle());
}

bool Work::wait_for(Duration timeout) {
  if (!operation_) return true;
  if (operation_->device) {
    return operation_->owner().wait_device_work(*operation_, base::Deadline::in(timeout));
  }
  if (!operation_->owner().wait(*operation_, base::Deadline::in(timeout))) return false;
  operation_->rethrow();
  return true;
}

bool Work::test() {
  if (!operation_) return true;
  if (operation_->device) return operation_->owner().test_device_work(*operation_);
  if (!operation_->done()) operation_->owner().poke();
  return operation_->done();
}

std::optional<Status> Work::error() const {
  if (operation_ && operation_->device) return operation_->owner().status();
  if (!operation_ || !operation_->done() || !operation_->error()) return std::nullopt;
  try {
    operation_->rethrow();
    return std::nullopt;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {
    return Status{.code = ErrorCode::kSystem, .message = error.what()};
  }
}

std::optional<Received> Work::received() const {
  if (!operation_ || !operation_->received) return std::nullopt;
  if (!operation_->device && (!operation_->done() || operation_->error())) return std::nullopt;
  return *operation_->received;
}

void Work::on_done(std::function<void()> f) {
  if (operation_) {
    operation_->on_done(std::move(f));
  } else {
    f();
  }
}

}  // namespace hocket
