// What has become of a job's ranks, and what that means: pure bookkeeping, no system calls.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace hocket::cli {

// "SIGSEGV"; "signal 42" where it has no name.
std::string signal_name(int number);

// How a rank ended.
struct RankEnd {
  int rank = -1;
  pid_t pid = -1;
  int status = 0;       // as waitpid gives it
  int start_error = 0;  // errno, where its program did not start

  bool failed() const noexcept { return status != 0 || start_error != 0; }
  bool by_signal() const noexcept;
  // What a shell would say: the code, or 128 + the signal, or 126 and 127 for no start.
  int exit_code() const noexcept;
  // "was killed by SIGSEGV (Segmentation fault)"
  std::string how() const;
  // "rank 2 (pid 123) was killed by SIGSEGV (Segmentation fault)"
  std::string describe() const;
};

// A value: one thread.
class JobState {
 public:
  // Of ranks `first` to first + ranks - 1.
  explicit JobState(int ranks, int first = 0)
      : pids_(static_cast<std::size_t>(ranks), -1), living_(ranks), first_(first) {}

  void started(int rank, pid_t pid) { pids_[static_cast<std::size_t>(rank - first_)] = pid; }
  // Its end has begun; it may have begun before the first failure that was seen.
  void ending(int rank);
  // It has left the job; told in the order of the goodbyes, each as often as one likes. A rank that
  // was first to leave has not failed by what a later one did, even if its process ends later.
  void said_goodbye(int rank);
  // Ends are told in the order in which they were seen.
  void ended(RankEnd end);

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank - first_)]; }
  int living() const noexcept { return living_; }
  bool has_failure() const noexcept { return !failures_.empty(); }
  // True while a rank that may have failed first has not been seen to end.
  bool awaits_suspects() const noexcept { return !suspects_.empty(); }
  const std::vector<int>& suspects() const noexcept { return suspects_; }
  // The failure that the others follow from, as far as can be told: of those seen first or under
  // way by then, the one that no peer's death explains (a signal rather than an exit with an
  // error), and of those alike the one whose rank was first to leave the job.
  const RankEnd& culprit() const;
  int failures() const noexcept { return static_cast<int>(failures_.size()); }

 private:
  bool is_local(int rank) const noexcept {
    return rank >= first_ && rank < first_ + static_cast<int>(pids_.size());
  }

  std::vector<pid_t> pids_;
  std::vector<int> suspects_;
  std::vector<int> goodbyes_;  // in their order
  std::set<int> ended_;
  std::vector<RankEnd> failures_;  // the first seen, and those of suspects
  int living_;
  int first_;
};

}  // namespace hocket::cli
