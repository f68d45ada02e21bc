#include "interfaces/cli/run/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "hocket/live.h"
#include "hocket/run_clock.h"
#include "hocket/store.h"
#include "interfaces/cli/address.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/hosts/meeting_address.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/run/first_host.h"
#include "interfaces/cli/run/guardian.h"
#include "interfaces/cli/run/job_plan.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/meeting.h"
#include "interfaces/cli/run/output.h"
#include "interfaces/cli/run/process_tree.h"

namespace hocket::cli {
namespace {

using Clock = RunClock;
constexpr std::chrono::milliseconds kSameWish{100};
// How long to wait for ranks that may have failed before the first one seen.
constexpr std::chrono::milliseconds kForSuspects{1000};
constexpr std::chrono::milliseconds kForACoreFile{200};  // between two checks
// Between two looks while other hosts have not come.
constexpr std::chrono::milliseconds kLookAround{20};
constexpr std::size_t kMaxClients = 1 << 14;  // of a store for several hosts

// The event loop, from the first fork to the last line of output. One thread.
class Launcher {
 public:
  Launcher(RunOptions options, JobPlan plan)
      : options_(std::move(options)),
        head_(std::move(plan.head)),
        first_rank_(plan.first_rank),
        state_(options_.ranks, plan.first_rank),
        size_(plan.launch.size),
        output_(std::move(plan.output)),
        key_(plan.secret),
        job_(plan.job),
        signals_(std::move(plan.signals)),
        guardian_(std::move(plan.launch), [this] {
          output_.abandon();
          signals_.reset();
          head_.reset();  // also closes rank 0's standard input
        }) {}

  int run() {
    const RunClock::Watch watch;
    store_ = serve();
    const auto metrics = serve_metrics();
    if (store_ && head_) options_.rendezvous = store_->address();
    const std::string where = store_ ? store_->address() : options_.rendezvous;
    tell_verbosely("the store is on {}, the guardian is pid {}",
                   where.empty() ? "the first host" : where,
                   guardian_.pid());
    if (const auto code = head_ ? await_go() : meet()) return without_ranks(*code);
    const std::string address = store_ ? store_->address() : options_.rendezvous;
    if (!store_) first_host_.emplace(options_, key_, job_, size_);
    if (options_.timeout) time_limit_ = Clock::now() + *options_.timeout;
    tell_verbosely("ranks {} to {} of {}", first_rank_, first_rank_ + options_.ranks - 1, size_);
    guardian_.start(address, size_);
    while (!all_ended_) turn();
    guardian_.reap();
    report_culprit();
    tell_verbosely("the job ended, exit code {}", exit_code());
    output_.writers_are_gone();
    if (options_.nodes > 1 && store_) tell_end(options_, key_, job_, exit_code() != 0);
    first_host_.reset();
    while (output_.is_open()) turn();
    return finish(told_what_was_lost() && exit_code() == 0 ? 1 : exit_code());
  }

 private:
  // Starts the store's server. On several hosts, host 0's serves all. One host needs no network.
  std::optional<StoreServer> serve() const {
    StoreServer::Options options{.key = key_, .job = job_, .size = size_};
    options.address = fmt::format("unix:hocket-{}-{}", ::geteuid(), job_);
    if (options_.nodes > 1) {
      // The number of ranks is not known yet.
      options.size = 0;
      options.max_clients = kMaxClients;
      options.max_strangers = kMaxClients / 2;
      if (options_.node_rank != 0) return std::nullopt;
      const Address address = parse_address(options_.rendezvous, "--rendezvous");
      options.address = address.host;
      options.port = address.port;
    }
    return StoreServer(std::move(options));
  }

  // Number of clients of the store that is served here; the store outlives its callers.
  std::function<std::optional<std::size_t>()> store_clients() const {
    if (!store_) return {};
    return [this] { return std::optional(store_->clients()); };
  }

  std::optional<MetricsServer> serve_metrics() {
    if (options_.metrics.empty()) return std::nullopt;
    MetricsServer server(MetricsServer::Options{
        .address = options_.metrics,
        .token = std::string(EnvironmentBlock::inherited().get("HOCKET_METRICS_TOKEN")),
        .job = job_,
        .store_clients = store_clients()});
    tell_verbosely("metrics are at http://{}/metrics", server.address());
    return server;
  }

