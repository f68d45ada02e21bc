// The outcome of a job over several hosts: pure bookkeeping, no system calls.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace hocket::cli {

// A failure of a rank, as its host reports it.
struct ReportedFailure {
  int likelihood = 0;  // that no other rank's end caused it; 2: certain
  int exit_code = 1;
  std::string text;
};

// A value; one thread.
class HostsOutcome {
 public:
  // Keeps the likeliest failure. Failures after the report are consequences of it, and ignored.
  void rank_failed(const ReportedFailure& failure);
  // Notes that a whole host has failed, and was reported. Later failures of ranks are consequences.
  void host_failed(int code);
  // The first signal that asks for the end decides the exit code.
  void asked_to_end(int signal) { wish_ = has_wish() ? wish_ : signal; }
  void timed_out() { timed_out_ = true; }

  bool has_wish() const noexcept { return wish_ != 0; }
  // True if no likelier failure can come.
  bool is_certain() const { return failure_ && failure_->likelihood == 2; }
  // Returns the text of the failure, on the first call only.
  std::optional<std::string> take_report();

  // Returns the job's exit code. `codes` are the hosts' launchers' codes, as far as known.
  int exit_code(std::span<const std::optional<int>> codes, bool keep_going) const;

 private:
  std::optional<ReportedFailure> failure_;
  bool was_reported_ = false;
  bool timed_out_ = false;
  int wish_ = 0;
};

}  // namespace hocket::cli
