// Calls that a rank does not begin, for example because of bad arguments or lack of memory. The
// call takes its number and is announced as refused. So the other ranks hear of it at once instead
// of waiting, and all ranks stay in step.
#include <fmt/format.h>

#include "calls/call/core.h"
#include "foundation/base/limit.h"
#include "membership/failure/caught_reason.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;
using engine::Kind;
using failure::reason_of_caught;

// Allocates memory only if calls are pending, or if other ranks are far behind.
void Core::announce_refusal(std::uint64_t sequence, Kind part, std::string_view reason) noexcept {
  if (group_->failed()) return;
  const Kind kind = called(part);
  try {
    if (is_committed_ || refuses_too_late()) {
      control::Failure failure = failures.own(Cause::kCannotGoOn, reason);
      failure.sequence = sequence;
      failure.signature = {.kind = kind};
      return group_->fail(failure);
    }
    if (runner_->queue().empty() && group_->may_refuse(sequence)) {
      return runner_->publish_refusal(sequence, kind, reason);
    }
    const auto operation =
        make_operation<QueuedCall>(shared_from_this(), Deadline::never(), kForever);
    operation->set_sequence(sequence);
    operation->call.shown.kind = kind;
    operation->refusal = reason;
    runner_->enqueue(operation);
    if (!runner_->is_concluding_here()) {  // inside a callback, the step goes on afterwards
      runner_->advance(false);
      // Waits until the other ranks have read earlier refusals. It does not wait for pending calls,
      // which may need a later call of this thread.
      runner_->advance_until(
          [&] { return operation->done() || runner_->queue().front() != operation; },
          Deadline::in(deadline_));
    }
    pending.watch(*operation);
  } catch (const std::exception&) {
    control::Failure failure = failures.own(Cause::kCannotGoOn, reason_of_caught().view());
    failure.sequence = sequence;
    group_->fail(failure);
  }
}

void Core::refuse(Kind kind, const InvalidArgument& reason) {
  const std::uint64_t sequence = ledger_->next();
  const std::string words = failure::reason_for_others(reason);
  announce_refusal(sequence, kind, words);
  if (!reason.status().communicator.empty()) throw reason;  // from another communicator's call
  Status status = reason.status();
  status.communicator = membership_.name;
  status.sequence = sequence;
  status.operation = engine::name_of(called(kind));
  status.rank = rank();
  status.message =
      fmt::format("{} #{} on {}: {}", status.operation, sequence, membership_.name, words);
  status.reason = words;
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
      // No refusal is needed: the communicator has ended, or another thread uses it.
    }
    throw;
  }
}

void Core::refuse_call(Kind kind, const std::string& reason) {
  const CallGuard guard(*this, kind);
  require_usable();
  refuse(kind, InvalidArgument(reason));
}

// The caller has the turn. `kind` is absent for calls that concern no other rank.
void Core::refuse_call_of_callback(std::optional<Kind> kind) {
  const InvalidArgument reason = reentry.callback_error();
  if (!kind || !is_open() || rank() < 0 || group_->failed()) throw reason;
  refuse(*kind, reason);
}

}  // namespace hocket::call
