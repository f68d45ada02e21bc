// The public handle of a call under way.
#include "hocket/work.h"

#include <utility>

#include "base/limit.h"
#include "call/core.h"
#include "call/operation.h"

namespace hocket {

Work::Work() noexcept = default;
Work::Work(std::shared_ptr<call::Operation> operation) noexcept
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
  if (operation_ && operation_->mark) {
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
  const auto operation = operation_;  // a callback may let go of this
  if (!operation) return;
  if (operation->mark) return operation->owner().check_stream_work(*operation);
  operation->owner().wait(*operation, base::Deadline::never());
  operation->rethrow();
}

void Work::wait(StreamRef stream) {
  wait();
  if (operation_ && operation_->mark) operation_->mark->hold(stream);
}

bool Work::wait_for(Duration timeout) {
  base::require_patience(timeout, "timeout");
  const auto operation = operation_;  // a callback may let go of this
  if (!operation) return true;
  const auto until = base::Deadline::in(timeout);
  if (operation->mark) return operation->owner().wait_stream_work(*operation, until);
  if (!operation->owner().wait(*operation, until)) return false;
  operation->rethrow();
  return true;
}

bool Work::test() {
  if (!operation_) return true;
  const auto operation = operation_;  // a callback may let go of this
  if (operation->mark) return operation->owner().test_stream_work(*operation);
  if (!operation->done()) operation->owner().poke();
  return operation->done();
}

std::optional<Status> Work::error() const {
  if (operation_ && operation_->mark) return operation_->owner().status();
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
  if (!operation_->mark && (!operation_->done() || operation_->error())) return std::nullopt;
  return *operation_->received;
}

void Work::on_done(std::function<void()> f) {
  if (!f) throw InvalidArgument("on_done was given no function");
  if (operation_) {
    operation_->on_done(std::move(f));
  } else {
    f();
  }
}

}  // namespace hocket
