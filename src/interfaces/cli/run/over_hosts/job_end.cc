// How a job over several hosts ends: failures of ranks, signals of the user, and time limits.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/over_hosts/hosts_job.h"

namespace hocket::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr milliseconds kForLikelierFailures{500};
constexpr seconds kForHostsToEnd{10};  // in addition to the time of their ranks

}  // namespace

void HostsJob::rank_failed(const ReportedFailure& failure) {
  if (options_.keep_going || outcome_.has_wish()) return;
  outcome_.rank_failed(failure);
  if (outcome_.is_certain()) {
    report_failure();
  } else if (!report_at_) {
    report_at_ = HeadClock::now() + kForLikelierFailures;
  }
  end_others();
}

void HostsJob::report_failure() {
  report_at_.reset();
  const auto text = outcome_.take_report();
  if (!text) return;
  const bool any_is_left = !std::ranges::all_of(hosts_, &HeadHost::is_end_handled);
  say("{}{}",
      *text,
      any_is_left ? fmt::format("; the others have {} s to end",
                                std::chrono::duration<double>(options_.grace).count())
                  : "");
}

// Makes all hosts end their ranks after the time of --grace, as in a job of one host.
void HostsJob::end_others() {
  if (std::exchange(is_ending_, true)) return;
  send_to_all("fail\n");
  give_up_at_ = HeadClock::now() + options_.grace + kGraceAfterTerm + kForHostsToEnd;
}

// Closes the standard input of all hosts' commands, which then end their ranks.
void HostsJob::give_up() {
  gave_up_ = true;
  give_up_at_ = HeadClock::now() + seconds(2) + kGraceAfterTerm;
  for (HeadHost& host : hosts_) host.connection.hang_up();
}

void HostsJob::abandon_the_rest() {
  give_up_at_.reset();
  for (HeadHost& host : hosts_) {
    if (host.is_end_handled) continue;
    if (host.is_ready)
      say("{}: does not answer any more; its ranks end by themselves", host.place.name);
    host.connection.signal(SIGKILL);
  }
}

void HostsJob::take_signals_of_user() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGTSTP) {
      send_to_all(fmt::format("signal {}\n", SIGTSTP));
      ::raise(SIGSTOP);
      send_to_all(fmt::format("signal {}\n", SIGCONT));
    } else if (number == SIGUSR1 || number == SIGUSR2) {
      if (is_running_) send_to_all(fmt::format("signal {}\n", number));
    } else {
      asked_to_end(number);
    }
  }
}

void HostsJob::asked_to_end(int number) {
  const auto now = HeadClock::now();
  constexpr milliseconds kSameWishOfAll{100};
  if (std::exchange(last_wish_, now) + kSameWishOfAll > now) return;
  report_failure();
  if (outcome_.has_wish()) {
    say("{} again: killing the ranks", signal_name(number));
  } else if (is_running_) {
    say("{}: ending the ranks of {} hosts", signal_name(number), hosts_.size());
  } else {
    say("{}: no rank has been started", signal_name(number));
  }
  outcome_.asked_to_end(number);
  is_ending_ = true;
  if (!is_running_) return give_up();
  send_to_all(fmt::format("signal {}\n", number));
  give_up_at_ = now + std::max<milliseconds>(kGraceAfterSignal, options_.grace) + kForHostsToEnd;
}

void HostsJob::look_at_the_clock() {
  const auto now = HeadClock::now();
  output_.flush_idle(now);
  if (now >= heartbeat_at_) {
    heartbeat_at_ = now + kHeartbeat;
    send_to_all("alive\n");
  }
  if (report_at_ && now >= *report_at_) report_failure();
  if (!is_running_ && !is_ending_) wait_for_start(now);
  if (!is_running_ && is_ending_ && !gave_up_ && have_all_answered()) give_up();
  if (give_up_at_ && now >= *give_up_at_) gave_up_ ? abandon_the_rest() : give_up();
}

bool HostsJob::have_all_answered() const {
  return std::ranges::all_of(
      hosts_, [](const HeadHost& host) { return host.is_ready || host.is_end_handled; });
}

void HostsJob::wait_for_start(HeadClock::time_point now) {
  std::vector<std::string> late;
  for (const HeadHost& host : hosts_) {
    if (!host.is_ready) late.push_back(host.place.name);
  }
  if (now >= start_limit_) {
    say("no answer within {} s from: {}; see whether `{} HOST true` ends there",
        std::chrono::duration<double>(options_.join_timeout).count(),
        fmt::join(late, ", "),
        hosts_.front().connection.program());
    outcome_.timed_out();
    is_ending_ = true;
    give_up();
  } else if (say_who_is_late_at_ && now >= *say_who_is_late_at_) {
    say_who_is_late_at_.reset();
    say("still waiting for: {}", fmt::join(late, ", "));
  }
}

int HostsJob::milliseconds_to_next() const {
  auto next = heartbeat_at_;
  const bool starts = !is_running_ && !is_ending_;
  for (const auto& time : {output_.next_flush(),
                           report_at_,
                           give_up_at_,
                           starts ? say_who_is_late_at_ : std::nullopt,
                           starts ? std::optional(start_limit_) : std::nullopt}) {
    if (time && *time < next) next = *time;
  }
  const auto left = std::chrono::ceil<milliseconds>(next - HeadClock::now());
  return static_cast<int>(std::clamp<long long>(left.count(), 0, 1'000'000));
}

}  // namespace hocket::cli
