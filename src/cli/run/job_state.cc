#include "cli/run/job_state.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/run/program.h"

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
  if (start_error == ENOEXEC) {
    return fmt::format(
        "rank {} could not be started: the program is neither a binary for this machine nor a "
        "script that begins with #!",
        rank);
  }
  if (start_error != 0) {
    return fmt::format("rank {} could not be started: {}{}",
                       rank,
                       std::strerror(start_error),
                       start_error == EAGAIN ? "; see `ulimit -u`, which counts the threads of all "
                                               "processes of this user"
                                             : "");
  }
  if (!WIFSIGNALED(status)) {
    return fmt::format("rank {} (pid {}) exited with code {}", rank, pid, WEXITSTATUS(status));
  }
  const int number = WTERMSIG(status);
  return fmt::format("rank {} (pid {}) was killed by {} ({}){}",
                     rank,
                     pid,
                     signal_name(number),
                     ::sigdescr_np(number) != nullptr ? ::sigdescr_np(number) : "unknown",
                     WCOREDUMP(status) ? ", core dumped" : "");
}

// Nothing that a rank does about a peer's death raises SIGSEGV or SIGKILL; an exception that nobody
// catches does raise SIGABRT; most exit with an error.
static int likelihood_of_being_first(const RankEnd& end) {
  if (!end.by_signal()) return 0;
  return WTERMSIG(end.status) == SIGABRT ? 1 : 2;
}

void JobState::ending(int rank) {
  if (failures_.empty()) suspects_.push_back(rank);
}

void JobState::ended(RankEnd end) {
  --living_;
  const bool was_suspect = std::erase(suspects_, end.rank) > 0;
  if (end.failed() && (failures_.empty() || was_suspect)) failures_.push_back(end);
}

const RankEnd& JobState::culprit() const {
  return *std::ranges::max_element(failures_, {}, likelihood_of_being_first);
}

}  // namespace hocket::cli
