// The state of a job's ranks, and its conclusions: pure bookkeeping, no system calls.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace hocket::cli {

// "SIGSEGV"; "signal 42" for a signal without a name.
std::string signal_name(int number);

// The end of a rank.
struct RankEnd {
  int rank = -1;
  pid_t pid = -1;
  int status = 0;       // as waitpid gives it
  int start_error = 0;  // errno, if its program did not start

  bool failed() const noexcept { return status != 0 || start_error != 0; }
  bool by_signal() const noexcept;
  // The exit code as in a shell: the code, or 128 + the signal, or 126 and 127 if it did not start.
  int exit_code() const noexcept;
  // How likely it is that no other rank's end caused it. Higher is likelier.
  int likelihood() const noexcept;
  // "was killed by SIGSEGV (Segmentation fault)"
  std::string how() const;
  // "rank 2 (pid 123) was killed by SIGSEGV (Segmentation fault)"
  std::string describe() const;
};

// A value; one thread.
class JobState {
 public:
  // For ranks `first` to first + ranks - 1.
  explicit JobState(int ranks, int first = 0)
      : pids_(static_cast<std::size_t>(ranks), -1), living_(ranks), first_(first) {}

  void started(int rank, pid_t pid) { pids_[static_cast<std::size_t>(rank - first_)] = pid; }
  // Notes that the rank's end has begun, perhaps before the first failure that was seen.
  void ending(int rank);
  // Notes that the rank has left the job. Call it in the order in which ranks left; repetition is
  // harmless. A rank that left earlier has not failed because of a later one, even if its process
  // ends later.
  void said_goodbye(int rank);
  // Notes a rank's end. Call it in the order in which ends were seen.
  void ended(RankEnd end);

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank - first_)]; }
  int living() const noexcept { return living_; }
  bool has_failure() const noexcept { return !failures_.empty(); }
  // True while a rank that may have failed first has not been seen to end.
  bool awaits_suspects() const noexcept { return !suspects_.empty(); }
  const std::vector<int>& suspects() const noexcept { return suspects_; }
  // Returns the failure that probably caused the others. Candidates are the first failure seen, and
  // failures of ranks whose end had begun by then. A signal is preferred to an exit with an error,
  // because no peer's death explains a signal. The rank that left the job first wins a tie.
  const RankEnd& culprit() const;
  int failures() const noexcept { return static_cast<int>(failures_.size()); }

 private:
  bool is_local(int rank) const noexcept {
    return rank >= first_ && rank < first_ + static_cast<int>(pids_.size());
  }

  std::vector<pid_t> pids_;
  std::vector<int> suspects_;
  std::vector<int> goodbyes_;  // in order
  std::set<int> ended_;
  std::vector<RankEnd> failures_;  // the first failure seen, and those of suspects
  int living_;
  int first_;
};

}  // namespace hocket::cli
