#include "membership/failure/texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "engine/made_of_calls.h"
#include "foundation/os/process/process_state.h"

namespace hocket::failure {

using control::Cause;
using control::Failure;
using engine::Kind;

std::string describe(std::uint64_t sequence, const engine::Signature& s) {
  if (sequence == 0) return engine::describe(s);
  const std::string text = engine::describe(s);
  const std::string_view name = std::string_view(text).substr(0, text.find(' '));
  return fmt::format("{} #{}{}", name, sequence, text.substr(name.size()));
}

std::string name_of(const control::HostControl& host, int rank, int place) {
  std::string name = fmt::format("rank {}", rank);
  if (const int pid = host.liveness.pid(place); pid != 0) name += fmt::format(" (pid {})", pid);
  const std::string_view where = host.remote_hosts.whereabouts(place);
  return where.empty() ? name : fmt::format("{} {}", name, where);
}

namespace {

std::string describe_record(std::uint64_t sequence, const control::Record& record) {
  return describe(sequence, record.signature) + (record.refused ? " (refused)" : "");
}

// Describes the difference of two calls that have the same text. The text leaves some arguments
// out.
std::string_view unseen_difference(const engine::Signature& s) {
  if (s.kind == Kind::kNewGroup) return " with another list of ranks";
  const engine::Made made = engine::made_of(s.kind, s.digest);
  if (made == engine::Made::kPart) {
    const bool has_list = engine::name_of(s).ends_with("coalesced");
    return has_list ? " with another list of arrays, or other arguments" : " with other arguments";
  }
  if (engine::is_listed(s.kind)) return " with other counts";
  if (s.symmetric != 0) return " at another place of a symmetric array";
  if (made == engine::Made::kExtremes) return " with other arguments";
  if (made == engine::Made::kByOperator) {
    return " with another operator (function, commutative, dtype or rows), or another order of "
           "axes";
  }
  if (s.kind == Kind::kBarrier) return " of another plan, or with other arguments of one";
  if (engine::is_carried(s.kind)) return " with another list of arrays, or another order of axes";
  if (s.kind == Kind::kSymmetricFree) return " of another array";
  return " with other arguments";
}

// Describes what a rank has done that ended the group, as far as the cause tells.
std::string_view words_of(Cause cause) {
  switch (cause) {
    case Cause::kDied:
      return "died";
    case Cause::kLeft:
      return "ended in good order";
    case Cause::kSilent:
      return "cannot be heard any more: its host has fallen silent";
    case Cause::kCut:
      return "cannot be reached any more: the connection that carries its messages has broken";
    case Cause::kRebuild:
      return "called rebuild()";
    case Cause::kClosed:
      return "closed the communicator";
    case Cause::kReturned:
      return "has returned from what it was called for";
    case Cause::kAbortCalled:
      return "called abort()";
    case Cause::kInterrupted:
      return "was interrupted while it waited";
    case Cause::kClosedEarly:
      return "closed the communicator with calls under way";
    case Cause::kWorkDropped:
      return "gave up a call that was under way (its Work was destroyed)";
    case Cause::kCannotGoOn:
      return "cannot go on with a call";
    case Cause::kNotMade:
      return "could not make its part of the group";
    case Cause::kRefused:
      return "refused a call that others had put on their GPUs";
    case Cause::kUnknown:
      return "ended while it was reporting a failure";
    case Cause::kDifferent:
    case Cause::kDifferedBefore:
    case Cause::kPartsDiffer:
    case Cause::kLate:
    case Cause::kDeadlock:
    case Cause::kEngine:
    case Cause::kDevice:
      break;
  }
  return "";
}

// Describes what a rank has done, and adds the text that the rank gave.
std::string words_of(const Failure& failure) {
  const std::string_view words = words_of(failure.cause);
  if (words.empty()) return failure.text;
  return failure.text.empty() ? std::string(words) : fmt::format("{}: {}", words, failure.text);
}

// Returns the members whose bits are set.
std::vector<int> members_of(std::uint64_t bits) {
  std::vector<int> members;
  for (int i = 0; i < 64; ++i) {
    if ((bits >> i & 1) != 0) members.push_back(i);
  }
  return members;
}

int signal_of(std::optional<int> end) { return end && WIFSIGNALED(*end) ? WTERMSIG(*end) : 0; }

constexpr std::string_view kGone =
    "is gone (its process has ended, or another machine has taken its address)";

// Returns additional advice for a call that users may not recognize as their own.
std::string_view mend_of(Kind kind) {
  const bool is_first_use = kind == Kind::kIntraNode || kind == Kind::kInterNode;
  return is_first_use ? "the first use of intra_node or inter_node is a call of all ranks, so let "
                        "each rank use it; "
                      : "";
}

std::string manner_of_end(Cause cause,
                          std::optional<int> end,
                          const std::optional<control::EndReason>& reason) {
  if (reason && !reason->text.empty()) return reason->text;
  if (!end) return std::string(words_of(cause));
  if (*end == os::kReplaced) return "replaced itself by another program (exec)";
  if (const int number = signal_of(end); number != 0) {
    const char* name = sigabbrev_np(number);
    return fmt::format("was killed by signal {}{}",
                       number,
                       name == nullptr ? std::string() : fmt::format(" (SIG{})", name));
  }
  if (cause == Cause::kLeft) return fmt::format("ended with exit status {}", WEXITSTATUS(*end));
  return fmt::format("exited with code {} and without leaving the job", WEXITSTATUS(*end));
}

std::string all_had_come(const engine::Signature& s) {
  const bool calls_back = engine::made_of(s.kind, s.digest) == engine::Made::kByOperator;
  return fmt::format("every rank had come, so one is slow or stopped{}",
                     calls_back ? ", maybe in the operator's function" : "");
}

}  // namespace

// --- Calls --------------------------------------------------------------------------------------

RankCall Texts::last_call(int member) const {
  const std::uint64_t sequence = group_.last_sequence(member);
  std::string text = group_.shown_wait(member);
  if (sequence == 0) {
    if (text.empty()) text = "no collective call so far";
    return {.rank = member, .sequence = 0, .call = std::move(text)};
  }
  if (!text.empty()) text += ", after ";
  const auto record = group_.find(member, sequence);
  text += record ? describe_record(sequence, *record) : fmt::format("#{}", sequence);
  if (group_.finished_well(member, sequence)) text += " (finished)";
  return {.rank = member, .sequence = sequence, .call = std::move(text)};
}

std::vector<RankCall> Texts::last_calls() const {
  std::vector<RankCall> calls;
  for (int i = 0; i < group_.size(); ++i) calls.push_back(last_call(i));
  return calls;
}

std::vector<RankCall> Texts::recent_calls() const {
  std::vector<RankCall> calls;
  const std::uint64_t last = group_.last_sequence(group_.rank());
  const std::uint64_t first = last > control::kRecords ? last - control::kRecords + 1 : 1;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    const auto record = group_.find(group_.rank(), sequence);
    if (!record) continue;
    calls.push_back(
        {.rank = group_.rank(), .sequence = sequence, .call = describe_record(sequence, *record)});
  }
  return calls;
}

