#include "ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <thread>

namespace hocket::multiprocess {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCheckFailed = 101;
constexpr int kUncaught = 102;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string new_address() {
  static int count = 0;
  return fmt::format("unix:hocket-faults-{}-{}", getpid(), ++count);
}

// --- A child ------------------------------------------------------------------------------------

[[noreturn]] void run_rank(Rank& rank, const JobOptions& options, const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // No cores, also where they go to a program (a limit of 1 says so): writing one delays the news.
  rlimit core;
  getrlimit(RLIMIT_CORE, &core);
  core.rlim_cur = std::min<rlim_t>(core.rlim_max, 1);
  setrlimit(RLIMIT_CORE, &core);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (options.address_space != 0) {
    // Beside what the tests before this one have left mapped in the parent, such as malloc's
    // arenas.
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most =
        options.address_space + pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    setrlimit(RLIMIT_AS, &limit);
  }
  try {
    body(rank);
  } catch (const std::exception& error) {
    rank.report("uncaught", one_line(error.what()));
    _exit(kUncaught);
  }
  _exit(0);
}

// --- The parent ---------------------------------------------------------------------------------

struct Child {
  pid_t pid = -1;
  int pipe = -1;  // -1: closed
  std::string unread;
  std::map<std::string, std::string> reports;
  std::vector<std::string> failures;
  bool ended = false;
  int status = 0;
};

void take_line(Child& child, const std::string& line) {
  const auto equals = line.find('=');
  const std::string key = line.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
  if (key == "failed") child.failures.push_back(value);
  child.reports[key] = value;
}

void read_from(Child& child) {
  char buffer[4096];
  const ssize_t got = read(child.pipe, buffer, sizeof(buffer));
  if (got <= 0) {
    close(child.pipe);
    child.pipe = -1;
    return;
  }
  child.unread.append(buffer, static_cast<std::size_t>(got));
  for (;;) {
    const auto end = child.unread.find('\n');
    if (end == std::string::npos) return;
    take_line(child, child.unread.substr(0, end));
    child.unread.erase(0, end + 1);
  }
}

void read_all(std::vector<Child>& children, int milliseconds) {
  std::vector<pollfd> polls;
  std::vector<Child*> of;
  for (Child& child : children) {
    if (child.pipe < 0) continue;
    polls.push_back({.fd = child.pipe, .events = POLLIN, .revents = 0});
    of.push_back(&child);
  }
  poll(polls.data(), polls.size(), milliseconds);
  for (std::size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) read_from(*of[i]);
  }
}

std::string line_of(pid_t pid, const char* what) {
  std::ifstream file(fmt::format("/proc/{}/{}", pid, what));
  std::string line;
  std::getline(file, line);
  return line;
}

std::string state_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:")) return line.substr(7);
  }
  return "?";
}

std::string still_running(const std::vector<Child>& children) {
  std::string text;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Child& child = children[i];
    const auto stage = child.reports.find("stage");
    text += fmt::format(
        "\n  rank {} (pid {}): {}; last stage: {}",
        i,
        child.pid,
        child.ended ? fmt::format("ended with status {:#x}", child.status)
                    : fmt::format("{} in {}", state_of(child.pid), line_of(child.pid, "wchan")),
        stage == child.reports.end() ? "none" : stage->second);
    for (const auto& [key, value] : child.reports) {
      if (key != "stage") text += fmt::format("\n    {} = {}", key, value);
    }
  }
  return text;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

// Reads and reaps until all have ended, or the watchdog's time is over.
bool finish(std::vector<Child>& children, Clock::time_point latest) {
  const auto running = [&] {
    return std::any_of(children.begin(), children.end(), [](const Child& child) {
      return !child.ended || child.pipe >= 0;
    });
  };
  while (running()) {
    read_all(children, 5);
    for (Child& child : children) {
      if (!child.ended && waitpid(child.pid, &child.status, WNOHANG) == child.pid) {
        child.ended = true;
        // A pipe that a grandchild holds open must not be waited for.
        while (child.pipe >= 0) {
          pollfd one{.fd = child.pipe, .events = POLLIN, .revents = 0};
          if (poll(&one, 1, 0) <= 0) {
            close(child.pipe);
            child.pipe = -1;
          } else {
            read_from(child);
          }
        }
      }
    }
    if (Clock::now() > latest) return false;
  }
  return true;
}

void end_all(std::vector<Child>& children) {
  for (Child& child : children) {
    if (child.ended) continue;
    kill(child.pid, SIGKILL);
    waitpid(child.pid, &child.status, 0);
    child.ended = true;
    if (child.pipe >= 0) close(child.pipe);
    child.pipe = -1;
  }
}

void judge(const Child& child, int rank, bool may_die) {
  for (const std::string& failure : child.failures) {
    ADD_FAILURE() << "rank " << rank << ": " << failure;
  }
  const auto uncaught = child.reports.find("uncaught");
  if (uncaught != child.reports.end()) {
    ADD_FAILURE() << "rank " << rank << " threw: " << uncaught->second;
  } else if (!may_die && child.status != 0) {
    ADD_FAILURE() << "rank " << rank << " " << describe_status(child.status);
  }
}

}  // namespace

// --- Outcome ------------------------------------------------------------------------------------

