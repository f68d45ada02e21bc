// The event loop of a job over several hosts, as the head runs it.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hocket/run_clock.h"
#include "interfaces/cli/hosts/host_connection.h"
#include "interfaces/cli/run/job_output.h"
#include "interfaces/cli/run/over_hosts/head_input.h"
#include "interfaces/cli/run/over_hosts/job.h"
#include "interfaces/cli/run/over_hosts/outcome.h"

namespace hocket::cli {

using HeadClock = RunClock;

// A resource: one host of the job, as the head sees it.
struct HeadHost {
  HostSlots place;
  HostConnection connection;
  std::string release;  // hocket's release there; empty: no answer yet
  std::string early_errors;
  bool is_ready = false;
  bool is_end_handled = false;  // its end has been handled
  std::optional<int> code;      // exit code of its launcher; absent: it has not ended
};

// A resource: the hosts, and the signals of this process. One thread.
class HostsJob {
 public:
  // The options outlive it.
  explicit HostsJob(const HostsOptions& options);
  // Starts hocket on each host. Call it while the process has one thread.
  void start();
  // Runs the job to its end; returns the exit code.
  int run();

 private:
  void turn();
  bool may_pass_input_on() const;
  void reap();

  // --- News from the hosts.
  int number_of(const HeadHost& host) const;
  void take_news(HeadHost& host);
  void take_notice(HeadHost& host, const std::string& text);
  void go_if_all_are_ready();
  void handle_end(HeadHost& host);
  void handle_failed_start(HeadHost& host);
  void rank_failed(const ReportedFailure& failure);
  void report_failure();

  // --- Orders to the hosts.
  void send_to_all(const std::string& order);
  void tell_who_reads_no_longer();
  void end_others();
  void give_up();
  void abandon_the_rest();

  // --- Signals of the user.
  void take_signals_of_user();
  void asked_to_end(int number);

  // --- Time.
  void look_at_the_clock();
  bool have_all_answered() const;
  void wait_for_start(HeadClock::time_point now);
  int milliseconds_to_next() const;
  int exit_code() const;

  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    output_.say("hocket: " + fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void say_verbosely(fmt::format_string<Args...> format, Args&&... args) {
    if (options_.verbose) say(format, std::forward<Args>(args)...);
  }

  const HostsOptions& options_;
  JobOutput output_;
  Fd signals_;
  Fd children_;
  std::vector<HeadHost> hosts_;
  HostsOutcome outcome_;
  HeadInput input_;
  std::string address_ = "-";  // where the hosts meet

  bool is_running_ = false;
  bool is_ending_ = false;
  bool gave_up_ = false;
  bool told_of_lost_output_ = false;
  bool told_of_lost_errors_ = false;
  HeadClock::time_point last_wish_{};
  HeadClock::time_point heartbeat_at_{};
  HeadClock::time_point start_limit_{};
  std::optional<HeadClock::time_point> say_who_is_late_at_;
  std::optional<HeadClock::time_point> report_at_;
  std::optional<HeadClock::time_point> give_up_at_;
};

}  // namespace hocket::cli