// --- Failures -----------------------------------------------------------------------------------

// Returns the pid of a member. `member` may be out of range, because a peer wrote it.
int Texts::pid_of(int member) const {
  if (member < 0 || member >= group_.size()) return 0;
  return group_.host().liveness.pid(group_.host_rank(member));
}

std::string Texts::name_of(int member) const {
  if (member < 0 || member >= group_.size()) return fmt::format("rank {}", member);
  return failure::name_of(group_.host(), member, group_.host_rank(member));
}

bool Texts::is_remote(int member) const {
  return member >= 0 && member < group_.size() && !group_.is_here(member);
}

// Returns whether another host can no longer hear this host, and has managed to report this.
bool Texts::is_way_from_here(const Failure& f) const {
  const bool is_unheard = f.cause == Cause::kSilent || f.cause == Cause::kCut;
  const bool is_here = f.culprit >= 0 && f.culprit < group_.size() && group_.is_here(f.culprit);
  return is_unheard && is_here && is_remote(f.reporter);
}

// Returns the rank that is lost from the view of this rank.
int Texts::peer_of(const Failure& f) const { return is_way_from_here(f) ? f.reporter : f.culprit; }

// Returns how the rank that `failure` names has died, as a status of waitpid. Absent if it left, or
// if this is unknown.
std::optional<int> Texts::end_of(const Failure& failure) const {
  const bool is_member = failure.culprit >= 0 && failure.culprit < group_.size();
  if (!is_member || failure.cause != Cause::kDied) return std::nullopt;
  return witness_.await_end(group_.host_rank(failure.culprit));
}

