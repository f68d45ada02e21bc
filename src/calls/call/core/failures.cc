#include "calls/call/core/failures.h"

#include <fmt/format.h>

#include "calls/call/core.h"
#include "foundation/base/log.h"
#include "membership/failure/caught_reason.h"
#include "monitoring/observe/flight_record.h"

namespace hocket::call {

using control::Cause;
using control::Failure;

const failure::Texts& Failures::open() {
  return texts_.emplace(core_.membership().name, core_.group(), core_.job().witness());
}

Failure Failures::own(Cause cause, std::string_view text) const noexcept {
  return {.cause = core_.job().has_left() ? Cause::kLeft : cause,
          .reporter = core_.rank(),
          .culprit = core_.rank(),
          .sequence = core_.group().last_sequence(core_.rank()),
          .text = failure::text_within_memory(text)};
}

Failure Failures::of(const Operation& operation,
                     Cause cause,
                     std::string_view text) const noexcept {
  Failure failure = own(cause, text);
  failure.sequence = operation.sequence();
  failure.signature = operation.call.shown;
  return failure;
}

void Failures::fail_caught(std::uint64_t sequence) noexcept {
  if (core_.group().failed()) return;
  try {
    throw;
  } catch (const InvalidArgument&) {
    return;  // another rank's refusal has ended the call on all ranks
  } catch (...) {
  }
  control::Failure failure = own(Cause::kCannotGoOn, failure::reason_of_caught().view());
  failure.sequence = sequence;
  const auto record = core_.group().find(core_.rank(), sequence);
  if (record) failure.signature = record->signature;
  core_.group().fail(failure);
}

std::exception_ptr Failures::ended_by(const Failure& failure) {
  core_.group().fail(failure);
  return ended();
}

std::exception_ptr Failures::refused_by(const failure::Refusal& refusal) {
  try {
    texts_->raise(refusal);
  } catch (const Error&) {
    return std::current_exception();
  }
}

std::exception_ptr Failures::ended() {
  if (!core_.runner().is_stepping()) note_seen();
  try {
    raise_seen(core_.group().failure());
  } catch (const Error&) {
    if (!written_.exchange(true) && !core_.job().dump_directory().empty()) {
      try {
        dump("");
      } catch (const Error& refused) {
        base::log(base::LogLevel::kWarning, fmt::format("no flight record: {}", refused.what()));
      }
    }
    return std::current_exception();
  }
}

// The fingerprints differ, so this compares the calls themselves; see engine::Consistency.
void Failures::confirm(int peer, std::uint64_t sequence) {
  raise_any(core_.ledger().confirm(peer, sequence));
}

void Failures::abort(const std::string& reason) {
  if (!core_.is_open() || core_.forks().forked()) return;
  core_.group().fail(own(Cause::kAbortCalled, reason));
}

void Failures::note_seen() const noexcept {
  if (!core_.group().failed()) return;
  seen_.store(true, std::memory_order_relaxed);
  if (core_.group().failure().code() == ErrorCode::kPeerDied) core_.job().tell_of_loss();
}

void Failures::fail_dropped(const Operation& operation) noexcept {
  if (!core_.is_open() || core_.forks().forked()) return;
  try {
    std::rethrow_exception(operation.error());
  } catch (const InvalidArgument& refusal) {
    lose_device_call();
    const int peer = refusal.status().peer;
    Failure failure = of(operation, Cause::kRefused, refusal.status().reason);
    failure.culprit = peer;
    core_.group().fail(failure);
  } catch (...) {  // the failure has ended the communicator, and its later calls throw it
  }
}

void Failures::raise_unseen(bool cut_short) const {
  if (!core_.group().failed() || is_seen()) return;
  if (!lost_.load(std::memory_order_relaxed) && !cut_short) return;
  const Failure failure = core_.group().failure();
  if (failure.code() == ErrorCode::kAborted && failure.culprit == core_.rank()) return;
  if (failure.code() == ErrorCode::kPeerDied && core_.job().has_told_of_loss()) return;
  note_seen();
  raise_seen(failure);
}

void Failures::raise_seen(const Failure& failure) const {
  const bool is_own = failure.cause == Cause::kLeft && failure.culprit == core_.rank();
  if (!is_own && !core_.job().is_ending()) texts_->raise(failure);
  throw Aborted({.code = ErrorCode::kAborted,
                 .message = core_.why_left(),
                 .communicator = core_.membership().name,
                 .sequence = failure.sequence,
                 .operation = failure.signature.kind == engine::Kind::kNone
                                  ? std::string()
                                  : std::string(engine::name_of(failure.signature)),
                 .rank = core_.rank(),
                 .peer = core_.rank()});
}

// --- Reports -------------------------------------------------------------------------------------

std::optional<Status> Failures::status() const {
  core_.refuse_forked();
  if (!core_.is_open() || !core_.group().failed()) return std::nullopt;
  note_seen();
  try {
    raise_seen(core_.group().failure());
  } catch (const Error& error) {
    return error.status();
  }
}

std::vector<RankCall> Failures::last_calls() const {
  core_.refuse_forked();
  return texts_ ? texts_->last_calls() : std::vector<RankCall>{};
}

std::vector<RankCall> Failures::recent_calls() const {
  core_.refuse_forked();
  return texts_ ? texts_->recent_calls() : std::vector<RankCall>{};
}

std::string Failures::dump(const std::string& directory) const {
  const std::string& where = directory.empty() ? core_.job().dump_directory() : directory;
  if (where.empty()) {
    throw InvalidArgument(
        "dump has no directory to write to; give one, or set HOCKET_DUMP_DIR for the job");
  }
  const auto error = status();
  return observe::write({.world_rank = core_.job().world_rank(),
                         .communicator = core_.membership().name,
                         .error = error ? error->message : "",
                         .recent = recent_calls(),
                         .ranks = last_calls()},
                        where);
}

}  // namespace hocket::call
