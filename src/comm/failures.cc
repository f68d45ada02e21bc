// How a communicator learns that a call cannot end well, and what it says then.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/interrupt.h"
#include "comm/communicator_impl.h"
#include "comm/world.h"
#include "observe/flight_record.h"

namespace hocket::comm {

using control::Failure;
using control::RankState;
using control::Record;
using engine::Kind;

namespace {

std::string describe(std::uint64_t sequence, const engine::Signature& s) {
  if (sequence == 0) return engine::describe(s);
  const std::string text = engine::describe(s);
  const std::string_view kind = engine::name_of(s.kind);
  return fmt::format("{} #{}{}", kind, sequence, text.substr(kind.size()));
}

std::string seconds(Duration duration) {
  return fmt::format("{:.3g} s", std::chrono::duration<double>(duration).count());
}

constexpr std::string_view kDied = "died";
constexpr std::string_view kLeft = "ended in good order";

// `member` is as a peer wrote it.
int pid_of(const control::GroupControl& group, int member) {
  if (member < 0 || member >= group.size()) return 0;
  return group.host().pid(group.host_rank(member));
}

// How the rank that `failure` names died, as waitpid says; absent where it left, or nobody knows.
std::optional<int> end_of(const control::GroupControl& group, const Failure& failure) {
  if (failure.culprit < 0 || failure.culprit >= group.size() || failure.text != kDied) {
    return std::nullopt;
  }
  return group.host().await_end(group.host_rank(failure.culprit));
}

int signal_of(std::optional<int> end) { return end && WIFSIGNALED(*end) ? WTERMSIG(*end) : 0; }

std::string manner_of_end(const Failure& failure, std::optional<int> end) {
  if (!end) return failure.text;
  if (const int number = signal_of(end); number != 0) {
    const char* name = sigabbrev_np(number);
    return fmt::format("was killed by signal {}{}",
                       number,
                       name == nullptr ? std::string() : fmt::format(" (SIG{})", name));
  }
  return fmt::format("exited with code {} and without leaving the job", WEXITSTATUS(*end));
}

}  // namespace

RankCall CommunicatorImpl::call_of(int member) const {
  const std::uint64_t sequence = control_->last_sequence(member);
  if (sequence == 0) return {.rank = member, .sequence = 0, .call = "no call so far"};
  const auto record = control_->find(member, sequence);
  std::string text = record ? describe(sequence, record->signature) : fmt::format("#{}", sequence);
  if (control_->finished_sequence(member) >= sequence) text += " (finished)";
  return {.rank = member, .sequence = sequence, .call = std::move(text)};
}

std::vector<RankCall> CommunicatorImpl::last_calls() const {
  std::vector<RankCall> calls;
  for (int i = 0; i < size() && rank() >= 0; ++i) calls.push_back(call_of(i));
  return calls;
}

std::vector<RankCall> CommunicatorImpl::recent_calls() const {
  std::vector<RankCall> calls;
  if (rank() < 0) return calls;
  const std::uint64_t last = control_->last_sequence(rank());
  const std::uint64_t first = last > control::kRecords ? last - control::kRecords + 1 : 1;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    const auto record = control_->find(rank(), sequence);
    if (!record) continue;
    std::string text = describe(sequence, record->signature);
    if (record->refused) text += " (refused)";
    calls.push_back({.rank = rank(), .sequence = sequence, .call = std::move(text)});
  }
  return calls;
}

// --- Looking ------------------------------------------------------------------------------------

std::optional<Failure> CommunicatorImpl::look_around(const Awaited& awaited) {
  // Messages that nobody waits for here yet: their sender may be waiting for room.
  engines_.messages->progress();
  if (control_->failed()) return control_->failure();
  if (auto loss = find_loss(awaited)) return loss;
  if (awaited.sequence != 0) {
    check_refusals(awaited.sequence);
    if (auto mismatch = compare_records(awaited.sequence)) return mismatch;
  }
  // Never in the progress thread: the hook is for threads of the program's own.
  if (!turnstile_.is_progress() && world_->interrupted()) {
    return interruption();
  }
  return std::nullopt;
}