// Returns the exit status of a process whose rank left without giving a reason. Absent if it is 0
// or unknown.
std::optional<int> Texts::exit_of(const Failure& failure) const {
  const int member = failure.culprit;
  if (failure.cause != Cause::kLeft || member < 0 || member >= group_.size()) return std::nullopt;
  const control::HostControl& host = group_.host();
  const int place = group_.host_rank(member);
  const bool is_awaited =
      group_.is_here(member) && host.liveness.pid(place) != host.liveness.pid(host.self());
  const auto end = is_awaited ? witness_.await_exit(place) : host.liveness.end(place);
  return end && WIFEXITED(*end) && WEXITSTATUS(*end) != 0 ? end : std::nullopt;
}

// Returns the reason that the rank named by `failure` has given for its end. Absent: none.
std::optional<control::EndReason> Texts::reason_of(const Failure& failure) const {
  const bool has_ended = failure.cause == Cause::kDied || failure.cause == Cause::kLeft ||
                         failure.cause == Cause::kReturned;
  if (!has_ended || failure.culprit < 0 || failure.culprit >= group_.size()) return std::nullopt;
  return group_.host().end_reasons.of(group_.host_rank(failure.culprit));
}

// Describes the part of a living rank's process that has failed, if the rank has announced one.
std::string Texts::trouble_of(int member) const {
  const auto reason = group_.host().end_reasons.of(group_.host_rank(member));
  return reason && reason->of_a_part ? ", " + reason->text : std::string();
}

// Describes the process of a member if it is stopped. A running process is not mentioned, because
// its wait may have ended a moment later.
std::string Texts::standstill_of(int member) const {
  using Doing = os::ProcessState::Doing;
  const int place = group_.host_rank(member);
  if (!group_.is_here(member) || place == group_.host().self()) return {};
  const int pid = group_.host().liveness.pid(place);
  const auto state = os::process_state(pid, group_.host().liveness.start(place));
  const bool is_still = state.doing == Doing::kStopped || state.doing == Doing::kTraced ||
                        state.doing == Doing::kDumping;
  return is_still ? ", its process " + os::describe(state, pid) : std::string();
}

// Returns whether the named rank left the job while others need it, but its process still runs. It
// may have closed its world too early.
bool Texts::lives_on(const Failure& failure) const {
  return failure.cause == Cause::kLeft && failure.culprit >= 0 && failure.culprit < group_.size() &&
         group_.is_here(failure.culprit) && witness_.still_runs(group_.host_rank(failure.culprit));
}

