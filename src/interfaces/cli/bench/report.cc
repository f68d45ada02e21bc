#include "interfaces/cli/bench/report.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "interfaces/cli/bench/libraries.h"

namespace hocket::cli::bench {
namespace {

std::string title_of(const Row& row) {
  const Case& subject = row.subject;
  std::string title(name_of(subject.collective));
  if (subject.collective != Collective::kBarrier) {
    title += fmt::format(", {}", hocket::name_of(subject.dtype));
  }
  if (reduces(subject.collective)) title += fmt::format(" {}", hocket::name_of(subject.op));
  return title + fmt::format(", {} rank{}", row.ranks, row.ranks == 1 ? "" : "s");
}

std::string spread_of(const Row& row) {
  return fmt::format("{} .. {}", three_digits(row.min_us()), three_digits(row.max_us()));
}

std::string ratio_text(const Ratio& ratio) {
  const auto text = [](double value) {
    return value >= 10 ? fmt::format("{:.1f}", value)
                       : fmt::format("{:.{}f}", value, value >= 0.1 ? 2 : 3);
  };
  return fmt::format("{} ({}-{})", text(ratio.median), text(ratio.low), text(ratio.high));
}

// Rounds to five significant digits. More digits than the measurement has would be noise in a file.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10.0, 5 - std::ceil(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

nlohmann::ordered_json json_of(const Row& row) {
  const Case& subject = row.subject;
  nlohmann::ordered_json json;
  json["library"] = row.library;
  json["collective"] = name_of(subject.collective);
  json["dtype"] = hocket::name_of(subject.dtype);
  json["op"] = nullptr;
  if (reduces(subject.collective)) json["op"] = hocket::name_of(subject.op);
  json["ranks"] = row.ranks;
  json["bytes"] = row.bytes;
  json["memory"] = name_of(subject.memory);
  json["in_place"] = subject.in_place;
  json["median_us"] = rounded(row.median_us());
  json["min_us"] = rounded(row.min_us());
  json["max_us"] = rounded(row.max_us());
  if (is_numeric(subject.collective)) {
    json["n"] = subject.elements;
    json["gflops"] = rounded(row.gigaflops());
  } else {
    json["busbw_gbps"] = rounded(row.bus_gbps());
  }
  json["verified"] = row.verified();
  return json;
}

nlohmann::ordered_json config_of(const Findings& findings) {
  nlohmann::ordered_json config;
  config["command"] = findings.command;
  config["date"] = findings.date;
  config["hocket"] = HOCKET_VERSION;
  config["machine"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : findings.machine) config["machine"][name] = value;
  config["ranks"] = findings.ranks;
  config["sizes"] = findings.plan.sizes;
  config["repeats"] = findings.plan.repeats;
  config["batch_ms"] = findings.plan.batch.count();
  config["dirty"] = findings.plan.dirty;
  config["libraries"] = nlohmann::ordered_json::object();
  for (const Participant& one : findings.participants) {
    auto starts = nlohmann::ordered_json::array();
    for (const Start& start : one.starts) {
      starts.push_back(
          {{"ranks", start.ranks}, {"processors", start.processors}, {"launch", start.launch}});
    }
    config["libraries"][one.name] = {{"version", one.version}, {"starts", starts}};
  }
  config["times"] =
      "of one call, in batches of calls one after the other; a batch takes as long as its slowest "
      "rank; median, min and max are of the batches";
  config["busbw"] = "1e9 bytes a second, by the convention of nccl-tests";
  config["problems"] = findings.problems;
  return config;
}

nlohmann::ordered_json ratios_of(const Findings& findings) {
  nlohmann::ordered_json ratios = nlohmann::ordered_json::array();
  for (const Point& point : findings.points) {
    for (const Row& row : point) {
      if (row.library != kHocket) continue;
      for (const Participant& peer : findings.participants) {
        const Row* other = peer.name == kHocket ? nullptr : counterpart(point, row, peer.name);
        if (other == nullptr) continue;
        const Ratio ratio = ratio_of(row, *other);
        ratios.push_back({{"collective", name_of(row.subject.collective)},
                          {"dtype", hocket::name_of(row.subject.dtype)},
                          {"ranks", row.ranks},
                          {"bytes", row.bytes},
                          {"memory", name_of(row.subject.memory)},
                          {"in_place", row.subject.in_place},
                          {"to", peer.name},
                          {"ratio", rounded(ratio.median)},
                          {"lower_quartile", rounded(ratio.low)},
                          {"upper_quartile", rounded(ratio.high)}});
      }
    }
  }
  return ratios;
}

}  // namespace

const Row* counterpart(const Point& point, const Row& row, const std::string& library) {
  const Row* found = nullptr;
  for (const Row& other : point) {
    if (other.library != library || other.subject.in_place != row.subject.in_place) continue;
    if (other.subject.memory == row.subject.memory) return &other;
    if (found == nullptr) found = &other;
  }
  return found;
}

void Table::add(const Point& point) {
  heading(point.front());
  bool has_own = false;
  for (const Row& row : point) {
    if (row.library != kHocket) continue;
    has_own = true;
    line(point, &row, row);
  }
  // If hocket is missing, the other libraries' rows are shown for in place and out of place.
  for (const Row& row : point) {
    if (!has_own && row.library == point.front().library) line(point, nullptr, row);
  }
  for (const Row& row : point) {
    if (!row.verified()) fmt::print(out_, "  WRONG RESULT, {}: {}\n", row.library, row.wrong);
  }
  std::fflush(out_);
}

void Table::heading(const Row& row) {
  const std::string title = title_of(row);
  if (title == heading_) return;
  fmt::print(out_, "{}{}\n", heading_.empty() ? "" : "\n", title);
  heading_ = title;
  const bool numeric = is_numeric(row.subject.collective);
  std::string columns = fmt::format("{:>9}  {:<9} {:<8} {:>9} {:>19} {:>8} {:>8}",
                                    numeric ? "N" : "size",
                                    "memory",
                                    "in place",
                                    "hocket us",
                                    "min .. max",
                                    numeric ? "GFLOP/s" : "alg GB/s",
                                    numeric ? "" : "bus GB/s");
  for (const std::string& peer : peers_) {
    columns += fmt::format(" | {:>11} {:>18}", peer + " us", "ratio");
  }
  fmt::print(out_, "{}\n", columns);
}

void Table::line(const Point& point, const Row* own, const Row& any) {
  const Case& subject = any.subject;
  const bool numeric = is_numeric(subject.collective);
  std::string text = fmt::format(
      "{:>9}  {:<9} {:<8}",
      is_numeric(subject.collective) ? std::to_string(subject.elements) : size_text(any.bytes),
      name_of(subject.memory),
      subject.in_place ? "yes" : "no");
  if (own == nullptr) {
    text += fmt::format(" {:>9} {:>19} {:>8} {:>8}", "-", "", "", "");
  } else {
    text += fmt::format(" {:>9} {:>19} {:>8} {:>8}",
                        three_digits(own->median_us()),
                        spread_of(*own),
                        three_digits(numeric ? own->gigaflops() : own->algorithm_gbps()),
                        numeric ? "" : three_digits(own->bus_gbps()));
  }
  for (const std::string& peer : peers_) {
    const Row* other = counterpart(point, any, peer);
    text +=
        fmt::format(" | {:>11} {:>18}",
                    other == nullptr ? "-" : three_digits(other->median_us()),
                    other == nullptr || own == nullptr ? "" : ratio_text(ratio_of(*own, *other)));
  }
  fmt::print(out_, "{}\n", text);
}

std::string to_json(const Findings& findings) {
  nlohmann::ordered_json json;
  json["config"] = config_of(findings);
  json["rows"] = nlohmann::ordered_json::array();
  for (const Point& point : findings.points) {
    for (const Row& row : point) json["rows"].push_back(json_of(row));
  }
  json["ratios"] = ratios_of(findings);
  json["unfinished"] = nlohmann::ordered_json::array();
  for (const Gap& gap : findings.gaps) {
    json["unfinished"].push_back({{"library", gap.library},
                                  {"collective", name_of(gap.subject.collective)},
                                  {"dtype", hocket::name_of(gap.subject.dtype)},
                                  {"ranks", gap.ranks},
                                  {"bytes", gap.bytes},
                                  {"memory", name_of(gap.subject.memory)},
                                  {"in_place", gap.subject.in_place},
                                  {"why", gap.why}});
  }
  return json.dump(1) + "\n";
}

std::string to_cost_table(const Findings& findings) {
  // Grouped by library and collective, because the sizes of several collectives are measured
  // alternately.
  std::map<std::string, std::map<std::size_t, double>> rows;
  for (const Point& point : findings.points) {
    for (const Row& row : point) {
      const bool also_apart =
          row.subject.in_place && row.subject.collective != Collective::kBroadcast;
      if (row.library == kHocket || !row.verified() || also_apart) continue;
      const auto name = fmt::format("{}{} {} {}",
                                    row.library,
                                    row.subject.memory == Memory::kSymmetric ? ".symmetric" : "",
                                    name_of(row.subject.collective),
                                    row.ranks);
      rows[name][row.bytes] = row.median_us();
    }
  }
  std::string text = fmt::format("# {}\n# {}\n", findings.date, findings.command);
  for (const auto& [name, points] : rows) {
    text += name;
    for (const auto& [bytes, time] : points) text += fmt::format(" {}:{:.4g}", bytes, time);
    text += '\n';
  }
  return text;
}

}  // namespace hocket::cli::bench
