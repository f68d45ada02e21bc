// News from the hosts of a job: what their launchers tell, and their ends.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/hosts/unreachable.h"
#include "interfaces/cli/run/job_state.h"
#include "interfaces/cli/run/over_hosts/hosts_job.h"

namespace hocket::cli {
namespace {

constexpr std::chrono::seconds kForOtherStarts{
    2};  // hosts that cannot be reached are reported together

}  // namespace

int HostsJob::number_of(const HeadHost& host) const {
  return static_cast<int>(&host - hosts_.data());
}

void HostsJob::take_news(HeadHost& host) {
  for (const std::string& text : host.connection.take_notices()) take_notice(host, text);
  const std::string output = host.connection.take_output();
  const std::string errors = host.connection.take_errors();
  if (host.is_ready) {
    output_.feed(number_of(host), JobOutput::Kind::kOut, output);
    output_.feed(number_of(host), JobOutput::Kind::kErr, errors);
  } else {
    host.early_errors += errors;  // its shell's standard output is dropped
  }
  if (!host.connection.has_ended() || host.is_end_handled) return;
  host.is_end_handled = true;
  host.is_ready ? handle_end(host) : handle_failed_start(host);
}

void HostsJob::take_notice(HeadHost& host, const std::string& text) {
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

void HostsJob::go_if_all_are_ready() {
  if (!std::ranges::all_of(hosts_, &HeadHost::is_ready) || is_ending_) return;
  say_verbosely("{} hosts are ready; they meet at {}", hosts_.size(), address_);
  send_to_all(fmt::format("go {}\n", address_));
  is_running_ = true;
}

void HostsJob::handle_end(HeadHost& host) {
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

void HostsJob::handle_failed_start(HeadHost& host) {
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

}  // namespace hocket::cli
