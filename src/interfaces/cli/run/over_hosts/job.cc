#include "interfaces/cli/run/over_hosts/job.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/hosts/carried_environment.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/run/job_plan.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/over_hosts/hosts_job.h"

namespace hocket::cli {
namespace {

using std::chrono::seconds;
constexpr seconds kSilentStart{10};

}  // namespace

HostsJob::HostsJob(const HostsOptions& options)
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

void HostsJob::start() {
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

int HostsJob::run() {
  const RunClock::Watch watch;
  const auto now = HeadClock::now();
  start_limit_ = now + options_.join_timeout;
  say_who_is_late_at_ = now + kSilentStart;
  heartbeat_at_ = now + kHeartbeat;
  while (!std::ranges::all_of(hosts_, &HeadHost::is_end_handled)) turn();
  report_failure();
  output_.end_fed();
  while (output_.is_open()) turn();
  const std::string lost = output_.lost();
  if (lost.empty()) return exit_code();
  say("not all output could be written to {}", lost);
  while (output_.is_open()) turn();
  return exit_code() == 0 ? kExitFailure : exit_code();
}

void HostsJob::turn() {
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

bool HostsJob::may_pass_input_on() const {
  return is_running_ && !hosts_.front().is_end_handled && input_.wants_more();
}

void HostsJob::reap() {
  signalfd_siginfo info{};
  while (::read(children_.get(), &info, sizeof info) == sizeof info) {
  }
  for (HeadHost& host : hosts_) host.connection.reap();
}

void HostsJob::send_to_all(const std::string& order) {
  for (HeadHost& host : hosts_) host.connection.send(order);
}

// Tells the hosts if the reader of an output is gone. Then the ranks' writes fail, as they do in a
// job of one host.
void HostsJob::tell_who_reads_no_longer() {
  for (const auto kind : {JobOutput::Kind::kOut, JobOutput::Kind::kErr}) {
    bool& told = kind == JobOutput::Kind::kOut ? told_of_lost_output_ : told_of_lost_errors_;
    if (told || !output_.is_gone(kind)) continue;
    told = true;
    send_to_all(fmt::format("deaf {}\n", kind == JobOutput::Kind::kOut ? 1 : 2));
  }
}

int HostsJob::exit_code() const {
  std::vector<std::optional<int>> codes;
  for (const HeadHost& host : hosts_) codes.push_back(host.code);
  return outcome_.exit_code(codes, options_.keep_going);
}

int launch_on_hosts(const HostsOptions& options) {
  open_standard_descriptors();
  HostsJob job(options);
  job.start();
  return job.run();
}

}  // namespace hocket::cli
