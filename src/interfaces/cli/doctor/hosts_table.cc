// The findings of `hocket doctor --hosts` as tables and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "interfaces/cli/doctor/hosts_findings.h"
#include "interfaces/cli/quantities.h"

namespace hocket::cli {
namespace {

using Row = std::vector<std::string>;

std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string number_or_dash(int number) { return number == 0 ? "-" : std::to_string(number); }

std::string rate_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.1f} GB/s", bytes / 1e9)
                      : fmt::format("{:.0f} MB/s", bytes / 1e6);
}

std::string clock_text(const HostFinding& host) {
  return fmt::format("{:+.1f} ms, within {:.1f}", host.clock * 1e3, host.clock_error * 1e3);
}

std::string store_text(const HostsFindings& findings, const HostFinding& host) {
  const std::string store = host.listens.value("store", "no");
  if (store != "yes") return "no";
  return &host == &findings.hosts.front() ? "at " + host.facts.value("store", "") : "reached";
}

Row host_row(const HostsFindings& findings, const HostFinding& host) {
  if (!host.unreachable.empty()) return {host.name, "cannot be used; see below"};
  return {host.name,
          or_dash(host.address()),
          or_dash(host.listens.value("interface", "")),
          number_or_dash(host.listens.value("mtu", 0)),
          or_dash(host.facts.value("ports", "")),
          host.facts.value("key", "") == "same" || !host.facts.contains("key") ? "same" : "differs",
          HOCKET_VERSION,
          or_dash(host.facts.value("ucx", "")),
          store_text(findings, host),
          clock_text(host)};
}

Row way_row(const HostsFindings& findings, const WayFinding& way) {
  const Row ends{findings.hosts[static_cast<std::size_t>(way.from)].name,
                 findings.hosts[static_cast<std::size_t>(way.to)].name};
  Row row = ends;
  row.push_back(way.works() ? "yes" : "no");
  if (!way.works()) return row;
  row.push_back(time_text(way.result.value("latency", 0.0)));
  row.push_back(rate_text(way.result.value("bandwidth", 0.0)));
  row.push_back(number_or_dash(way.result.value("mtu", 0)));
  return row;
}

// Returns the interfaces that are up but not used, because the user may have wanted one of them.
std::string other_interfaces(const HostFinding& host) {
  std::string text;
  for (const auto& each : host.facts.value("interfaces", nlohmann::json::array())) {
    const std::string name = each.value("name", "");
    const std::string address = each.value("address", "");
    if (name == "lo" || name == host.listens.value("interface", "") || address.starts_with("fe80:"))
      continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, address);
  }
  return text.empty() ? text : fmt::format("  {}: {}\n", host.name, text);
}

}  // namespace

std::string text_of(const HostsFindings& findings, const Colours& colours) {
  std::vector<Row> hosts{
      {"host", "address", "interface", "MTU", "ports", "key", "hocket", "UCX", "store", "clock"}};
  for (const HostFinding& host : findings.hosts) hosts.push_back(host_row(findings, host));
  std::string text = fmt::format("{}hosts{}\n{}", colours.bold, colours.end, table(hosts));
  std::string others;
  for (const HostFinding& host : findings.hosts) others += other_interfaces(host);
  if (!others.empty()) {
    text +=
        fmt::format("\n{}interfaces that are not used{}\n{}", colours.bold, colours.end, others);
  }
  if (!findings.ways.empty()) {
    std::vector<Row> ways{{"from", "to", "connects", "latency", "bandwidth", "MTU"}};
    for (const WayFinding& way : findings.ways) ways.push_back(way_row(findings, way));
    text += fmt::format("\n{}ways{}\n{}", colours.bold, colours.end, table(ways));
  }
  const auto problems = find_problems(findings);
  text += fmt::format(
      "\n{}problems{}\n{}", colours.bold, colours.end, problems.empty() ? "  none\n" : "");
  for (const Problem& problem : problems) {
    text += fmt::format("  {}{}{} {}\n",
                        problem.stops_hocket ? colours.bad : colours.faint,
                        problem.stops_hocket ? "stops a job:" : "note:",
                        colours.end,
                        problem.what);
    if (!problem.mend.empty()) text += fmt::format("      {}\n", problem.mend);
  }
  return text;
}

std::string json_of(const HostsFindings& findings) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const HostFinding& host : findings.hosts) {
    hosts.push_back({{"name", host.name},
                     {"unreachable", host.unreachable},
                     {"facts", host.facts},
                     {"uses", host.listens},
                     {"clock", host.clock},
                     {"clock_error", host.clock_error}});
  }
  nlohmann::ordered_json ways = nlohmann::ordered_json::array();
  for (const WayFinding& way : findings.ways) {
    ways.push_back({{"from", findings.hosts[static_cast<std::size_t>(way.from)].name},
                    {"to", findings.hosts[static_cast<std::size_t>(way.to)].name},
                    {"works", way.works()},
                    {"error", way.error()},
                    {"latency", way.result.value("latency", 0.0)},
                    {"bandwidth", way.result.value("bandwidth", 0.0)},
                    {"mtu", way.result.value("mtu", 0)}});
  }
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const Problem& problem : find_problems(findings)) {
    problems.push_back(
        {{"stops_hocket", problem.stops_hocket}, {"what", problem.what}, {"mend", problem.mend}});
  }
  const nlohmann::ordered_json all{{"hosts", hosts}, {"ways", ways}, {"problems", problems}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hocket::cli
