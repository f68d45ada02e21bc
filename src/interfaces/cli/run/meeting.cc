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

constexpr milliseconds kPatience = seconds(300);
// For others to read a refusal, and for host 0 to say who is missing before others lose patience.
constexpr milliseconds kFarewell = seconds(2);
constexpr milliseconds kGrace = seconds(10);
constexpr milliseconds kSilentWait = seconds(10);
constexpr const char* kLayout = "launcher/layout";
constexpr const char* kInformed = "launcher/informed";

std::string name_of(int host) { return fmt::format("launcher/{}", host); }

milliseconds patience(const RunOptions& options) {
  return std::min(kPatience, options.timeout.value_or(kPatience));
}

std::shared_ptr<Store> connect(const RunOptions& options,
                               const Key& key,
                               const std::string& job,
                               const std::string& address) {
  return connect_store({.address = address,
                        .key = key,
                        .job = job,
                        .role = StoreRole::kObserver,
                        .timeout = patience(options)});
}

// Announces this launcher's options, and thereby claims its host's number.
void announce(Store& store, const RunOptions& options) {
  const std::string mine = fmt::format("{} {}", options.nodes, options.ranks);
  if (!store.compare_and_set(name_of(options.node_rank), std::nullopt, as_bytes(mine))) return;
  throw InvalidArgument(
      fmt::format("--node-rank {}: another launcher of this job has that number, or had it before; "
                  "give each host its own, and start all of them anew after a failure",
                  options.node_rank));
}

// The number of ranks that a launcher announced; why it cannot be is put into `problem`.
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

// Reports after a while for which hosts it waits.
Bytes get_layout(Store& store, const RunOptions& options) {
  const milliseconds longest = patience(options) + kGrace;
  if (longest > kSilentWait) {
    try {
      return store.get(kLayout, kSilentWait);
    } catch (const RendezvousError&) {
      // A store that is gone is found out once more, below.
    }
    std::fprintf(stderr,
                 "hocket: still waiting for the launchers of the other hosts to come to %s\n",
                 options.rendezvous.c_str());
  }
  return store.get(kLayout, std::max(longest - kSilentWait, milliseconds(1)));
}

Layout layout_of(const std::vector<int>& ranks, int host) {
  return {.first_rank = std::accumulate(ranks.begin(), ranks.begin() + host, 0),
          .size = std::accumulate(ranks.begin(), ranks.end(), 0)};
}

}  // namespace

Layout ask_for_layout(const RunOptions& options, const Key& key, const std::string& job) {
  const auto store = connect(options, key, job, options.rendezvous);
  announce(*store, options);
  const std::string said = to_string(get_layout(*store, options));
  std::istringstream words(said);
  std::string verdict;
  words >> verdict;
  if (verdict == "no") {
    store->add(kInformed, 1);
    store->close();
    throw InvalidArgument(said.substr(verdict.size() + 1));
  }
  std::vector<int> ranks;
  for (int each = 0; words >> each;) ranks.push_back(each);
  store->close();
  // Only who has a number that host 0 does not know of has not been compared by it.
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
                 const std::string& address)
    : store_(connect(options, key, job, address)),
      ranks_(static_cast<std::size_t>(options.nodes)),
      silent_until_(RunClock::now() + kSilentWait),
      limit_(RunClock::now() + kPatience) {
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
    if (!problem.empty()) refuse(problem);
  }
  if (std::ranges::count(ranks_, 0) == 0) {
    store_->set(kLayout, as_bytes(fmt::format("yes {}", fmt::join(ranks_, " "))));
    return layout_of(ranks_, 0);
  }
  if (RunClock::now() >= limit_) refuse(absent(kPatience));
  return std::nullopt;
}

std::string Meeting::long_wait() {
  if (RunClock::now() < silent_until_) return {};
  silent_until_ = RunClock::time_point::max();
  return "still waiting: " + absent(kSilentWait);
}

std::string Meeting::absent(std::chrono::milliseconds waited) const {
  std::vector<std::size_t> hosts;
  for (std::size_t host = 0; host < ranks_.size(); ++host) {
    if (ranks_[host] == 0) hosts.push_back(host);
  }
  return fmt::format(
      "no launcher has come for {} of {} hosts within {} s: --node-rank {}; start `hocket run` "
      "there "
      "too, with the same --rendezvous and key",
      hosts.size(),
      ranks_.size(),
      waited.count() / 1000,
      fmt::join(hosts, ", "));
}

void Meeting::refuse(const std::string& why) {
  store_->set(kLayout, as_bytes("no " + why));
  const auto others = std::ranges::count_if(ranks_, [](int ranks) { return ranks != 0; }) - 1;
  const auto until = RunClock::now() + kFarewell;
  while (store_->add(kInformed, 0) < others && RunClock::now() < until) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  throw InvalidArgument(why);
}

}  // namespace hocket::cli
