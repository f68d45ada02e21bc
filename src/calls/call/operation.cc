#include "calls/call/operation.h"

#include <algorithm>
#include <utility>

#include "calls/call/core.h"

namespace hocket::call {

void Operation::finish(std::exception_ptr error) noexcept {
  call.reset();
  carrying.reset();  // lets the stream go on
  if (call.message != nullptr) {
    const bool failed = error || call.message->is_withdrawn;
    if (!failed && !call.message->call.sends) received = received_of(call.message->sender);
    call.message->end(failed);
  }
  error_ = std::move(error);
  std::vector<std::function<void()>> callbacks;
  if (state_.exchange(State::kDone, std::memory_order_acq_rel) == State::kHeard) {
    const std::lock_guard lock(mutex_);
    callbacks.swap(callbacks_);
    for (Bell* bell : bells_) bell->ring();
  }
  // If the waiter has gone to sleep, Waiter's fence makes sure that this load sees it.
  const std::uintptr_t waiter = waiter_.load(std::memory_order_relaxed);
  if (waiter != 0 && waiter != base::this_thread()) {
    control::HostControl& host = core_->job().host();
    host.doorbells.ring(host.self());
  }
  for (const auto& callback : callbacks) callback();
}

void Operation::rethrow() {
  if (!error_) return;
  error_seen_ = true;
  core_->failures.note_seen();
  std::rethrow_exception(error_);
}

void Operation::on_done(std::function<void()> f) {
  {
    const std::lock_guard lock(mutex_);
    callbacks_.push_back(std::move(f));
    if (make_heard()) return;
    f = std::move(callbacks_.back());
    callbacks_.pop_back();
  }
  core_->reentry.run_callback(f);
}

bool Operation::make_heard() noexcept {
  State expected = State::kPending;
  return state_.compare_exchange_strong(expected, State::kHeard, std::memory_order_acq_rel) ||
         expected == State::kHeard;
}

void Bell::ring() noexcept {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  changed_.notify_one();
}

void Bell::wait(Duration most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return rung_; });
  rung_ = false;
}

Listening::Listening(std::shared_ptr<Operation> operation, Bell& bell)
    : operation_(std::move(operation)), bell_(bell) {
  const std::lock_guard lock(operation_->mutex_);
  operation_->bells_.push_back(&bell_);
  if (!operation_->make_heard()) bell_.ring();
}

Listening::~Listening() {
  const std::lock_guard lock(operation_->mutex_);
  auto& bells = operation_->bells_;
  bells.erase(std::ranges::find(bells, &bell_));
}

}  // namespace hocket::call
