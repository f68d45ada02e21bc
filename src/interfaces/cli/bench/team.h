// The ranks of one library. The library's own launcher starts them, and this command sends them
// requests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "interfaces/cli/bench/wire.h"
#include "interfaces/cli/fd.h"

namespace hocket::cli::bench {

// Thrown by waits that were interrupted by Ctrl-C or a request to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal)
      : std::runtime_error("interrupted by signal " + std::to_string(signal)), signal_(signal) {}
  int signal() const noexcept { return signal_; }

 private:
  int signal_;
};

// Thrown if a library cannot be used any more: a rank has ended, failed, or does not answer.
class TeamFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A resource: SIGINT, SIGTERM, SIGHUP and SIGQUIT as a descriptor to wait on, instead of handlers.
// The calling thread's signal mask is restored at the end. One per process.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  int fd() const noexcept { return fd_.get(); }
  const sigset_t& mask_before() const noexcept { return before_; }
  // Throws Interrupted; called when `fd` is readable.
  [[noreturn]] void raise() const;

 private:
  sigset_t before_;
  Fd fd_;
};

// A resource: the address at which ranks report. It has no name in the file system. It accepts only
// processes of this user that know the token.
class Listener {
 public:
  Listener();
  int fd() const noexcept { return fd_.get(); }
  const std::string& name() const noexcept { return name_; }
  const std::string& token() const noexcept { return token_; }

  struct Guest {
    Channel channel{-1};
    pid_t pid = -1;
  };
  // Accepts waiting connections of this user's processes.
  std::vector<Guest> accept_waiting() const;

 private:
  Fd fd_;
  std::string name_;
  std::string token_;
};

// The command line to start, and variables to add to this process's. A value.
struct Launch {
  std::string library;
  std::vector<std::string> arguments;  // the first is the program's path
  std::vector<std::pair<std::string, std::string>> environment;
};

struct TeamOptions {
  int ranks = 1;
  std::chrono::seconds timeout{60};  // for each answer, and at least a minute to start
};

// A resource: a launcher and its ranks. One thread. Its destructor ends them, by force if
// necessary. Functions throw TeamFailed and Interrupted.
class Team {
 public:
  Team(const Launch& launch,
       const TeamOptions& options,
       const Listener& listener,
       const Interrupts& interrupts);
  ~Team();
  Team(Team&&) = delete;

  const std::string& library() const noexcept { return library_; }
  const std::string& version() const noexcept { return version_; }
  // The processors on which each rank may run: "0", "0-3".
  const std::vector<std::string>& processors() const noexcept { return processors_; }

  // Asks every rank and returns their answers, by rank. Throws TeamFailed at the first that fails.
  std::vector<Answer> ask(const Request& request);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void start(const Launch& launch, const Listener& listener);
  void assemble(const Listener& listener);
  void take_guest(const Listener& listener, Listener::Guest& guest, const std::string& line);
  void reap_launcher();
  void end_gently();
  void end_by_force();
  std::vector<Answer> gather_answers();
  [[noreturn]] void fail(const std::string& what) const;
  std::string output_tail() const;

  std::string library_;
  TeamOptions options_;
  const Interrupts& interrupts_;
  bool broken_ = false;  // a request was left unanswered: ranks may be stuck in a call
  pid_t launcher_ = -1;  // -1 once reaped
  int launcher_status_ = 0;
  Fd output_;  // output of the launcher and the ranks
  std::vector<Channel> ranks_;
  std::vector<Fd> processes_;  // pidfds
  std::string version_;
  std::vector<std::string> processors_;
};

}  // namespace hocket::cli::bench
