#include "interfaces/cli/hosts/unreachable.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/program.h"

namespace hocket::cli {
namespace {

struct Mend {
  std::string_view sign;  // text in the launcher's standard error
  const char* mend;       // {} is the host
};
constexpr std::array kMends{
    Mend{"Could not resolve hostname",
         "is the name spelled right? DNS or ~/.ssh/config must have it"},
    Mend{"Connection refused", "is sshd running there, on the port that ssh takes?"},
    Mend{"timed out", "is the host up, and does a firewall let ssh through?"},
    Mend{"No route to host", "is the host up, and on a network that this one reaches?"},
    Mend{"Permission denied",
         "ssh must log in without a question: `ssh-copy-id {}`, or an agent with the key"},
    Mend{"Host key verification failed", "check the host's key once, by hand: `ssh {}`"},
    Mend{"REMOTE HOST IDENTIFICATION HAS CHANGED",
         "another machine may answer; if the host was made anew: `ssh-keygen -R {}`"},
    Mend{"cannot run '", "install it, or name another command by --launcher"},
};

bool is_missing(const FailedStart& failure) {
  if (!WIFEXITED(failure.status)) return false;
  const int code = WEXITSTATUS(failure.status);
  return code == kExitNotFound || code == kExitNotExecutable;
}

// Returns what the host's command wrote to standard error. Its lines already name the host.
std::string what_it_said(const FailedStart& failure) {
  std::string text = last_line(failure.errors);
  constexpr std::string_view kBegin = "hocket: ";
  if (text.starts_with(kBegin)) text.erase(0, kBegin.size());
  const std::string prefix = failure.host + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

std::string text_of_end(int status) {
  if (WIFSIGNALED(status)) return "was killed by " + signal_name(WTERMSIG(status));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  const std::size_t begin = text.find_last_of("\r\n", end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
}

std::string explain(const FailedStart& failure) {
  const std::string said = what_it_said(failure);
  if (!failure.release.empty() && failure.release != HOCKET_VERSION) {
    return fmt::format(
        "host {} has hocket {} at {}, and this is {}; install the same release there, or name it "
        "by "
        "--remote-hocket",
        failure.host,
        failure.release,
        failure.hocket,
        HOCKET_VERSION);
  }
  if (!failure.release.empty()) {
    return fmt::format("{}: {}", failure.host, said.empty() ? text_of_end(failure.status) : said);
  }
  for (const Mend& mend : kMends) {
    if (failure.errors.find(mend.sign) == std::string::npos) continue;
    return fmt::format("host {} cannot be reached: {}; {}",
                       failure.host,
                       said,
                       fmt::format(fmt::runtime(mend.mend), failure.host));
  }
  if (is_missing(failure)) {
    return fmt::format(
        "host {} has no hocket that runs at {}{}{}; install it there, or name it by "
        "--remote-hocket",
        failure.host,
        failure.hocket,
        said.empty() ? "" : ": ",
        said);
  }
  return fmt::format("host {} cannot be reached: {} {}{}{}; try by hand: {} {} true",
                     failure.host,
                     failure.program,
                     text_of_end(failure.status),
                     said.empty() ? "" : ": ",
                     said,
                     failure.program,
                     failure.host);
}

int exit_code_of(const FailedStart& failure) {
  const bool answered = !failure.release.empty() && failure.release == HOCKET_VERSION;
  const int code = WIFEXITED(failure.status) ? WEXITSTATUS(failure.status) : 0;
  return answered && code != 0 ? code : kExitFailure;
}

}  // namespace hocket::cli
