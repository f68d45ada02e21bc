// Calls that a rank does not begin, for example because of bad arguments or lack of memory. The
// call takes its number and is announced as refused. So the others hear of it at once instead of
// waiting, and all ranks stay in step.
#include <fmt/format.h>

#include "calls/call/core.h"
#include "foundation/base/limit.h"
#include "membership/failure/caught.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;
using engine::Kind;
using failure::reason_of_caught;

// Takes memory only where calls are under way, or the others are far behind.
void Core::announce_refusal(std::uint64_t sequence, Kind kind, std::string_view reason) noexcept {
  if (group_->failed()) return;
  try {
    if (is_committed_ || refuses_too_late()) {
      control::Failure failure = own_failure(Cause::kCannotGoOn, reason);
      failure.sequence = sequence;
      failure.signature = {.kind = kind};
      return group_->fail(failure);
    }
    if (runner_->queue().empty() && group_->may_refuse(sequence)) {
      return runner_->publish_refusal(sequence, kind, reason);
    }
    const auto operation = make_operation(shared_from_this(), Deadline::never(), kForever);
    operation->set_sequence(sequence);
    operation->call.shown.kind = kind;
    operation->refusal = reason;
    runner_->enqueue(operation);
    if (!runner_->is_concluding_here()) {  // a callback runs within a step, which goes on
      runner_->advance(false);
      // After the others have read earlier refusals; but never after work under way, which may need
      // a later call of this thread.
      runner_->advance_until(
          [&] { return operation->done() || runner_->queue().front() != operation; },
          Deadline::in(deadline_));
    }
    watch(*operation);
  } catch (const std::exception&) {
    control::Failure failure = own_failure(Cause::kCannotGoOn, reason_of_caught().view());
    failure.sequence = sequence;
    group_->fail(failure);
  }
}

void Core::refuse(Kind kind, const InvalidArgument& reason) {
  const std::uint64_t sequence = ledger_->next();
  announce_refusal(sequence, kind, reason.what());
  Status status = reason.status();
  status.communicator = membership_.name;
  status.sequence = sequence;
  status.operation = engine::name_of(kind);
  status.rank = rank();
  status.message =
      fmt::format("{} #{} on {}: {}", status.operation, sequence, membership_.name, reason.what());
  throw InvalidArgument(std::move(status));
}

void Core::refuse_caught(Kind kind) {
  try {
    throw;
  } catch (const InvalidArgument& reason) {
    refuse(kind, reason);
  } catch (...) {
    announce_refusal(ledger_->next(), kind, reason_of_caught().view());
    throw;
  }
}

void Core::refuse_limit(Kind kind, const std::optional<Duration>& limit) {
  try {
    base::require_limit(limit, "deadline");
  } catch (...) {
    refuse_caught(kind);
  }
}

void Core::refuse_next(Kind kind) {
  try {
    throw;
  } catch (const InvalidArgument& reason) {
    const CallGuard guard(*this, kind);
    require_usable();
    refuse(kind, reason);
  } catch (...) {
    const auto reason = reason_of_caught();
    try {
      const CallGuard guard(*this, kind);
      require_usable();
      announce_refusal(ledger_->next(), kind, reason.view());
    } catch (const Error&) {
      // No rank waits for this one: the communicator has ended, or another thread is in it.
    }
    throw;
  }
}

void Core::refuse_call(Kind kind, const std::string& reason) {
  const CallGuard guard(*this, kind);
  require_usable();
  refuse(kind, InvalidArgument(reason));
}

// In the turn. `kind` is absent for calls in which the other ranks have no part.
void Core::refuse_call_of_callback(std::optional<Kind> kind) {
  const InvalidArgument reason = told_in_callback();
  if (!kind || !is_open() || rank() < 0 || group_->failed()) throw reason;
  refuse(*kind, reason);
}

// Ends the group after an exception ended a started call, unless it is already a failure of the
// group: the others wait for this rank's part.
void Core::fail_caught(std::uint64_t sequence) noexcept {
  if (group_->failed()) return;
  try {
    throw;
  } catch (const InvalidArgument&) {
    return;  // a refusal by another rank, which has ended the call on all
  } catch (...) {
  }
  control::Failure failure = own_failure(Cause::kCannotGoOn, reason_of_caught().view());
  failure.sequence = sequence;
  if (const auto own = group_->find(rank(), sequence)) failure.signature = own->signature;
  group_->fail(failure);
}

}  // namespace hocket::call