  // Waits until the head says that all hosts are ready. Returns an exit code if the job ends before
  // that.
  std::optional<int> await_go() {
    tell_head(fmt::format("ready {}", store_ ? options_.rendezvous : "-"));
    while (!may_go_ && !ending_by_wish_) turn();
    if (ending_by_wish_ || options_.nodes == 1 || !store_) return ending_by_wish_;
    int first = options_.ranks;
    for (int host = 1; host < options_.nodes; ++host) {
      const int ranks = options_.briefing->hosts[static_cast<std::size_t>(host)].slots;
      store_->launcher_starts(host, std::exchange(first, first + ranks), ranks, size_);
    }
    return std::nullopt;
  }

  // On the first of several hosts: waits for the launchers of the other hosts. Returns an exit code
  // if a signal asks for the end meanwhile. No rank has been started in this case.
  std::optional<int> meet() {
    if (options_.nodes == 1 || !store_) return std::nullopt;
    Meeting meeting(options_, key_, job_, *store_);
    for (;;) {
      if (const auto layout = meeting.look()) {
        size_ = layout->size;
        return std::nullopt;
      }
      if (const std::string late = meeting.long_wait(); !late.empty()) tell("{}", late);
      std::vector<pollfd> wait{{signals_.get(), POLLIN, 0}};
      output_.add_to(wait);
      ::poll(wait.data(), wait.size(), static_cast<int>(kLookAround.count()));
      output_.move(std::span(wait).subspan(1));
      signalfd_siginfo info{};
      while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGTSTP) ::raise(SIGSTOP);
        if (number == SIGTSTP || number == SIGUSR1 || number == SIGUSR2) continue;
        tell("{}: no rank has been started", signal_name(number));
        return 128 + number;
      }
    }
  }

  int without_ranks(int code) {
    all_ended_ = true;
    output_.writers_are_gone();
    while (output_.is_open()) turn();
    return finish(code);
  }

  // Tells the head the exit code, because ssh may end with another one.
  int finish(int code) {
    if (!head_) return code;
    tell_head(fmt::format("ended {}", code));
    while (output_.is_open()) turn();
    return code;
  }

  bool told_what_was_lost() {
    const std::string lost = output_.lost();
    if (lost.empty()) return false;
    tell("not all output could be written to {}", lost);
    while (output_.is_open()) turn();
    return true;
  }

  // Waits for an event, and handles it.
  void turn() {
    std::vector<pollfd> wait{{all_ended_ ? -1 : guardian_.fd(), POLLIN, 0},
                             {signals_.get(), POLLIN, 0},
                             {first_host_ ? first_host_->fd() : -1, POLLIN, 0}};
    const std::size_t own = wait.size();
    if (head_) head_->add_to(wait);
    const std::size_t others = wait.size();
    output_.add_to(wait);
    ::poll(wait.data(), wait.size(), milliseconds_to_next_event());
    output_.move(std::span(wait).subspan(others));
    if (head_) take_orders(head_->move(std::span(wait).subspan(own, others - own)));
    if (wait[2].revents != 0) lost_first_host();
    if (wait[1].revents != 0) take_signals();
    if (wait[0].revents != 0) take_reports();
    look_at_the_clock();
  }

  void take_orders(const std::vector<HeadOrder>& orders) {
    for (const HeadOrder& order : orders) {
      switch (order.kind) {
        case HeadOrder::Kind::kGo:
          may_go_ = true;
          if (!store_) options_.rendezvous = order.text;
          break;
        case HeadOrder::Kind::kSignal:
          take_signal(order.number, false);
          break;
        case HeadOrder::Kind::kFail:
          if (!may_go_) ending_by_wish_ = kExitFailure;
          if (!end_at_ && !kill_at_) end_at_ = Clock::now() + options_.grace;
          break;
        case HeadOrder::Kind::kDeaf:
          output_.deafen(order.number == 1 ? JobOutput::Kind::kOut : JobOutput::Kind::kErr);
          break;
        case HeadOrder::Kind::kTook:
          tell_head(fmt::format("took {}", order.number));
          break;
        case HeadOrder::Kind::kGone:
          lost_head(order.text);
      }
    }
  }

  // Ends the ranks after the head has gone. Nobody reads their output any more.
  void lost_head(const std::string& why) {
    if (!all_ended_) tell("{}; ending {} ranks", why, state_.living());
    if (!ending_by_wish_) ending_by_wish_ = kExitFailure;
    if (!all_ended_) end_ranks();
    output_.abandon();
  }

  // Ends the ranks after the first host's launcher has ended. Ranks that have not joined would
  // search for the store until their timeout.
  void lost_first_host() {
    const std::string why = first_host_->why();
    first_host_.reset();
    if (all_ended_ || ending_by_wish_ || head_) return;  // the head reports it
    tell("{}; ending {} ranks", why, state_.living());
    ending_by_wish_ = kExitFailure;
    end_ranks();
  }

