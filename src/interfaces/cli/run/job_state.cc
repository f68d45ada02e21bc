#include "interfaces/cli/run/job_state.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "interfaces/cli/run/program.h"

namespace hocket::cli {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

bool RankEnd::by_signal() const noexcept { return start_error == 0 && WIFSIGNALED(status); }

int RankEnd::exit_code() const noexcept {
  if (start_error != 0) return start_error == ENOENT ? kExitNotFound : kExitNotExecutable;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string RankEnd::describe() const {
  if (start_error != 0) return fmt::format("rank {} {}", rank, how());
  return fmt::format("rank {} (pid {}) {}", rank, pid, how());
}

std::string RankEnd::how() const {
  if (start_error == ENOEXEC) {
    return "could not be started: the program is neither a binary for this machine nor a script "
           "that begins with #!";
  }
  if (start_error != 0) {
    return fmt::format("could not be started: {}{}",
                       std::strerror(start_error),
                       start_error == EAGAIN ? "; see `ulimit -u`, which counts the threads of all "
                                               "processes of this user"
                                             : "");
  }
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return fmt::format("was killed by {} ({}){}",
                     signal_name(number),
                     ::sigdescr_np(number) != nullptr ? ::sigdescr_np(number) : "unknown",
                     WCOREDUMP(status) ? ", core dumped" : "");
}

// If another rank dies, a rank usually exits with an error. If its program does not catch the
// exception, the rank ends by SIGABRT. No other signal results from another rank's death.
int RankEnd::likelihood() const noexcept {
  if (!by_signal()) return 0;
  return WTERMSIG(status) == SIGABRT ? 1 : 2;
}

void JobState::ending(int rank) {
  if (failures_.empty() && !std::ranges::count(suspects_, rank)) suspects_.push_back(rank);
}

void JobState::said_goodbye(int rank) {
  if (std::ranges::count(goodbyes_, rank) > 0) return;
  goodbyes_.push_back(rank);
}

void JobState::ended(RankEnd end) {
  --living_;
  ended_.insert(end.rank);
  const bool was_suspect = std::erase(suspects_, end.rank) > 0;
  if (end.failed() && failures_.empty()) {
    // Ranks that said goodbye before it, and have not ended yet, are suspects, too.
    for (const int rank : goodbyes_) {
      if (rank == end.rank) break;
      if (is_local(rank) && !ended_.contains(rank)) ending(rank);
    }
  }
  if (end.failed() && (failures_.empty() || was_suspect)) failures_.push_back(end);
}

const RankEnd& JobState::culprit() const {
  // Decides between equally likely ends: the first in this order wins.
  const auto order = [&](const RankEnd& end) {
    const auto goodbye = std::ranges::find(goodbyes_, end.rank);
    return std::pair(-end.likelihood(), goodbye - goodbyes_.begin());
  };
  return *std::ranges::min_element(failures_, {}, order);
}

}  // namespace hocket::cli
