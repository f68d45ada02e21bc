#include "interfaces/cli/run/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <thread>

#include "hocket/error.h"

namespace hocket::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Time for other launchers to read a refusal. Host 0 also names missing hosts this long before the
// others' timeouts.
constexpr milliseconds kFarewell = seconds(2);
constexpr milliseconds kGrace = seconds(10);
constexpr milliseconds kSilentWait = seconds(10);
constexpr const char* kLayout = "launcher/layout";
constexpr const char* kAbsent = "launcher/absent";
constexpr const char* kInformed = "launcher/informed";
constexpr const char* kYes = "yes";
constexpr const char* kNo = "no";
constexpr const char* kLate = "late";

std::string name_of(int host) { return fmt::format("launcher/{}", host); }

std::shared_ptr<Store> connect(const RunOptions& options,
                               const Key& key,
                               const std::string& job,
                               StoreRole role) {
  return connect_store({.address = options.rendezvous,
                        .key = key,
                        .job = job,
                        .rank = options.node_rank,
                        .role = role,
                        .timeout = options.join_timeout});
}

// Announces this launcher's options. This also claims the number of its host.
void announce(Store& store, const RunOptions& options) {
  const std::string mine = fmt::format("{} {}", options.nodes, options.ranks);
  if (!store.compare_and_set(name_of(options.node_rank), std::nullopt, as_bytes(mine))) return;
  throw InvalidArgument(
      fmt::format("--node-rank {}: another launcher of this job has that number, or had it before; "
                  "give each host its own, and start all of them anew after a failure",
                  options.node_rank));
}

// Returns the number of ranks that a launcher announced. If it is invalid, `problem` gets the
// reason.
int read_announcement(const Bytes& bytes, int host, int nodes, std::string& problem) {
  std::istringstream text(to_string(bytes));
  int its_nodes = 0;
  int ranks = 0;
  if (!(text >> its_nodes >> ranks) || ranks < 1 || ranks > kMaxRanks) {
    problem = fmt::format("the launcher of host {} talks nonsense", host);
  } else if (its_nodes != nodes) {
    problem =
        fmt::format("--nnodes {} on host {}, but --nnodes {} on host 0; give all hosts the same",
                    its_nodes,
                    host,
                    nodes);
  }
  return ranks;
}

// Logs the hosts that this launcher waits for.
void tell_absent(Store& store, const RunOptions& options) {
  const auto absent = store.try_get(kAbsent);
  std::fprintf(stderr,
               "hocket: still waiting for the launchers of the other hosts to come to %s%s%s\n",
               options.rendezvous.c_str(),
               absent ? ": --node-rank " : "",
               absent ? to_string(*absent).c_str() : "");
}

// Waits for the layout. After a while it reports the missing hosts.
Bytes get_layout(Store& store, const RunOptions& options) {
  const auto began = RunClock::now();
  const milliseconds longest = options.join_timeout + kGrace;
  try {
    return store.get(kLayout, std::min(longest, kSilentWait));
  } catch (const RendezvousError&) {
    if (RunClock::now() - began < kSilentWait) throw;  // the store is gone
  }
  tell_absent(store, options);
  try {
    return store.get(kLayout, std::max(longest - kSilentWait, milliseconds(1)));
  } catch (const RendezvousError&) {
    if (RunClock::now() - began < longest) throw;
    throw HostsMissing(
        fmt::format("host 0's launcher, at {}, has not said within {} s which ranks are "
                    "this host's; see its output",
                    options.rendezvous,
                    longest.count() / 1000));
  }
}

Layout layout_of(const std::vector<int>& ranks, int host) {
  return {.first_rank = std::accumulate(ranks.begin(), ranks.begin() + host, 0),
          .size = std::accumulate(ranks.begin(), ranks.end(), 0)};
}

}  // namespace

Layout ask_for_layout(const RunOptions& options, const Key& key, const std::string& job) {
  // Keeps a connection open, by which host 0's launcher sees that this launcher lives.
  const auto presence = connect(options, key, job, StoreRole::kLauncher);
  const auto store = connect(options, key, job, StoreRole::kObserver);
  try {
    announce(*store, options);
  } catch (const InvalidArgument&) {
    presence->close();  // another launcher with this number lives
    throw;
  }
  const std::string said = to_string(get_layout(*store, options));
  std::istringstream words(said);
  std::string verdict;
  words >> verdict;
  if (verdict != kYes) store->add(kInformed, 1);
  presence->close();
  store->close();
  if (verdict == kNo) throw InvalidArgument(said.substr(verdict.size() + 1));
  if (verdict == kLate) throw HostsMissing(said.substr(verdict.size() + 1));
  std::vector<int> ranks;
  for (int each = 0; words >> each;) ranks.push_back(each);
  // Host 0 has compared only the launchers that it expected. A larger number of hosts here was not
  // compared.
  if (ranks.size() != static_cast<std::size_t>(options.nodes)) {
    throw InvalidArgument(
        fmt::format("--nnodes {} here, but --nnodes {} on host 0; give all hosts the same",
                    options.nodes,
                    ranks.size()));
  }
  return layout_of(ranks, options.node_rank);
}

