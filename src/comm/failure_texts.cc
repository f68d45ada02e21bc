// What a communicator says of its calls, and of what ended it.
#include "comm/failure_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/log.h"
#include "comm/communicator_impl.h"
#include "comm/witness.h"
#include "comm/world.h"
#include "observe/flight_record.h"

namespace hocket::comm {

using control::Failure;
using engine::Kind;

namespace {

std::string describe(std::uint64_t sequence, const engine::Signature& s) {
  if (sequence == 0) return engine::describe(s);
  const std::string text = engine::describe(s);
  const std::string_view name = std::string_view(text).substr(0, text.find(' '));
  return fmt::format("{} #{}{}", name, sequence, text.substr(name.size()));
}

// What two calls differ in whose texts are one: the text has not all that is compared.
std::string_view unseen_difference(const engine::Signature& s) {
  if (s.kind == Kind::kNewGroup) return " with another list of ranks";
  if (s.kind == Kind::kSplit) return " in another way (split, intra_node, inter_node)";
  if (engine::is_listed(s.kind)) return " with other counts";
  if (s.symmetric != 0) return " at another place of a symmetric array";
  if (engine::is_carried(s.kind)) return " with another list of arrays, or another order of axes";
  if (s.kind == Kind::kSymmetricAllocate) return " of another array";
  return " with other arguments";
}

// `member` is as a peer wrote it.
int pid_of(const control::GroupControl& group, int member) {
  if (member < 0 || member >= group.size()) return 0;
  return group.host().pid(group.host_rank(member));
}

// How the rank that `failure` names died, as waitpid says; absent where it left, or nobody knows.
std::optional<int> end_of(Witness& witness,
                          const control::GroupControl& group,
                          const Failure& failure) {
  if (failure.culprit < 0 || failure.culprit >= group.size() || failure.text != kDiedText) {
    return std::nullopt;
  }
  return witness.await_end(group.host_rank(failure.culprit));
}

// Who leaves the job while others need it may have closed its world too early, and is not dead.
bool lives_on(const Witness& witness, const control::GroupControl& group, const Failure& failure) {
  return failure.text == kLeftText && failure.culprit >= 0 && failure.culprit < group.size() &&
         group.is_here(failure.culprit) && witness.still_runs(group.host_rank(failure.culprit));
}

int signal_of(std::optional<int> end) { return end && WIFSIGNALED(*end) ? WTERMSIG(*end) : 0; }

std::string manner_of_end(const Failure& failure, std::optional<int> end) {
  if (!end) return failure.text;
  if (*end == os::kReplaced) return "replaced itself by another program (exec)";
  if (const int number = signal_of(end); number != 0) {
    const char* name = sigabbrev_np(number);
    return fmt::format("was killed by signal {}{}",
                       number,
                       name == nullptr ? std::string() : fmt::format(" (SIG{})", name));
  }
  return fmt::format("exited with code {} and without leaving the job", WEXITSTATUS(*end));
}

std::string text_of(std::uint64_t sequence, const control::Record& record) {
  return describe(sequence, record.signature) + (record.refused ? " (refused)" : "");
}

}  // namespace

RankCall CommunicatorImpl::call_of(int member) const {
  const std::uint64_t sequence = control_->last_sequence(member);
  std::string text = control_->shown_wait(member);
  if (sequence == 0) {
    if (text.empty()) text = "no collective call so far";
    return {.rank = member, .sequence = 0, .call = std::move(text)};
  }
  if (!text.empty()) text += ", after ";
  const auto record = control_->find(member, sequence);
  text += record ? text_of(sequence, *record) : fmt::format("#{}", sequence);
  if (control_->finished_well(member, sequence)) text += " (finished)";
  return {.rank = member, .sequence = sequence, .call = std::move(text)};
}

std::vector<RankCall> CommunicatorImpl::last_calls() const {
  refuse_forked();
  std::vector<RankCall> calls;
  for (int i = 0; i < size() && rank() >= 0; ++i) calls.push_back(call_of(i));
  return calls;
}

std::vector<RankCall> CommunicatorImpl::recent_calls() const {
  refuse_forked();
  std::vector<RankCall> calls;
  if (rank() < 0) return calls;
  const std::uint64_t last = control_->last_sequence(rank());
  const std::uint64_t first = last > control::kRecords ? last - control::kRecords + 1 : 1;
  for (std::uint64_t sequence = first; sequence <= last; ++sequence) {
    const auto record = control_->find(rank(), sequence);
    if (!record) continue;
    calls.push_back({.rank = rank(), .sequence = sequence, .call = text_of(sequence, *record)});
  }
  return calls;
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
    case ErrorCode::kPeerDied: {
      const bool lives = lives_on(world_->witness(), *control_, f);
      status.message = fmt::format(
          "rank {} (pid {}) {}{} while it was needed {}; see its own output, and {}",
          f.culprit,
          pid_of(*control_, f.culprit),
          manner_of_end(f, end_of(world_->witness(), *control_, f)),
          lives ? " (its process still runs: it has closed its world, or is about to end)" : "",
          where,
          lives ? "close a world only after the last call of all ranks"
                : "start the job again or go on without it");
      break;
    }
    case ErrorCode::kMismatch: {
      const std::string one = describe(f.sequence, f.signature);
      const std::string other = describe(f.sequence, f.other);
      status.message = fmt::format(
          fmt::runtime(
              f.text == "parts"
                  ? "the parts of a v-form differ {}: rank {} expected {}, rank {} gave {}{}; "
                    "counts at both ends must agree"
                  : "ranks called different things {}: rank {} called {}, rank {} called {}{}; all "
                    "ranks must make the same calls in the same order"),
          where,
          f.reporter,
          one,
          f.culprit,
          other,
          one == other ? unseen_difference(f.other) : "");
      break;
    }
    case ErrorCode::kDevice:
      status.message = fmt::format("rank {}'s GPU failed {}: {}", f.culprit, where, f.text);
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

std::string CommunicatorImpl::dump(const std::string& directory) const {
  const std::string& where = directory.empty() ? world_->dump_directory() : directory;
  if (where.empty()) {
    throw InvalidArgument(
        "dump has no directory to write to; give one, or set HOCKET_DUMP_DIR for the job");
  }
  const auto error = status();
  return observe::write({.world_rank = world_->launch().rank,
                         .communicator = membership_.name,
                         .error = error ? error->message : "",
                         .recent = recent_calls(),
                         .ranks = last_calls()},
                        where);
}

void CommunicatorImpl::raise_failure() {
  if (!is_stepping_.load(std::memory_order_relaxed)) told();
  try {
    throw_failure(control_->failure());
  } catch (const Error&) {
    if (!written_.exchange(true) && !world_->dump_directory().empty()) {
      try {
        dump("");
      } catch (const Error& refused) {
        base::log(base::LogLevel::kWarning, fmt::format("no flight record: {}", refused.what()));
      }
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
                     signal_of(end_of(world_->witness(), *control_, f)));
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
    case ErrorCode::kDevice:
      throw DeviceError(std::move(status));
    default:
      throw Aborted(std::move(status));
  }
}

std::optional<Status> CommunicatorImpl::status() const {
  refuse_forked();
  if (!open_ || !control_->failed()) return std::nullopt;
  told();
  try {
    throw_failure(control_->failure());
  } catch (const Error& error) {
    return error.status();
  }
}

}  // namespace hocket::comm
