#include "interfaces/cli/run/over_hosts/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <sstream>

#include "hocket/run_clock.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/hosts/carried_environment.h"
#include "interfaces/cli/hosts/host_connection.h"
#include "interfaces/cli/hosts/unreachable.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/run/job_output.h"
#include "interfaces/cli/run/job_plan.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/over_hosts/head_input.h"
#include "interfaces/cli/run/over_hosts/outcome.h"

namespace hocket::cli {
namespace {

using HeadClock = RunClock;
using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kForOtherStarts{2};  // hosts that cannot be reached are named together
constexpr milliseconds kForLikelierFailures{500};
constexpr seconds kForHostsToEnd{10};  // beyond what their ranks have
constexpr seconds kSilentStart{10};

// A resource: one host of the job, as the head sees it.
struct HeadHost {
  HostSlots place;
  HostConnection connection;
  std::string release;  // that answered
  std::string early_errors;
  bool is_ready = false;
  bool is_settled = false;  // its end has been dealt with
  std::optional<int> code;  // of its launcher, once that has ended
};

// The event loop. One thread.
class HostsJob {
 public:
  explicit HostsJob(const HostsOptions& options)
      : options_(options), output_({.prefix = false, .log_dir = {}}) {
    sigset_t before;
    signals_ = take_signals(before);
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &children, nullptr);
    children_ =
        checked_fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), "cannot make a signalfd");
  }

  // Starts hocket on each host. Call it while the process has one thread.
  void start() {
    Briefing briefing{.token = random_name(), .key = options_.key, .job = "run-" + random_name()};
    briefing.hosts = options_.hosts;
    briefing.folder = options_.folder;
    briefing.colour =
        ::isatty(STDOUT_FILENO) != 0 && EnvironmentBlock::inherited().get("NO_COLOR").empty();
    briefing.environment = carried_environment();
    for (const HostSlots& place : options_.hosts) {
      briefing.host = static_cast<int>(hosts_.size());
      briefing.arguments = options_.arguments;
      if (briefing.host == 0 && !options_.rendezvous.empty()) {
        const std::vector<std::string> where{"--rendezvous", options_.rendezvous};
        briefing.arguments.insert(briefing.arguments.begin() + 1, where.begin(), where.end());
      }
      output_.add_fed(briefing.host, JobOutput::Kind::kOut);
      output_.add_fed(briefing.host, JobOutput::Kind::kErr);
      hosts_.push_back(
          {.place = place,
           .connection = HostConnection(words_for(options_.command, place.name), briefing)});
      say_verbosely("{} is reached by {}", place.name, hosts_.back().connection.program());
    }
  }

  int run() {
    const RunClock::Watch watch;
    const auto now = HeadClock::now();
    start_limit_ = now + options_.join_timeout;
    say_who_is_late_at_ = now + kSilentStart;
    heartbeat_at_ = now + kHeartbeat;
    while (!std::ranges::all_of(hosts_, &HeadHost::is_settled)) turn();
    report_failure();
    output_.end_fed();
    while (output_.is_open()) turn();
    const std::string lost = output_.lost();
    if (lost.empty()) return exit_code();
    say("not all output could be written to {}", lost);
    while (output_.is_open()) turn();
    return exit_code() == 0 ? kExitFailure : exit_code();
  }

 private:
  void turn() {
    std::vector<pollfd> wait{{signals_.get(), POLLIN, 0},
                             {children_.get(), POLLIN, 0},
                             {may_pass_input_on() ? STDIN_FILENO : -1, POLLIN, 0}};
    const std::size_t own = wait.size();
    const bool takes_output = output_.takes(JobOutput::Kind::kOut);
    const bool takes_errors = output_.takes(JobOutput::Kind::kErr);
    for (const HeadHost& host : hosts_) host.connection.add_to(wait, takes_output, takes_errors);
    const std::size_t all = wait.size();
    output_.add_to(wait);
    ::poll(wait.data(), wait.size(), milliseconds_to_next());
    output_.move(std::span(wait).subspan(all));
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].connection.move(std::span(wait).subspan(own + i * HostConnection::kDescriptors));
    }
    tell_who_reads_no_longer();
    if (wait[1].revents != 0) reap();
    for (HeadHost& host : hosts_) take_news(host);
    if (wait[0].revents != 0) take_signals_of_user();
    if (wait[2].revents != 0) hosts_.front().connection.send(input_.read_order());
    look_at_the_clock();
  }

  bool may_pass_input_on() const {
    return is_running_ && !hosts_.front().is_settled && input_.wants_more();
  }

  void reap() {
    signalfd_siginfo info{};
    while (::read(children_.get(), &info, sizeof info) == sizeof info) {
    }
    for (HeadHost& host : hosts_) host.connection.reap();
  }

  // --- News from the hosts.

  int number_of(const HeadHost& host) const { return static_cast<int>(&host - hosts_.data()); }

  void take_news(HeadHost& host) {
    for (const std::string& text : host.connection.take_notices()) take_notice(host, text);
    const std::string output = host.connection.take_output();
    const std::string errors = host.connection.take_errors();
    if (host.is_ready) {
      output_.feed(number_of(host), JobOutput::Kind::kOut, output);
      output_.feed(number_of(host), JobOutput::Kind::kErr, errors);
    } else {
      host.early_errors += errors;  // what its shell says on standard output is nobody's
    }
    if (!host.connection.has_ended() || host.is_settled) return;
    host.is_settled = true;
    host.is_ready ? settle_end(host) : settle_failed_start(host);
  }

  void take_notice(HeadHost& host, const std::string& text) {
    std::istringstream words(text);
    std::string word;
    words >> word;
    if (word == "release") {
      words >> host.release;
    } else if (word == "ready") {
      host.is_ready = true;
      if (number_of(host) == 0) words >> address_;
      go_if_all_are_ready();
    } else if (word == "took") {
      std::size_t taken = 0;
      words >> taken;
      input_.taken(taken);
    } else if (word == "failed") {
      ReportedFailure failure;
      words >> failure.likelihood >> failure.exit_code >> std::ws;
      std::getline(words, failure.text);
      failure.text = host.place.name + ": " + failure.text;
      rank_failed(failure);
    } else if (word == "ended") {
      host.code = kExitFailure;
      words >> *host.code;
    }
  }

  void go_if_all_are_ready() {
    if (!std::ranges::all_of(hosts_, &HeadHost::is_ready) || is_ending_) return;
    say_verbosely("{} hosts are ready; they meet at {}", hosts_.size(), address_);
    send_to_all(fmt::format("go {}\n", address_));
    is_running_ = true;
  }

  void settle_end(HeadHost& host) {
    if (host.code && (*host.code == 0 || options_.keep_going)) return;
    if (!host.code && !is_ending_) {
      say("{}: the launcher there has ended, or the way to it ({} {}); {}",
          host.place.name,
          host.connection.program(),
          text_of_end(host.connection.status().value_or(0)),
          options_.keep_going ? "the other hosts go on" : "ending the other hosts");
    }
    if (!host.code) host.code = kExitFailure;
    if (options_.keep_going) return;
    outcome_.host_failed(*host.code);
    end_others();
  }

  void settle_failed_start(HeadHost& host) {
    if (gave_up_) return;
    const std::string& path = options_.command.hocket;
    const FailedStart failure{.host = host.place.name,
                              .program = host.connection.program(),
                              .hocket = path.empty() ? own_path() : path,
                              .release = host.release,
                              .errors = host.early_errors,
                              .status = host.connection.status().value_or(0)};
    host.code = exit_code_of(failure);
    say("{}", explain(failure));
    is_ending_ = true;
    if (!give_up_at_) give_up_at_ = HeadClock::now() + kForOtherStarts;
  }

  void rank_failed(const ReportedFailure& failure) {
    if (options_.keep_going || outcome_.has_wish()) return;
    outcome_.rank_failed(failure);
    if (outcome_.is_certain()) {
      report_failure();
    } else if (!report_at_) {
      report_at_ = HeadClock::now() + kForLikelierFailures;
    }
    end_others();
  }

  void report_failure() {
    report_at_.reset();
    const auto text = outcome_.take_report();
    if (!text) return;
    const bool any_is_left = !std::ranges::all_of(hosts_, &HeadHost::is_settled);
    say("{}{}",
        *text,
        any_is_left ? fmt::format("; the others have {} s to end",
                                  std::chrono::duration<double>(options_.grace).count())
                    : "");
  }

  // --- Orders to the hosts.

  void send_to_all(const std::string& order) {
    for (HeadHost& host : hosts_) host.connection.send(order);
  }

  // Ranks that write to a reader that is gone are to learn it, as on one host.
  void tell_who_reads_no_longer() {
    for (const auto kind : {JobOutput::Kind::kOut, JobOutput::Kind::kErr}) {
      bool& told = kind == JobOutput::Kind::kOut ? told_of_lost_output_ : told_of_lost_errors_;
      if (told || !output_.is_gone(kind)) continue;
      told = true;
      send_to_all(fmt::format("deaf {}\n", kind == JobOutput::Kind::kOut ? 1 : 2));
    }
  }

  // The ranks of all hosts have the time of --grace, as on one host.
  void end_others() {
    if (std::exchange(is_ending_, true)) return;
    send_to_all("fail\n");
    give_up_at_ = HeadClock::now() + options_.grace + kGraceAfterTerm + kForHostsToEnd;
  }

  // A host's command ends its ranks when its standard input ends.
  void give_up() {
    gave_up_ = true;
    give_up_at_ = HeadClock::now() + seconds(2) + kGraceAfterTerm;
    for (HeadHost& host : hosts_) host.connection.hang_up();
  }

  void abandon_the_rest() {
    give_up_at_.reset();
    for (HeadHost& host : hosts_) {
      if (host.is_settled) continue;
      if (host.is_ready)
        say("{}: does not answer any more; its ranks end by themselves", host.place.name);
      host.connection.signal(SIGKILL);
    }
  }

  // --- Signals of the user.

  void take_signals_of_user() {
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

  void asked_to_end(int number) {
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

  // --- Time.

  void look_at_the_clock() {
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

  bool have_all_answered() const {
    return std::ranges::all_of(
        hosts_, [](const HeadHost& host) { return host.is_ready || host.is_settled; });
  }

  void wait_for_start(HeadClock::time_point now) {
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

  int milliseconds_to_next() const {
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

  int exit_code() const {
    std::vector<std::optional<int>> codes;
    for (const HeadHost& host : hosts_) codes.push_back(host.code);
    return outcome_.exit_code(codes, options_.keep_going);
  }

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

}  // namespace

int launch_on_hosts(const HostsOptions& options) {
  open_standard_descriptors();
  HostsJob job(options);
  job.start();
  return job.run();
}

}  // namespace hocket::cli
