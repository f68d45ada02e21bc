// Ranks as real processes, for tests that kill them.
//
// The parent never uses hocket: it forks the ranks, reads what they report through a pipe each, and
// asserts on that. A watchdog ends a job that does not finish, and says what each rank was doing.
//
//     const auto ranks = run_job({.size = 2}, [](Rank& rank) {
//       auto world = rank.join();
//       rank.report("sum", ...);
//     });
//     EXPECT_EQ(ranks[0].get("sum"), "3");
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hocket/hocket.h"

namespace hocket::multiprocess {

struct JobOptions {
  int size = 2;
  std::vector<std::string> engines = {};
  std::chrono::seconds watchdog{60};
  std::map<std::string, std::string> environment = {};
  std::size_t address_space = 0;                       // bytes to be mapped; 0: no limit
  std::size_t segment_bytes = std::size_t{256} << 20;  // a rank; 0: hocket's own choice
};

// Memory that the ranks of one job share outside hocket, to synchronize. Initially zero.
struct Board {
  static constexpr int kFlags = 64;
  std::array<std::atomic<int>, kFlags> flags;
};

// The outcome of an action: an error's fields, or success.
struct Outcome {
  std::string kind = "ok";  // or "PeerDied", "Mismatch", ...
  std::string message = {};
  int peer = -1;
  int pid = 0;
  int signal = 0;            // that ended the dead rank, 0 if unknown
  std::string missing = {};  // "1,2"
  std::string calls = {};    // the calls of the missing or disagreeing ranks

  bool ok() const { return kind == "ok"; }
};
// Runs `action`, which may throw what hocket throws.
Outcome outcome_of(const std::function<void()>& action);

// A rank's end, in its own process. Belongs to the process's first thread, but for `check`, `mark`
// and `await`.
class Rank {
 public:
  Rank(int rank, const JobOptions& options, std::string address, Board* board, int pipe);

  int rank() const { return rank_; }
  int size() const { return options_.size; }
  InitOptions init_options() const;
  World join() const { return init(init_options()); }

  // Tells the parent.
  void report(const std::string& key, const std::string& value) const;
  void report(const std::string& key, const Outcome& outcome) const;
  // Runs `action`, and tells the parent how it ended.
  Outcome attempt(const std::string& key, const std::function<void()>& action) const;
  // The parent's test fails unless `condition`.
  void check(bool condition, const std::string& what) const;
  // Sets the watchdog's text about this rank.
  void stage(const std::string& what) const { report("stage", what); }

  // Increments flag `flag`; waits until it has reached `count`; returns its value. Works without
  // hocket.
  void mark(int flag) const;
  void await(int flag, int count) const;
  int flag(int flag) const;

 private:
  int rank_;
  const JobOptions& options_;
  std::string address_;
  Board* board_;
  int pipe_;
};

// The parent's knowledge about a rank that has ended.
struct Result {
  pid_t pid = -1;
  int status = 0;  // as waitpid returns it
  std::map<std::string, std::string> reports = {};

  bool exited(int code = 0) const;
  bool killed_by(int signal) const;
  // The last report under `key`; "(nothing)" if there is none.
  std::string get(const std::string& key) const;
  int number(const std::string& key) const;
};

using Body = std::function<void(Rank&)>;

// While a job runs: what the parent can do to it.
class Watcher {
 public:
  Watcher(const std::vector<pid_t>& pids, Board* board) : pids_(pids), board_(board) {}
  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  int flag(int flag) const { return board_->flags[static_cast<std::size_t>(flag)]; }
  void mark(int flag) const { ++board_->flags[static_cast<std::size_t>(flag)]; }
  // Waits for the flag, at most half a minute.
  bool await(int flag, int count) const;
  void signal(int rank, int number) const;

 private:
  const std::vector<pid_t>& pids_;
  Board* board_;
};

// Runs `body` in `size` processes until all have ended. The test fails on failed checks, exceptions
// that leave `body`, crashes and the watchdog. Ranks in `expected_to_die` may die. `meanwhile` runs
// in the parent once all are forked.
std::vector<Result> run_job(const JobOptions& options,
                            const Body& body,
                            const std::vector<int>& expected_to_die = {},
                            const std::function<void(const Watcher&)>& meanwhile = {});

}  // namespace hocket::multiprocess