// A rank that ended matters to a collective that it had not finished, and to a message of its own.
std::optional<Failure> CommunicatorImpl::find_loss(const Awaited& awaited) {
  const std::uint32_t losses = world_->host().losses();
  if (losses == losses_seen_) return std::nullopt;
  int living = 0;
  bool any_lost = false;
  for (int i = 0; i < size(); ++i) {
    if (i == rank()) continue;
    const RankState state = world_->host().state(control_->host_rank(i));
    if (state == RankState::kAlive) {
      ++living;
      continue;
    }
    any_lost = true;
    const bool needed = awaited.sequence != 0
                            ? control_->finished_sequence(i) < awaited.sequence
                            : awaited.peer == i || (awaited.peer == engine::kAnyPeer &&
                                                    living == 0 && i == last_other());
    if (!needed) continue;
    return Failure{.code = ErrorCode::kPeerDied,
                   .reporter = rank(),
                   .culprit = i,
                   .sequence = awaited.sequence,
                   .text = std::string(state == RankState::kLeft ? kLeft : kDied)};
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
    throw InvalidArgument(Status{
        .code = ErrorCode::kInvalidArgument,
        .message = fmt::format("rank {} refused {} #{} on {}: {}; no rank has done it, and the "
                               "communicator can be used further",
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
      anew = fingerprint_after_refusal(at);
    } else if (own && theirs && !(own->signature == theirs->signature)) {
      raise(mismatch(peer, at));
    } else if (own && anew) {
      anew = chain(*anew, mark_of(own->signature));
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
  const auto signature = [](Kind kind, const engine::Envelope& e) {
    return engine::Signature{.kind = kind, .dtype = e.dtype, .count = e.count};
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
                  .text = seconds(allowed)};
  if (awaited.sequence == 0) {
    failure.culprit = awaited.peer;
    if (awaited.peer >= 0 && awaited.peer < 64) failure.missing = std::uint64_t{1} << awaited.peer;
    failure.text = fmt::format("{} within {}", (*awaited.message)().call, seconds(allowed));
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

// --- Saying -------------------------------------------------------------------------------------

// Makes `failure` the group's, or learns of the one that came first, and throws that.
void CommunicatorImpl::raise(const Failure& failure) {
  control_->fail(failure);
  raise_failure();
}

Status CommunicatorImpl::status_of(const Failure& f) const {
  Status status{.code = f.code,
                .communicator = membership_.name,
                .sequence = f.sequence,
                .rank = rank(),
                .peer = f.culprit};
  if (f.signature.kind != Kind::kNone) status.operation = engine::name_of(f.signature.kind);
  const std::string where = f.sequence == 0
                                ? fmt::format("on {}", membership_.name)
                                : fmt::format("in call #{} on {}", f.sequence, membership_.name);
  switch (f.code) {
    case ErrorCode::kPeerDied:
      status.message = fmt::format(
          "rank {} (pid {}) {} while it was needed {}; see its own output, and start the job again "
          "or go on without it",
          f.culprit,
          pid_of(*control_, f.culprit),
          manner_of_end(f, end_of(*control_, f)),
          where);
      break;
    case ErrorCode::kMismatch:
      status.message = fmt::format(
          fmt::runtime(
              f.text == "parts"
                  ? "the parts of a v-form differ {}: rank {} expected {}, rank {} gave {}; counts "
                    "at both ends must agree"
                  : "ranks called different things {}: rank {} called {}, rank {} called {}; all "
                    "ranks must make the same calls in the same order"),
          where,
          f.reporter,
          describe(f.sequence, f.signature),
          f.culprit,
          describe(f.sequence, f.other));
      break;
    case ErrorCode::kAborted:
      status.message = fmt::format("rank {} {}; every call on {} ends here",
                                   f.culprit < 0 ? f.reporter : f.culprit,
                                   f.text,
                                   membership_.name);
      break;
    default:
      status.message = f.text;
  }
  return status;
}

void CommunicatorImpl::raise_failure() {
  try {
    throw_failure(control_->failure());
  } catch (const Error& error) {
    if (!written_.exchange(true) && !world_->dump_directory().empty()) {
      observe::write({.world_rank = world_->launch().rank,
                      .communicator = membership_.name,
                      .error = error.what(),
                      .recent = recent_calls(),
                      .ranks = last_calls()},
                     world_->dump_directory());
    }
    throw;
  }
}

void CommunicatorImpl::throw_failure(const Failure& f) const {
  Status status = status_of(f);
  switch (f.code) {
    case ErrorCode::kPeerDied:
      throw PeerDied(std::move(status),
                     f.culprit,
                     pid_of(*control_, f.culprit),
                     signal_of(end_of(*control_, f)));
    case ErrorCode::kMismatch:
      throw Mismatch(std::move(status),
                     {{f.reporter, f.sequence, describe(f.sequence, f.signature)},
                      {f.culprit, f.sequence, describe(f.sequence, f.other)}});
    case ErrorCode::kDeadlineExceeded: {
      std::vector<int> missing;
      std::vector<RankCall> calls;
      std::vector<std::string> seen;
      for (int i = 0; i < std::min(size(), 64); ++i) {
        if ((f.missing >> i & 1) == 0) continue;
        missing.push_back(i);
        calls.push_back(call_of(i));
        seen.push_back(fmt::format("rank {} (pid {}) last seen in {}",
                                   i,
                                   world_->host().pid(control_->host_rank(i)),
                                   calls.back().call));
      }
      const std::string what = f.sequence == 0 ? fmt::format("rank {}'s {}", f.reporter, f.text)
                                               : fmt::format("{} on {} did not finish within {}",
                                                             describe(f.sequence, f.signature),
                                                             membership_.name,
                                                             f.text);
      status.message =
          fmt::format("{}: {}; give a longer deadline if it is only slow",
                      f.sequence == 0 ? what + " did not finish" : what,
                      seen.empty() ? std::string("every rank had come, so one is slow or stopped")
                                   : fmt::format("{}", fmt::join(seen, "; ")));
      throw DeadlineExceeded(std::move(status), std::move(missing), std::move(calls));
    }
    default:
      throw Aborted(std::move(status));
  }
}

void CommunicatorImpl::abort(const std::string& reason) {
  if (!open_ || forks_.forked()) return;
  control_->fail({.code = ErrorCode::kAborted,
                  .reporter = rank(),
                  .culprit = rank(),
                  .sequence = control_->last_sequence(rank()),
                  .text = reason.empty() ? "called abort()" : "called abort(): " + reason});
}

std::optional<Status> CommunicatorImpl::status() const {
  if (!open_ || !control_->failed()) return std::nullopt;
  try {
    throw_failure(control_->failure());
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace hocket::comm