std::string Texts::sentence_of_loss(const Failure& f, const std::string& where) const {
  if (is_way_from_here(f)) {
    return fmt::format(
        "{} cannot hear rank {}, of this host, any more, though it is heard here: the way there is "
        "cut, "
        "while it was needed {}; see the network and its firewalls, and start the job again or go "
        "on "
        "without it",
        name_of(f.reporter),
        f.culprit,
        where);
  }
  auto reason = reason_of(f);
  const bool has_failed = reason && !reason->of_a_part;
  const auto end = has_failed || f.cause != Cause::kLeft ? end_of(f) : exit_of(f);
  if (!has_failed) reason = reason_of(f);  // it may have arrived meanwhile
  std::string trouble;
  if (reason && reason->of_a_part) {
    trouble = ", after " + reason->text;
    reason.reset();
  }
  const bool lives = !reason && !end && lives_on(f);
  // A rank that is a thread of this process leaves when its function returns.
  const bool is_thread = lives && pid_of(f.culprit) == pid_of(group_.rank());
  const Cause cause = is_thread ? Cause::kReturned : f.cause;
  const bool returned = !reason && cause == Cause::kReturned;
  // If a host has no living rank, a refused connection is all that is known of its ranks.
  const bool is_gone = f.cause == Cause::kDied && !end && !reason && is_remote(f.culprit);
  return fmt::format("{} {}{}{}{} while it was needed {}; {}see its own output, and {}",
                     name_of(f.culprit),
                     is_gone ? std::string(kGone) : manner_of_end(cause, end, reason),
                     trouble,
                     lives && !is_thread
                         ? " (its process still runs: it has closed its world, or is about to end)"
                         : "",
                     trouble.empty() ? "" : ",",
                     where,
                     mend_of(f.signature.kind),
                     returned ? "have each rank return only after the last call of all"
                     : lives  ? "close a world only after the last call of all ranks"
                              : "start the job again or go on without it");
}

std::string Texts::sentence_of_difference(const Failure& f, const std::string& where) const {
  const std::string one = describe(f.sequence, f.signature);
  const std::string other = describe(f.sequence, f.other);
  if (f.cause == Cause::kDifferedBefore) {
    return fmt::format(
        "ranks called different things before {}, which both rank {} and rank {} called; it was "
        "more than {} calls ago, so that what differed is not known any more; all ranks must make "
        "the same calls in the same order",
        one,
        f.reporter,
        f.culprit,
        control::kRecords - 1);
  }
  if (f.cause == Cause::kPartsDiffer) {
    return fmt::format(
        "the parts of a v-form differ {}: rank {} expected {}, rank {} gave {}; counts at both "
        "ends must agree",
        where,
        f.reporter,
        one,
        f.culprit,
        other);
  }
  const bool is_message = f.signature.kind == Kind::kSend || f.signature.kind == Kind::kRecv;
  return fmt::format(
      "ranks called different things {}: rank {} called {}, rank {} called {}{}; {}",
      where,
      f.reporter,
      one,
      f.culprit,
      other,
      one == other ? unseen_difference(f.other) : "",
      is_message ? "give the receive an array as it is sent, or a longer one and allow_shorter"
                 : "all ranks must make the same calls in the same order");
}

std::string Texts::sentence_of_deadlock(const Failure& f) const {
  const std::vector<int> members = members_of(f.missing);
  const std::string who =
      members.size() == 1 ? fmt::format("rank {} waits for itself", members.front())
                          : fmt::format("ranks {} wait for each other", fmt::join(members, ", "));
  return fmt::format(
      "{} on {}, and nothing is on its way that could end a call of theirs: {}; have one of them "
      "make "
      "its other call first, or exchange by send_recv",
      who,
      communicator_,
      f.text);
}

// Returns the call that a failure ended, as far as it is known: "in all_reduce #3 on world".
std::string Texts::place_of(const Failure& f) const {
  if (!is_loss(f.cause)) {
    return f.sequence == 0 ? fmt::format("on {}", communicator_)
                           : fmt::format("in call #{} on {}", f.sequence, communicator_);
  }
  if (f.sequence == 0) {
    return f.text.empty() ? fmt::format("on {}", communicator_)
                          : fmt::format("in rank {}'s {} on {}", f.reporter, f.text, communicator_);
  }
  if (f.signature.kind == Kind::kNone) {
    return fmt::format("in call #{} on {}", f.sequence, communicator_);
  }
  return fmt::format("in {} #{} on {}", engine::name_of(f.signature), f.sequence, communicator_);
}