  void take_reports() {
    try {
      while (!all_ended_) {
        const auto report = guardian_.next_report();
        if (!report) return;
        take(*report);
      }
    } catch (const SystemError& error) {
      guardian_died(error.what());
    }
  }

  void take(const GuardianReport& report) {
    switch (report.kind) {
      case GuardianReport::Kind::kStarted:
        state_.started(report.rank, report.value);
        tell_verbosely("rank {} is pid {}", report.rank, report.value);
        return;
      case GuardianReport::Kind::kNotStarted:
        return ended({.rank = report.rank, .start_error = report.value});
      case GuardianReport::Kind::kEnding:
        return state_.ending(report.rank);
      case GuardianReport::Kind::kEnded:
        return ended({.rank = report.rank, .pid = state_.pid(report.rank), .status = report.value});
      case GuardianReport::Kind::kAllEnded:
        all_ended_ = true;
        if (report.value > 0) {
          tell_verbosely("ended {} processes that the ranks had left", report.value);
        }
        return;
    }
  }

  void ended(const RankEnd& end) {
    // The rank's last output comes before the report of its end.
    output_.drain(end.rank);
    const bool first_failure = end.failed() && !state_.has_failure();
    if (store_) {
      for (const int rank : store_->departures()) state_.said_goodbye(rank);
      store_->rank_ended(end.rank, size_, end.how());
    }
    state_.ended(end);
    if (!end.failed()) {
      any_ended_well_ = true;
      tell_verbosely("rank {} (pid {}) ended well", end.rank, end.pid);
    }
    if (options_.keep_going && end.failed() && !ending_by_wish_) {
      tell("{}; {} ranks go on", end.describe(), state_.living());
    } else if (!ending_by_wish_ && first_failure) {
      // Waits for ranks that had begun to end, to name the rank that failed first.
      report_at_ = Clock::now() + kForSuspects;
      others_at_failure_ = state_.living();
      end_at_ = Clock::now() + options_.grace;
    }
    if (state_.has_failure() && !state_.awaits_suspects()) report_culprit();
  }

  void report_culprit() {
    if (!state_.has_failure() || reported_ || ending_by_wish_ || options_.keep_going) return;
    reported_ = true;
    const RankEnd& culprit = state_.culprit();
    if (!head_) return tell("{}{}", culprit.describe(), others_clause());
    tell_head(fmt::format(
        "failed {} {} {}", culprit.likelihood(), culprit.exit_code(), culprit.describe()));
  }

  std::string others_clause() const {
    if (others_at_failure_ == 0) return "";
    const bool one = others_at_failure_ == 1;
    const std::string others =
        one ? "the other rank" : fmt::format("the other {} ranks", others_at_failure_);
    if (options_.grace.count() == 0) return "; ending " + others;
    return fmt::format("; {} {} {} s to end",
                       others,
                       one ? "has" : "have",
                       std::chrono::duration<double>(options_.grace).count());
  }

  // Asks all ranks to end, and kills them when the time is up.
  void end_ranks() {
    end_at_.reset();
    guardian_.signal(SIGTERM);
    kill_at_ = Clock::now() + kGraceAfterTerm;
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      // The terminal's driver signals the whole foreground group by itself.
      take_signal(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
    }
  }

  void take_signal(int number, bool from_terminal) {
    switch (number) {
      case SIGINT:
      case SIGTERM:
      case SIGHUP:
      case SIGQUIT:
        asked_to_end(number, from_terminal);
        break;
      case SIGTSTP:
        guardian_.signal(SIGSTOP);
        if (head_) break;  // the head orders when the ranks continue
        ::raise(SIGSTOP);
        guardian_.signal(SIGCONT);
        break;
      default:
        guardian_.signal(number, from_terminal);
    }
  }

  void asked_to_end(int number, bool from_terminal) {
    if (all_ended_) return output_.abandon();  // only a reader that does not read delays the end
    const auto now = Clock::now();
    // Some senders signal both the process and its group. That counts as one request.
    const bool repeated = std::exchange(last_wish_, now) + kSameWish > now;
    if (repeated) return;
    if (ending_by_wish_) {
      if (!head_) tell("{} again: killing the ranks", signal_name(number));
      guardian_.signal(SIGKILL);
      return;
    }
    report_culprit();
    if (!head_) tell("{}: ending {} ranks", signal_name(number), state_.living());
    guardian_.signal(number, from_terminal);
    ending_by_wish_ = 128 + number;
    end_at_.reset();
    kill_at_ = now + std::max<Clock::duration>(kGraceAfterSignal, options_.grace);
  }

