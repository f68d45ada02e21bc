// How a communicator learns that a call cannot end well. What it says then: failure_texts.cc.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/hash.h"
#include "base/log.h"
#include "base/relax.h"
#include "comm/communicator_impl.h"
#include "comm/device_calls.h"
#include "comm/failure_texts.h"
#include "comm/messages.h"
#include "comm/operation.h"
#include "comm/refusals.h"
#include "comm/world.h"
#include "control/succession.h"

namespace hocket::comm {

using control::Failure;
using control::Record;
using engine::Kind;

namespace {
// For what a lost rank had sent to come, after the news of its loss.
constexpr auto kOvertaking = std::chrono::milliseconds(10);
// Who leaves, or calls for a rebuild, sees to it that what it has sent is on its way.
constexpr auto kOvertakingInOrder = std::chrono::milliseconds(500);
// What a rank had sent in a call that it had finished may take until the next part of it comes, the
// network being slow; what was sent over a connection that has broken since comes soon or never.
constexpr auto kOnItsWay = std::chrono::seconds(3);
constexpr auto kOnABrokenWay = std::chrono::milliseconds(500);
// For a thread in a call to come out of it once it has failed; one may wait for a GPU.
constexpr auto kCalledOut = std::chrono::seconds(10);
}  // namespace

// News of a loss may overtake what was sent before it: on the way from another host, and wherever a
// rank that had finished the call is lost.
std::optional<Failure> CommunicatorImpl::look_around(const Awaited& awaited, Doubt& doubt) {
  if (awaited.message != nullptr && awaited.sequence == 0) show_messages(*awaited.message);
  auto failure = find_failure(awaited);
  if (!failure) return failure;
  const bool in_order = failure->text == kLeftText || failure->text == kRebuildText;
  if (failure->code != ErrorCode::kPeerDied && !in_order) return failure;
  const int culprit = failure->culprit;
  const bool is_known = culprit >= 0 && culprit < size();
  Duration patience = in_order ? kOvertakingInOrder : Duration(kOvertaking);
  std::uint64_t came = 0;
  if (has_finished(awaited, culprit) && !control_->failed()) {
    patience = failure->text == kCutText ? Duration(kOnABrokenWay) : kOnItsWay;
    came = engines_.messages->owed(culprit).value_or(0);
  } else if (!control_->spans() || (is_known && control_->is_here(culprit))) {
    return failure;
  }
  const auto until = base::Deadline::in(patience);
  doubt.until = doubt.until && doubt.came == came ? std::min(*doubt.until, until) : until;
  doubt.came = came;
  return doubt.until->has_passed() ? failure : std::nullopt;
}

bool CommunicatorImpl::has_finished(const Awaited& awaited, int member) const {
  return awaited.sequence != 0 && member >= 0 && member < size() &&
         control_->finished_sequence(member) >= awaited.sequence;
}

std::optional<Failure> CommunicatorImpl::find_failure(const Awaited& awaited) {
  // Messages that nobody waits for here yet: their sender may be waiting for room.
  engines_.messages->progress();
  if (control_->failed()) return control_->failure();
  world_->host().look_for_deaths();
  control_->ask();
  // First what explains more: who refused the call, or called another, may have ended since.
  if (awaited.sequence != 0) {
    check_refusals(awaited.sequence);
    if (auto mismatch = compare_records(awaited.sequence)) return mismatch;
  }
  if (auto loss = find_loss(awaited)) return loss;
  // Never in the progress thread: the hook is for threads of the program's own.
  if (!turnstile_.is_progress() && world_->interrupted()) {
    return interruption();
  }
  return std::nullopt;
}

// A rank that ended matters to a collective that it had not finished, or whose messages are still
// to come (it sent them, but it or the connection may have broken before they left), and to a
// message of its own.
std::optional<Failure> CommunicatorImpl::find_loss(const Awaited& awaited) {
  const std::uint32_t losses = world_->host().losses();
  if (losses == losses_seen_) return std::nullopt;
  const control::Succession succession(*control_);
  int living = 0;
  bool any_lost = false;
  for (int i = 0; i < size(); ++i) {
    if (i == rank() && !succession.has_come(i)) continue;
    const auto loss = loss_of(world_->host().state(control_->host_rank(i)), succession.has_come(i));
    if (!loss) {
      ++living;
      continue;
    }
    any_lost = true;
    const bool needed = i == rank() ? true
                        : awaited.sequence != 0
                            ? !has_finished(awaited, i) || engines_.messages->owed(i)
                            : awaited.peer == i || (awaited.peer == engine::kAnyPeer &&
                                                    living == 0 && i == last_other());
    if (!needed) continue;
    return Failure{.code = loss->code,
                   .reporter = rank(),
                   .culprit = i,
                   .sequence = awaited.sequence,
                   .text = std::string(loss->text)};
  }
  // Those who were lost are of other groups.
  if (!any_lost) losses_seen_ = losses;
  return std::nullopt;
}

void CommunicatorImpl::check_refusals(std::uint64_t sequence) {
  for (int i = 0; i < size(); ++i) {
    if (i == rank()) continue;
    const auto reason = control_->refusal(i, sequence);
    if (!reason) continue;
    fingerprint_ = fingerprint_after_refusal(sequence);
    const auto record = control_->find(i, sequence);
    const std::string_view name = engine::name_of(record ? record->signature.kind : Kind::kNone);
    throw InvalidArgument(
        Status{.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("rank {} refused {} #{} on {}: {}; the communicator can "
                                      "be used further",
                                      i,
                                      name,
                                      sequence,
                                      membership_.name,
                                      *reason),
               .communicator = membership_.name,
               .sequence = sequence,
               .operation = std::string(name),
               .rank = rank(),
               .peer = i});
  }
}

// Ranks that announced something else under this number. Catches what the data's own check does
// not, as ranks in different calls may wait for each other's data in different places.
std::optional<Failure> CommunicatorImpl::compare_records(std::uint64_t sequence) const {
  const auto own = control_->find(rank(), sequence);
  if (!own || own->refused) return std::nullopt;
  for (int i = 0; i < size(); ++i) {
    if (i == rank()) continue;
    const auto theirs = control_->find(i, sequence);
    if (theirs && !theirs->refused && !(theirs->signature == own->signature)) {
      return mismatch(i, sequence);
    }
  }
  return std::nullopt;
}

// For engines that do not compare fingerprints: what has ended here may have been something else
// elsewhere. Compares what everybody has announced meanwhile.
void CommunicatorImpl::compare_ended(std::uint64_t sequence) {
  for (; compared_ < sequence; ++compared_) {
    for (int i = 0; i < size(); ++i) {
      if (control_->last_sequence(i) <= compared_) return;
    }
    if (const auto different = compare_records(compared_ + 1)) raise(*different);
  }
}

// See engine::Consistency: the fingerprints differ; do the calls?
void CommunicatorImpl::confirm(int peer, std::uint64_t sequence) {
  const std::uint64_t first = sequence > control::kRecords ? sequence - control::kRecords + 1 : 1;
  std::optional<std::uint64_t> anew;
  for (std::uint64_t at = first; at <= sequence; ++at) {
    const auto own = control_->find(rank(), at);
    const auto theirs = control_->find(peer, at);
    if (control_->refused(at)) {
      // A rank that refused this call goes on to later ones, whose data are not to be taken for
      // its.
      if (at == sequence) {
        check_refusals(at);
        raise(mismatch(peer, at));
      }
      anew = fingerprint_after_refusal(at);
    } else if (own && theirs && !(own->signature == theirs->signature)) {
      raise(mismatch(peer, at));
    } else if (own && anew) {
      anew = base::mix(*anew, mark_of(own->signature));
    }
  }
  // This rank may have given its part before it could hear of a refusal: it begins anew now.
  if (anew) fingerprint_ = *anew;
  // A refusal may lie further back than records do.
  if (!control_->any_refusal()) raise(mismatch(peer, sequence));
}

Failure CommunicatorImpl::mismatch(int peer, std::uint64_t sequence) const {
  const auto own = control_->find(rank(), sequence);
  const auto theirs = control_->find(peer, sequence);
  return {.code = ErrorCode::kMismatch,
          .reporter = rank(),
          .culprit = peer,
          .sequence = sequence,
          .signature = own ? own->signature : engine::Signature{},
          .other = theirs ? theirs->signature : engine::Signature{},
          .text = {}};
}

void CommunicatorImpl::raise_envelopes(const engine::EnvelopeMismatch& found,
                                       const Awaited& awaited) {
  if (awaited.sequence != 0) {
    const int peer = found.received.peer;
    if (const auto different = compare_records(awaited.sequence)) raise(*different);
    // They called the same, with parts of different sizes.
    const auto own = control_->find(rank(), awaited.sequence);
    engine::Signature expected = own ? own->signature : engine::Signature{};
    engine::Signature given = expected;
    const std::size_t element = size_of(expected.dtype);
    expected.count = found.expected.count * size_of(found.expected.dtype) / element;
    given.count = found.received.count * size_of(found.received.dtype) / element;
    raise({.code = ErrorCode::kMismatch,
           .reporter = rank(),
           .culprit = peer,
           .sequence = awaited.sequence,
           .signature = expected,
           .other = given,
           .text = "parts"});
  }
  const bool differ_in_order =
      found.expected.dtype == found.received.dtype && found.expected.count == found.received.count;
  const auto signature = [&](Kind kind, const engine::Envelope& e) {
    const std::uint64_t order =
        e.order == MemoryOrder::kFortran ? engine::kInFortranOrder : engine::kInCOrder;
    return engine::Signature{
        .kind = kind, .dtype = e.dtype, .count = e.count, .extra = differ_in_order ? order : 0};
  };
  raise({.code = ErrorCode::kMismatch,
         .reporter = rank(),
         .culprit = found.received.peer,
         .signature = signature(Kind::kRecv, found.expected),
         .other = signature(Kind::kSend, found.received)});
}

Failure CommunicatorImpl::lateness(const Awaited& awaited, Duration allowed) const {
  Failure failure{.code = ErrorCode::kDeadlineExceeded,
                  .reporter = rank(),
                  .sequence = awaited.sequence,
                  .text = base::in_seconds(allowed)};
  if (awaited.sequence == 0) {
    failure.culprit = awaited.peer;
    if (awaited.peer >= 0 && awaited.peer < 64) failure.missing = std::uint64_t{1} << awaited.peer;
    failure.text =
        fmt::format("{} within {}", describe(*awaited.message), base::in_seconds(allowed));
  } else {
    if (const auto own = control_->find(rank(), awaited.sequence)) {
      failure.signature = own->signature;
    }
    for (int i = 0; i < std::min(size(), 64); ++i) {
      if (i != rank() && control_->last_sequence(i) < awaited.sequence) {
        failure.missing |= std::uint64_t{1} << i;
        if (failure.culprit < 0) failure.culprit = i;
      }
    }
  }
  return failure;
}

Failure CommunicatorImpl::interruption() const {
  return {.code = ErrorCode::kAborted,
          .reporter = rank(),
          .culprit = rank(),
          .sequence = sequence_,
          .text = "was interrupted while it waited"};
}

// Makes `failure` the group's, or learns of the one that came first, and throws that.
void CommunicatorImpl::raise(const Failure& failure) {
  control_->fail(failure);
  raise_failure();
}

void CommunicatorImpl::abort(const std::string& reason) {
  if (!open_ || forks_.forked()) return;
  control_->fail({.code = ErrorCode::kAborted,
                  .reporter = rank(),
                  .culprit = rank(),
                  .sequence = control_->last_sequence(rank()),
                  .text = reason.empty() ? "called abort()" : "called abort(): " + reason});
}

void CommunicatorImpl::fail_by_closing() noexcept {
  control_->fail({.code = ErrorCode::kAborted,
                  .reporter = rank(),
                  .culprit = rank(),
                  .sequence = control_->last_sequence(rank()),
                  .text = failure_text("closed the communicator with calls under way")});
}

CommunicatorImpl::Closing CommunicatorImpl::enter_to_close() noexcept {
  // Somebody may be at a step; the progress thread finds the communicator closed when it comes
  // again. A thread in a call is called out of it, as it needs the engines.
  bool is_told = false;
  auto found = Turnstile::Who::kNobody;
  const auto deadline = base::Deadline::in(kCalledOut);
  while (!turnstile_.try_enter(Turnstile::Who::kUser, &found)) {
    if (found != Turnstile::Who::kUser) {
      base::relax();
      continue;
    }
    if (turnstile_.is_user_here()) return Closing::kInside;
    if (deadline.has_passed()) return Closing::kStuck;
    if (!is_told) fail_by_closing();
    is_told = true;
    // It may stand in the driver of a GPU whose streams wait for calls that the failure ends.
    if (turnstile_.try_enter(Turnstile::Who::kWaiter)) {
      advance(true);
      turnstile_.leave();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return Closing::kEntered;
}

void CommunicatorImpl::told() const noexcept {
  if (!control_->failed()) return;
  told_.store(true, std::memory_order_relaxed);
  if (control_->failure().code == ErrorCode::kPeerDied) world_->tell_of_loss();
}

// Of calls on GPUs alone: all others have told who waits for them, or were given up by the program.
void CommunicatorImpl::raise_untold() const {
  if (!control_->failed() || told_.load(std::memory_order_relaxed)) return;
  if (!lost_.load(std::memory_order_relaxed) && !devices_->was_cut_short()) return;
  const Failure failure = control_->failure();
  if (failure.code == ErrorCode::kAborted && failure.culprit == rank()) return;
  if (failure.code == ErrorCode::kPeerDied && world_->has_told_of_loss()) return;
  told();
  throw_failure(failure);
}

void CommunicatorImpl::finish_device_calls() {
  if (!open_ || forks_.forked()) return;
  const Closing how = enter_to_close();
  if (how != Closing::kEntered) return;
  if (devices_) {
    devices_->finish();
    devices_->finish_envelopes();
  }
  turnstile_.leave();
  if (devices_) raise_untold();
}

void CommunicatorImpl::close() {
  if (forks_.forked()) return;
  if (!open_.exchange(false)) return;
  const Closing how = enter_to_close();
  if (how == Closing::kStuck) {
    base::log(base::LogLevel::kError,
              "a thread does not come out of a call of communicator " + membership().name +
                  ", which was closed; what it uses is left to it");
    return;
  }
  std::exception_ptr untold;
  if (devices_) {
    if (how == Closing::kEntered) {
      devices_->finish();
      devices_->finish_envelopes();
    }
    try {
      raise_untold();
    } catch (const Error&) {
      untold = std::current_exception();
    }
  }
  drop_calls();
  if (devices_) devices_->close();
  engines_ = {};
  world_->host().release(block_);
  if (entry_ != nullptr) {
    world_->host().ring_network();
  }
  if (how == Closing::kEntered) turnstile_.leave();
  if (untold) std::rethrow_exception(untold);
}

void CommunicatorImpl::drop_calls() noexcept {
  if (!busy()) return;
  fail_by_closing();
  try {
    raise_failure();
  } catch (...) {
    fail_all(std::current_exception());
  }
}

}  // namespace hocket::comm
