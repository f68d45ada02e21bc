// How a job over several hosts has ended: pure bookkeeping, no system calls.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace hocket::cli {

// A failure of a rank, as its host reports it.
struct ReportedFailure {
  int likelihood = 0;  // that no other rank's end caused it; 2: it is the first for sure
  int exit_code = 1;
  std::string text;
};

// A value: one thread.
class HostsOutcome {
 public:
  // Keeps the likeliest failure. Failures that come after the report are its consequences.
  void rank_failed(const ReportedFailure& failure);
  // A host has failed as a whole, which has been said. What ranks report from now on follows from
  // it.
  void host_failed(int code);
  // The first signal that asks for the end decides the exit code.
  void asked_to_end(int signal) { wish_ = has_wish() ? wish_ : signal; }
  void timed_out() { timed_out_ = true; }

  bool has_wish() const noexcept { return wish_ != 0; }
  // True if no likelier failure has to be waited for.
  bool is_certain() const { return failure_ && failure_->likelihood == 2; }
  // The text of the failure, once.
  std::optional<std::string> take_report();

  // `codes` are those of the hosts' launchers, as far as they are known.
  int exit_code(std::span<const std::optional<int>> codes, bool keep_going) const;

 private:
  std::optional<ReportedFailure> failure_;
  bool was_reported_ = false;
  bool timed_out_ = false;
  int wish_ = 0;
};

}  // namespace hocket::cli