  // Returns whether a crashed rank is still writing its core file. Killing the rank now would
  // truncate the file.
  bool any_dumps_core() {
    for (const int rank : state_.suspects()) {
      if (!is_ending(state_.pid(rank))) continue;
      if (!std::exchange(told_of_core_file_, true)) {
        tell("rank {} (pid {}) ends, which takes long: its core file may be being written",
             rank,
             state_.pid(rank));
      }
      return true;
    }
    return false;
  }

  void look_at_the_clock() {
    const auto now = Clock::now();
    output_.flush_idle(now);
    if (report_at_ && now >= *report_at_) {
      report_at_.reset();
      if (any_dumps_core()) {
        report_at_ = now + kForACoreFile;
      } else {
        report_culprit();
      }
    }
    if (end_at_ && now >= *end_at_) end_ranks();
    if (kill_at_ && now >= *kill_at_ && !ending_by_wish_ && any_dumps_core()) {
      kill_at_ = now + kForACoreFile;
    } else if (kill_at_ && now >= *kill_at_) {
      kill_at_.reset();
      tell_verbosely("the grace period is over: killing {} ranks", state_.living());
      guardian_.signal(SIGKILL);
    }
    if (time_limit_ && now >= *time_limit_) {
      time_limit_.reset();
      if (ending_by_wish_ || (state_.has_failure() && !options_.keep_going)) return;
      tell("the time limit of {} s is over; ending {} ranks",
           std::chrono::duration<double>(*options_.timeout).count(),
           state_.living());
      ending_by_wish_ = kExitTimeout;
      end_ranks();
    }
  }

  int milliseconds_to_next_event() const {
    std::optional<Clock::time_point> next = output_.next_flush();
    for (const auto& time : {report_at_, end_at_, kill_at_, time_limit_}) {
      if (time && (!next || *time < *next)) next = time;
    }
    if (head_ && (!next || head_->silent_at() < *next)) next = head_->silent_at();
    if (!next) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
    return static_cast<int>(std::clamp<long long>(left.count(), 0, 1'000'000));
  }

  // When the guardian dies, the kernel kills the ranks. Their children become the launcher's.
  void guardian_died(const char* why) {
    kill_descendants();
    all_ended_ = guardian_lost_ = true;
    tell("{}; all ranks have been killed", why);
  }

  int exit_code() const {
    if (ending_by_wish_) return *ending_by_wish_;
    if (options_.keep_going && any_ended_well_) return 0;
    if (state_.has_failure()) return state_.culprit().exit_code();
    return guardian_lost_ ? 1 : 0;
  }

  template <typename... Args>
  void tell(fmt::format_string<Args...> format, Args&&... args) {
    const std::string host = head_ ? options_.briefing->self().name + ": " : "";
    output_.say("hocket: " + host + fmt::format(format, std::forward<Args>(args)...));
  }
  void tell_head(const std::string& text) { output_.put_notice(head_->notice(text)); }
  template <typename... Args>
  void tell_verbosely(fmt::format_string<Args...> format, Args&&... args) {
    if (options_.verbose) tell(format, std::forward<Args>(args)...);
  }

  RunOptions options_;
  std::optional<HeadLink> head_;      // absent: a user started this launcher
  std::optional<StoreServer> store_;  // on several hosts, only the first has it
  int first_rank_;
  JobState state_;
  int size_;  // ranks of the job; on host 0 of several not known at first
  JobOutput output_;
  Key key_;
  std::string job_;
  Fd signals_;
  Guardian guardian_;
  std::optional<FirstHost> first_host_;  // on the other hosts, while the ranks may not have joined

  bool may_go_ = false;
  bool all_ended_ = false;
  bool guardian_lost_ = false;
  bool reported_ = false;
  bool told_of_core_file_ = false;
  bool any_ended_well_ = false;
  int others_at_failure_ = 0;
  std::optional<int> ending_by_wish_;  // the exit code, if a signal or the time limit ends the job
  Clock::time_point last_wish_{};
  std::optional<Clock::time_point> report_at_;  // when to report the first failure
  std::optional<Clock::time_point> end_at_;     // when to end the remaining ranks
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> time_limit_;
};

}  // namespace

// Puts an IPv6 address in brackets, because a port follows.
static std::string url_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

int launch(const RunOptions& options) {
  become_subreaper();  // needed if the guardian dies
  RunOptions mine = options;
  if (mine.briefing != nullptr && mine.nodes > 1 && mine.node_rank == 0) {
    if (mine.rendezvous.empty()) mine.rendezvous = url_host(meeting_address(*mine.briefing)) + ":0";
  }
  return Launcher(mine, plan_job(mine)).run();
}

}  // namespace hocket::cli