Meeting::Meeting(const RunOptions& options,
                 const Key& key,
                 const std::string& job,
                 StoreServer& server)
    : server_(server),
      store_(connect(options, key, job, StoreRole::kObserver)),
      ranks_(static_cast<std::size_t>(options.nodes)),
      patience_(options.join_timeout),
      silent_until_(RunClock::now() + kSilentWait),
      limit_(RunClock::now() + patience_) {
  announce(*store_, options);
}

std::optional<Layout> Meeting::look() {
  std::string problem;
  for (std::size_t host = 0; host < ranks_.size(); ++host) {
    if (ranks_[host] != 0) continue;
    const auto said = store_->try_get(name_of(static_cast<int>(host)));
    if (!said) continue;
    ranks_[host] =
        read_announcement(*said, static_cast<int>(host), static_cast<int>(ranks_.size()), problem);
    if (problem.empty()) continue;
    tell_refusal(kNo, problem);
    throw InvalidArgument(problem);
  }
  require_launchers();
  if (std::ranges::count(ranks_, 0) == 0) {
    for (std::size_t host = 1; host < ranks_.size(); ++host) {
      const Layout layout = layout_of(ranks_, static_cast<int>(host));
      server_.launcher_starts(static_cast<int>(host), layout.first_rank, ranks_[host], layout.size);
    }
    store_->set(kLayout, as_bytes(fmt::format("{} {}", kYes, fmt::join(ranks_, " "))));
    return layout_of(ranks_, 0);
  }
  note_absent();
  if (RunClock::now() < limit_) return std::nullopt;
  const std::string late = text_of_absent(patience_);
  tell_refusal(kLate, late);
  throw HostsMissing(late);
}

// Throws if a launcher that has announced itself has ended since.
void Meeting::require_launchers() {
  for (const int host : server_.lost_launchers()) {
    const auto at = static_cast<std::size_t>(host);
    if (at >= ranks_.size() || ranks_[at] == 0) continue;
    const std::string why = fmt::format(
        "the launcher of host {} came, and was killed or cut off before the others had "
        "come; start all of them anew",
        host);
    tell_refusal(kLate, why);
    throw HostsMissing(why);
  }
}

// Publishes the numbers of the missing hosts, so that other waiting launchers can name them.
void Meeting::note_absent() {
  std::string text = fmt::format("{}", fmt::join(absent(), ", "));
  if (text == told_absent_) return;
  store_->set(kAbsent, as_bytes(text));
  told_absent_ = std::move(text);
}

std::string Meeting::long_wait() {
  if (RunClock::now() < silent_until_) return {};
  silent_until_ = RunClock::time_point::max();
  return "still waiting: " + text_of_absent(kSilentWait);
}

std::vector<std::size_t> Meeting::absent() const {
  std::vector<std::size_t> hosts;
  for (std::size_t host = 0; host < ranks_.size(); ++host) {
    if (ranks_[host] == 0) hosts.push_back(host);
  }
  return hosts;
}

std::string Meeting::text_of_absent(milliseconds waited) const {
  const auto hosts = absent();
  return fmt::format(
      "no launcher has come for {} of {} hosts within {} s: --node-rank {}; start `hocket run` "
      "there "
      "too, with the same --rendezvous and key",
      hosts.size(),
      ranks_.size(),
      static_cast<double>(waited.count()) / 1000,
      fmt::join(hosts, ", "));
}

void Meeting::tell_refusal(const char* verdict, const std::string& why) {
  store_->set(kLayout, as_bytes(fmt::format("{} {}", verdict, why)));
  const auto lost = static_cast<std::ptrdiff_t>(server_.lost_launchers().size());
  const auto others =
      std::ranges::count_if(ranks_, [](int ranks) { return ranks != 0; }) - 1 - lost;
  const auto until = RunClock::now() + kFarewell;
  while (store_->add(kInformed, 0) < others && RunClock::now() < until) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace hocket::cli
