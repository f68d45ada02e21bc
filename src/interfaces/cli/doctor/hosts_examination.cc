#include "interfaces/cli/doctor/hosts_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>

#include "hocket/store.h"
#include "interfaces/cli/hosts/carried_environment.h"
#include "interfaces/cli/hosts/host_connection.h"
#include "interfaces/cli/hosts/unreachable.h"

namespace hocket::cli {
namespace {

using ExaminationClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kForFacts{30};
constexpr std::chrono::seconds kForAnOrder{20};
constexpr std::chrono::milliseconds kForATurn{100};
constexpr int kLooksAtClocks = 3;

// A resource: a host under examination.
struct ExaminedHost {
  HostConnection connection;
  std::string release;
  std::string errors;
  std::string last;      // the name of the notice that came last
  bool is_busy = false;  // testing the connection to another host, or from one
  ExaminationClock::time_point came_at{};
  std::int64_t clock = 0;

  bool is_there() const { return !connection.has_ended(); }
};

class Examination {
 public:
  explicit Examination(const ExaminationOptions& options) : options_(options) {
    Briefing briefing{.token = random_name(), .job = "doctor-" + random_name()};
    briefing.key = options.key_file.empty() ? Key::generate() : Key::from_file(options.key_file);
    briefing.hosts = options.hosts;
    briefing.environment = carried_environment();
    briefing.arguments = {"doctor"};
    if (!options.key_file.empty())
      briefing.arguments.insert(briefing.arguments.end(), {"--key", options.key_file});
    for (const HostSlots& host : options.hosts) {
      briefing.host = static_cast<int>(hosts_.size());
      findings_.hosts.push_back({.name = host.name});
      hosts_.push_back(
          {.connection = HostConnection(words_for(options.command, host.name), briefing)});
    }
  }

  HostsFindings run() {
    await(kForFacts, [](const ExaminedHost& host) { return host.last == "facts"; });
    note_unreachable();
    look_at_clocks();
    if (!findings_.hosts.front().facts.contains("meet")) return findings_;
    order_all(fmt::format("go {} {}\n",
                          findings_.hosts.front().facts.value("meet", ""),
                          findings_.hosts.front().facts.value("store", "")));
    await(kForAnOrder, [](const ExaminedHost& host) { return host.last == "listens"; });
    try_ways();
    order_all("end\n");
    await(kForAnOrder, [](const ExaminedHost& host) { return host.last == "heard"; });
    return findings_;
  }

 private:
  using Done = std::function<bool(const ExaminedHost&)>;

  void order_all(const std::string& order) {
    for (ExaminedHost& host : hosts_) host.connection.send(order);
  }

  // Waits until `done` is true of all hosts that have started.
  void await(std::chrono::seconds limit, const Done& done) {
    const auto until = ExaminationClock::now() + limit;
    while (ExaminationClock::now() < until) {
      turn();
      const auto may_go_on = [&](const ExaminedHost& host) {
        return !host.is_there() || done(host);
      };
      if (std::ranges::all_of(hosts_, may_go_on)) return;
    }
  }

  void turn() {
    std::vector<pollfd> wait;
    for (const ExaminedHost& host : hosts_) host.connection.add_to(wait, true, true);
    ::poll(wait.data(), wait.size(), static_cast<int>(kForATurn.count()));
    if (ExaminationClock::now() >= heartbeat_at_) {
      heartbeat_at_ = ExaminationClock::now() + kHeartbeat;
      order_all("alive\n");
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      ExaminedHost& host = hosts_[i];
      host.connection.move(std::span(wait).subspan(i * HostConnection::kDescriptors));
      host.connection.reap();
      host.errors += host.connection.take_errors();
      for (const std::string& notice : host.connection.take_notices()) take(i, notice);
    }
  }

  void take(std::size_t number, const std::string& notice) {
    ExaminedHost& host = hosts_[number];
    HostFinding& finding = findings_.hosts[number];
    const std::size_t space = std::min(notice.find(' '), notice.size());
    host.last = notice.substr(0, space);
    host.came_at = ExaminationClock::now();
    const std::string rest = notice.substr(std::min(space + 1, notice.size()));
    if (host.last == "release") {
      host.release = rest;
      return;
    }
    const auto said = nlohmann::json::parse(rest, nullptr, false);
    if (host.last == "clock" && said.is_number_integer()) host.clock = said.get<std::int64_t>();
    if (host.last == "heard" && said.is_array()) finding.heard = said;
    if (!said.is_object()) return;
    if (host.last == "facts") finding.facts = said;
    if (host.last == "listens") finding.listens = said;
    if (host.last == "probed") probed(number, said);
  }