Outcome outcome_of(const std::function<void()>& action) {
  const auto of = [](const char* kind, const Error& error) {
    return Outcome{.kind = kind, .message = error.what(), .peer = error.status().peer};
  };
  const auto calls = [](const std::vector<RankCall>& list) {
    std::vector<std::string> texts;
    for (const RankCall& call : list) texts.push_back(fmt::format("{}: {}", call.rank, call.call));
    return fmt::format("{}", fmt::join(texts, "; "));
  };
  try {
    action();
    return {};
  } catch (const PeerDied& error) {
    Outcome outcome = of("PeerDied", error);
    outcome.peer = error.rank();
    outcome.pid = error.pid();
    outcome.signal = error.signal();
    return outcome;
  } catch (const DeadlineExceeded& error) {
    const bool is_deadlock = error.code() == ErrorCode::kDeadlock;
    Outcome outcome = of(is_deadlock ? "DeadlockError" : "DeadlineExceeded", error);
    outcome.missing = fmt::format("{}", fmt::join(error.missing(), ","));
    outcome.calls = calls(error.calls());
    return outcome;
  } catch (const Mismatch& error) {
    Outcome outcome = of("Mismatch", error);
    outcome.calls = calls(error.calls());
    return outcome;
  } catch (const Aborted& error) {
    return of("Aborted", error);
  } catch (const InvalidArgument& error) {
    return of("InvalidArgument", error);
  } catch (const RendezvousError& error) {
    return of("RendezvousError", error);
  } catch (const Error& error) {
    return of("Error", error);
  } catch (const std::bad_alloc&) {
    return {.kind = "bad_alloc"};
  }
}

// --- Rank ---------------------------------------------------------------------------------------

Rank::Rank(int rank, const JobOptions& options, std::string address, Board* board, int pipe)
    : rank_(rank), options_(options), address_(std::move(address)), board_(board), pipe_(pipe) {}

InitOptions Rank::init_options() const {
  InitOptions options{.rank = rank_,
                      .size = options_.size,
                      .address = address_,
                      .timeout = std::chrono::seconds(50),
                      .engines = options_.engines};
  if (options_.segment_bytes != 0) options.segment_bytes = options_.segment_bytes;
  return options;
}

void Rank::report(const std::string& key, const std::string& value) const {
  const std::string line = one_line(key + "=" + value) + "\n";
  // Writes of up to PIPE_BUF bytes are never torn.
  for (std::size_t at = 0; at < line.size();) {
    const ssize_t written = write(pipe_, line.data() + at, line.size() - at);
    if (written < 0) _exit(kCheckFailed);
    at += static_cast<std::size_t>(written);
  }
}

void Rank::report(const std::string& key, const Outcome& outcome) const {
  report(key, outcome.kind);
  report(key + ".message", outcome.message);
  report(key + ".peer", std::to_string(outcome.peer));
  report(key + ".pid", std::to_string(outcome.pid));
  report(key + ".signal", std::to_string(outcome.signal));
  report(key + ".missing", outcome.missing);
  report(key + ".calls", outcome.calls);
}

Outcome Rank::attempt(const std::string& key, const std::function<void()>& action) const {
  stage(key);
  Outcome outcome = outcome_of(action);
  report(key, outcome);
  return outcome;
}

void Rank::check(bool condition, const std::string& what) const {
  if (!condition) report("failed", what);
}

void Rank::mark(int flag) const { ++board_->flags[static_cast<std::size_t>(flag)]; }

int Rank::flag(int flag) const { return board_->flags[static_cast<std::size_t>(flag)]; }

void Rank::await(int flag, int count) const {
  while (board_->flags[static_cast<std::size_t>(flag)] < count) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// --- Result -------------------------------------------------------------------------------------

bool Result::exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
bool Result::killed_by(int signal) const {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

std::string Result::get(const std::string& key) const {
  const auto at = reports.find(key);
  return at == reports.end() ? "(nothing)" : at->second;
}

int Result::number(const std::string& key) const { return std::atoi(get(key).c_str()); }

// --- Watcher ------------------------------------------------------------------------------------

bool Watcher::await(int flag, int count) const {
  const auto latest = Clock::now() + std::chrono::seconds(30);
  while (board_->flags[static_cast<std::size_t>(flag)] < count) {
    if (Clock::now() > latest) {
      ADD_FAILURE() << "flag " << flag << " was not counted up to " << count;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

void Watcher::signal(int rank, int number) const { kill(pid(rank), number); }

// --- A job --------------------------------------------------------------------------------------

std::vector<Result> run_job(const JobOptions& options,
                            const Body& body,
                            const std::vector<int>& expected_to_die,
                            const std::function<void(const Watcher&)>& meanwhile) {
  void* page =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  auto* board = new (page) Board{};
  const std::string address = new_address();
  const auto latest = Clock::now() + options.watchdog;

  std::vector<Child> children(static_cast<std::size_t>(options.size));
  std::vector<pid_t> pids;
  for (int i = 0; i < options.size; ++i) {
    Child& child = children[static_cast<std::size_t>(i)];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::bad_alloc();
    child.pid = fork();
    if (child.pid == 0) {
      for (const Child& other : children) {
        if (other.pipe >= 0) close(other.pipe);
      }
      close(ends[0]);
      Rank rank(i, options, address, board, ends[1]);
      run_rank(rank, options, body);
    }
    close(ends[1]);
    child.pipe = ends[0];
    pids.push_back(child.pid);
  }
  if (meanwhile) meanwhile(Watcher(pids, board));

  if (!finish(children, latest)) {
    ADD_FAILURE() << "the job did not end within " << options.watchdog.count()
                  << " s; its ranks were killed:" << still_running(children);
    end_all(children);
  } else {
    for (int i = 0; i < options.size; ++i) {
      const bool may_die =
          std::find(expected_to_die.begin(), expected_to_die.end(), i) != expected_to_die.end();
      judge(children[static_cast<std::size_t>(i)], i, may_die);
    }
  }
  munmap(page, sizeof(Board));
  std::vector<Result> results;
  for (Child& child : children) {
    results.push_back(
        {.pid = child.pid, .status = child.status, .reports = std::move(child.reports)});
  }
  return results;
}

}  // namespace hocket::multiprocess
