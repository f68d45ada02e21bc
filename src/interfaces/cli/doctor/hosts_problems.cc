// The problems of a job's hosts and of the connections between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "interfaces/cli/doctor/hosts_findings.h"

namespace hocket::cli {
namespace {

using Problems = std::vector<Problem>;

void add(Problems& problems, bool stops, std::string what, std::string mend) {
  problems.push_back({.stops_hocket = stops, .what = std::move(what), .mend = std::move(mend)});
}

void look_at_host(const HostFinding& host, Problems& problems) {
  for (const auto& each : host.facts.value("problems", nlohmann::json::array())) {
    add(problems,
        true,
        fmt::format("{}: {}", host.name, each.value("what", "")),
        each.value("mend", ""));
  }
  if (host.facts.value("ucx", "").empty()) {
    add(problems,
        true,
        fmt::format("{} has no UCX (libucp.so.0), which carries messages between hosts", host.name),
        "install it there; Debian: apt install libucx0");
  }
  for (const char* error : {"error", "meet_error"}) {
    const auto& source = error == std::string_view("error") ? host.listens : host.facts;
    if (!source.contains(error)) continue;
    add(problems,
        true,
        fmt::format("{}: {}", host.name, source.value(error, "")),
        "set HOCKET_INTERFACE or HOCKET_PORTS, or see the text");
  }
  const std::string key = host.facts.value("key", "same");
  if (key != "same") {
    add(problems,
        true,
        key == "differs" ? fmt::format("{} has another key in the file of --key", host.name)
                         : fmt::format("{}: {}", host.name, key),
        "copy one key to all hosts, mode 0600; `hocket run --hosts` needs none");
  }
}

void look_at_name(const HostFinding& host, Problems& problems) {
  const auto means = host.facts.value("name_means", std::vector<std::string>());
  const bool is_loopback =
      !means.empty() && std::ranges::all_of(means, [](const std::string& address) {
        return address.starts_with("127.") || address == "::1";
      });
  if (!is_loopback || host.address().starts_with("127.")) return;
  add(problems,
      false,
      fmt::format("on {} its own name means {}, which other hosts cannot reach; hocket uses {}",
                  host.name,
                  means.front(),
                  host.address()),
      fmt::format(
          "for other programs: have /etc/hosts there say {} for {}", host.address(), host.name));
}

void look_at_store(const HostsFindings& findings, const HostFinding& host, Problems& problems) {
  const std::string store = host.listens.value("store", "yes");
  if (store == "yes" || findings.hosts.front().facts.contains("meet_error")) return;
  add(problems,
      true,
      fmt::format("{} cannot join at {}: {}",
                  host.name,
                  findings.hosts.front().facts.value("store", "the first host"),
                  store),
      "let TCP through to that port; HOCKET_PORTS=FIRST-LAST makes it one of a range");
}

void look_at_clock(const HostFinding& host, Problems& problems) {
  constexpr double kMuch = 0.1;
  if (std::abs(host.clock) - host.clock_error < kMuch) return;
  add(problems,
      false,
      fmt::format("the clock of {} is {:+.1f} s off the clock here: logs and traces do not line up",
                  host.name,
                  host.clock),
      "let all hosts set their clocks by NTP (timedatectl set-ntp true)");
}

// Finds hosts with the same address. Interfaces such as docker0 have one on every host.
bool look_at_addresses(const HostsFindings& findings, Problems& problems) {
  bool found = false;
  for (std::size_t i = 0; i < findings.hosts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const HostFinding& a = findings.hosts[j];
      const HostFinding& b = findings.hosts[i];
      if (a.address().empty() || a.address() != b.address()) continue;
      if (a.address().starts_with("127.")) continue;  // both names mean this machine
      found = true;
      add(problems,
          true,
          fmt::format(
              "{} and {} both use the address {} ({}, {}), so neither reaches the other by it",
              a.name,
              b.name,
              a.address(),
              a.listens.value("interface", ""),
              b.listens.value("interface", "")),
          "set HOCKET_INTERFACE to an interface that leads to the other hosts");
    }
  }
  return found;
}

std::string direction_text(const HostsFindings& findings, const WayFinding& way) {
  const HostFinding& from = findings.hosts[static_cast<std::size_t>(way.from)];
  const HostFinding& to = findings.hosts[static_cast<std::size_t>(way.to)];
  const bool there = to.is_heard(way.from);
  const auto back = std::ranges::find_if(findings.ways, [&](const WayFinding& other) {
    return other.from == way.to && other.to == way.from;
  });
  if (back != findings.ways.end() && back->works()) {
    return fmt::format("; from {} to {} connections are made", to.name, from.name);
  }
  const bool here = from.is_heard(way.to);
  if (there == here) return there ? "; packets of UDP arrive both ways" : "";
  const HostFinding& reached = there ? to : from;
  const HostFinding& lost = there ? from : to;
  return fmt::format("; packets of UDP reach {}, and none reaches {}", reached.name, lost.name);
}

constexpr int kLongestPacket = 65535;  // loopback's MTU is more

void look_at_way(const HostsFindings& findings, const WayFinding& way, Problems& problems) {
  const HostFinding& from = findings.hosts[static_cast<std::size_t>(way.from)];
  const HostFinding& to = findings.hosts[static_cast<std::size_t>(way.to)];
  const std::string arrow = fmt::format("{} -> {}", from.name, to.name);
  const int mtu = std::max(from.listens.value("mtu", 0), to.listens.value("mtu", 0));
  const int on_the_way = way.result.value("mtu", 0);
  if (way.result.value("stalls", false)) {
    add(problems,
        true,
        fmt::format("{}: short messages pass, and long ones do not: packets of {} bytes are lost",
                    arrow,
                    on_the_way),
        fmt::format("give {} on both a smaller MTU (ip link set {} mtu 1280), or let ICMP through",
                    from.listens.value("interface", "the interface"),
                    from.listens.value("interface", "IF")));
  } else if (way.result.value("is_other", false)) {
    add(problems,
        true,
        fmt::format("{}: at {} another machine answers than {}", arrow, to.address(), to.name),
        "set HOCKET_INTERFACE to an interface that leads to the other hosts");
  } else if (!way.works()) {
    add(problems,
        true,
        fmt::format("{}: no connection to {} port {}: {}{}",
                    arrow,
                    to.address(),
                    to.listens.value("port", 0),
                    way.error(),
                    direction_text(findings, way)),
        fmt::format("let the firewall pass TCP from {} to {}; HOCKET_PORTS=FIRST-LAST keeps hocket "
                    "to a range of ports",
                    from.name,
                    to.name));
  } else if (on_the_way > 0 && on_the_way < std::min(mtu, kLongestPacket)) {
    add(problems,
        false,
        fmt::format("{}: packets have at most {} bytes on the way, and {} at an end",
                    arrow,
                    on_the_way,
                    mtu),
        "give all interfaces on the way one MTU, if long messages are slow");
  }
}

void look_at_versions(const HostsFindings& findings, Problems& problems) {
  const HostFinding* first = nullptr;
  for (const HostFinding& host : findings.hosts) {
    const std::string version = host.facts.value("ucx", "");
    if (version.empty()) continue;
    if (first == nullptr) first = &host;
    const std::string of_first = first->facts.value("ucx", "");
    if (version == of_first) continue;
    add(problems,
        false,
        fmt::format("UCX is {} on {} and {} on {}", of_first, first->name, version, host.name),
        "install the same on all hosts: UCX promises nothing between versions");
  }
}

}  // namespace

bool HostFinding::is_heard(int host) const {
  return std::ranges::find(heard, nlohmann::json(host)) != heard.end();
}

std::vector<Problem> find_problems(const HostsFindings& findings) {
  Problems problems;
  for (const HostFinding& host : findings.hosts) {
    if (host.unreachable.empty()) continue;
    add(problems, true, host.unreachable, "");
  }
  const bool is_ambiguous = look_at_addresses(findings, problems);
  for (const HostFinding& host : findings.hosts) {
    if (!host.unreachable.empty()) continue;
    look_at_host(host, problems);
    look_at_store(findings, host, problems);
    look_at_name(host, problems);
    look_at_clock(host, problems);
  }
  if (!is_ambiguous) {
    for (const WayFinding& way : findings.ways) look_at_way(findings, way, problems);
  }
  look_at_versions(findings, problems);
  std::ranges::stable_sort(problems, std::greater(), &Problem::stops_hocket);
  return problems;
}

}  // namespace hocket::cli