  void note_unreachable() {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const ExaminedHost& host = hosts_[i];
      HostFinding& finding = findings_.hosts[i];
      if (!finding.facts.empty()) continue;
      if (host.is_there()) {
        finding.unreachable =
            fmt::format("host {} has not answered within {} s; see whether `{} {} true` ends",
                        finding.name,
                        kForFacts.count(),
                        host.connection.program(),
                        finding.name);
        hosts_[i].connection.signal(SIGKILL);
        continue;
      }
      const std::string& path = options_.command.hocket;
      finding.unreachable = explain({.host = finding.name,
                                     .program = host.connection.program(),
                                     .hocket = path.empty() ? own_path() : path,
                                     .release = host.release,
                                     .errors = host.errors,
                                     .status = host.connection.status().value_or(0)});
    }
  }

  // Compares the clocks. The error is at most half of the shortest round trip.
  void look_at_clocks() {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      ExaminedHost& host = hosts_[i];
      double shortest = 1e9;
      for (int look = 0; look < kLooksAtClocks && host.is_there(); ++look) {
        host.last.clear();
        const auto before = ExaminationClock::now();
        const auto here = std::chrono::system_clock::now().time_since_epoch();
        host.connection.send("clock\n");
        await(kForAnOrder,
              [&](const ExaminedHost& each) { return &each != &host || each.last == "clock"; });
        const double trip = std::chrono::duration<double>(host.came_at - before).count();
        if (host.last != "clock" || trip >= shortest) continue;
        shortest = trip;
        const double there =
            static_cast<double>(host.clock - std::chrono::nanoseconds(here).count()) / 1e9;
        findings_.hosts[i].clock = there - trip / 2;
        findings_.hosts[i].clock_error = trip / 2;
      }
    }
  }

  // Tests the connections of all ordered pairs of hosts. A host takes part in one test at a time.
  void try_ways() {
    for (int from = 0; from < static_cast<int>(hosts_.size()); ++from) {
      for (int to = 0; to < static_cast<int>(hosts_.size()); ++to) {
        if (from != to && can_try(from, to)) findings_.ways.push_back({.from = from, .to = to});
      }
    }
    started_.assign(findings_.ways.size(), false);
    auto until = ExaminationClock::now() + kForAnOrder;
    while (start_ways() && ExaminationClock::now() < until) {
      const std::size_t before = ways_done_;
      turn();
      if (ways_done_ != before) until = ExaminationClock::now() + kForAnOrder;
    }
  }

  bool can_try(int from, int to) const {
    return hosts_[static_cast<std::size_t>(from)].is_there() &&
           !findings_.hosts[static_cast<std::size_t>(from)].address().empty() &&
           !findings_.hosts[static_cast<std::size_t>(to)].address().empty();
  }

  // Starts tests between idle hosts. Returns false if all pairs have been tested.
  bool start_ways() {
    for (std::size_t i = 0; i < findings_.ways.size(); ++i) {
      const WayFinding& way = findings_.ways[i];
      ExaminedHost& from = hosts_[static_cast<std::size_t>(way.from)];
      ExaminedHost& to = hosts_[static_cast<std::size_t>(way.to)];
      if (started_[i] || from.is_busy || to.is_busy) continue;
      from.is_busy = to.is_busy = started_[i] = true;
      const HostFinding& target = findings_.hosts[static_cast<std::size_t>(way.to)];
      from.connection.send(fmt::format(
          "probe {} {} {}\n", way.to, target.address(), target.listens.value("port", 0)));
    }
    return ways_done_ < findings_.ways.size();
  }

  void probed(std::size_t from, const nlohmann::json& said) {
    for (WayFinding& way : findings_.ways) {
      if (way.from != static_cast<int>(from) || way.to != said.value("to", -1)) continue;
      way.result = said;
      hosts_[from].is_busy = hosts_[static_cast<std::size_t>(way.to)].is_busy = false;
      ++ways_done_;
    }
  }

  const ExaminationOptions& options_;
  HostsFindings findings_;
  std::vector<ExaminedHost> hosts_;
  std::vector<bool> started_;
  std::size_t ways_done_ = 0;
  ExaminationClock::time_point heartbeat_at_ = ExaminationClock::now() + kHeartbeat;
};

}  // namespace

HostsFindings examine_hosts(const ExaminationOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  return Examination(options).run();
}

}  // namespace hocket::cli