std::string Texts::sentence(const Failure& f) const {
  const std::string where = place_of(f);
  switch (f.code()) {
    case ErrorCode::kPeerDied:
      return sentence_of_loss(f, where);
    case ErrorCode::kMismatch:
      return sentence_of_difference(f, where);
    case ErrorCode::kDevice:
      return fmt::format("rank {}'s GPU failed {}: {}", f.culprit, where, f.text);
    case ErrorCode::kDeadlineExceeded:
      return f.text;
    case ErrorCode::kDeadlock:
      return sentence_of_deadlock(f);
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kAborted:
    case ErrorCode::kRendezvous:
    case ErrorCode::kSystem:
      break;
  }
  const int who = f.culprit < 0 ? f.reporter : f.culprit;
  return fmt::format("{} {}; every call on {} ends here",
                     who < 0 ? std::string("a rank") : fmt::format("rank {}", who),
                     words_of(f),
                     communicator_);
}

Status Texts::base_status(const Failure& f) const {
  Status status{.code = f.code(),
                .message = sentence(f),
                .communicator = communicator_,
                .sequence = f.sequence,
                .rank = group_.rank(),
                .peer = peer_of(f)};
  if (f.signature.kind != Kind::kNone) status.operation = engine::name_of(f.signature);
  return status;
}

void Texts::raise_lateness(const Failure& f) const {
  Status status = base_status(f);
  std::vector<int> missing = members_of(f.missing);
  std::vector<RankCall> calls;
  std::vector<std::string> seen;
  for (const int i : missing) {
    calls.push_back(last_call(i));
    seen.push_back(fmt::format(
        "{} last seen in {}{}{}", name_of(i), calls.back().call, standstill_of(i), trouble_of(i)));
  }
  const std::string what = f.sequence == 0 ? fmt::format("rank {}'s {}", f.reporter, f.text)
                                           : fmt::format("{} on {} did not finish within {}",
                                                         describe(f.sequence, f.signature),
                                                         communicator_,
                                                         f.text);
  const bool is_circle =
      missing.size() > 1 && std::ranges::find(missing, f.reporter) != missing.end();
  status.message = fmt::format(
      "{}: {}{}; {}",
      what,
      is_circle ? "ranks wait for each other, in a circle: " : "",
      seen.empty() ? all_had_come(f.signature) : fmt::format("{}", fmt::join(seen, "; ")),
      is_circle ? "have one of them make its other call first"
                : "give a longer deadline if it is only slow");
  throw DeadlineExceeded(std::move(status), std::move(missing), std::move(calls));
}

void Texts::raise(const Failure& f) const {
  switch (f.code()) {
    case ErrorCode::kPeerDied: {
      Status status = base_status(f);
      const int peer = peer_of(f);
      const int signal = peer == f.culprit ? signal_of(end_of(f)) : 0;
      throw PeerDied(std::move(status), peer, pid_of(peer), signal);
    }
    case ErrorCode::kMismatch:
      throw Mismatch(base_status(f),
                     {{f.reporter, f.sequence, describe(f.sequence, f.signature)},
                      {f.culprit, f.sequence, describe(f.sequence, f.other)}});
    case ErrorCode::kDeadlineExceeded:
      raise_lateness(f);
    case ErrorCode::kDeadlock: {
      std::vector<RankCall> calls;
      const std::vector<int> members = members_of(f.missing);
      for (const int member : members) calls.push_back(last_call(member));
      throw DeadlockError(base_status(f), members, std::move(calls));
    }
    case ErrorCode::kDevice:
      throw DeviceError(base_status(f));
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kAborted:
    case ErrorCode::kRendezvous:
    case ErrorCode::kSystem:
      break;
  }
  throw Aborted(base_status(f));
}

void Texts::raise(const Refusal& refusal) const {
  const std::string_view name = engine::name_of(refusal.kind);
  throw InvalidArgument(Status{
      .code = ErrorCode::kInvalidArgument,
      .message =
          fmt::format("rank {} refused {} #{} on {}: {}; the communicator can be used further",
                      refusal.rank,
                      name,
                      refusal.sequence,
                      communicator_,
                      refusal.reason),
      .communicator = communicator_,
      .sequence = refusal.sequence,
      .operation = std::string(name),
      .rank = group_.rank(),
      .peer = refusal.rank,
      .reason = refusal.reason});
}

}  // namespace hocket::failure
