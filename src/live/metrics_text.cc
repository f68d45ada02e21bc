#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "hocket/live.h"

namespace hocket {
namespace {

// Of a label's value, and of a text of help.
std::string escaped(std::string_view text) {
  std::string made;
  for (const char each : text) {
    if (each == '\\' || each == '"') made += '\\';
    if (each == '\n') {
      made += "\\n";
    } else {
      made += each;
    }
  }
  return made;
}

// A resource for the length of one text.
class MetricsWriter {
 public:
  explicit MetricsWriter(MetricsForm form) : form_(form) {}

  // Begins a family. `unit`: empty, or what its name ends in.
  void family(std::string_view name,
              std::string_view type,
              std::string_view unit,
              std::string_view help) {
    const bool is_open = form_ == MetricsForm::kOpenMetrics;
    // The older form names a counter as its only sample.
    family_ = name;
    const std::string named = !is_open && type == "counter" ? family_ + "_total" : family_;
    text_ += fmt::format("# TYPE {} {}\n", named, type);
    if (is_open && !unit.empty()) text_ += fmt::format("# UNIT {} {}\n", named, unit);
    text_ += fmt::format("# HELP {} {}\n", named, escaped(help));
  }
  void sample(std::string_view suffix, std::string_view labels, double value) {
    text_ += family_;
    text_ += suffix;
    if (!labels.empty()) text_ += fmt::format("{{{}}}", labels);
    text_ += fmt::format(" {}\n", value);
  }
  std::string end() {
    if (form_ == MetricsForm::kOpenMetrics) text_ += "# EOF\n";
    return std::move(text_);
  }

 private:
  const MetricsForm form_;
  std::string family_;
  std::string text_;
};

using MeterKey = std::tuple<std::string, std::string, std::string>;  // call, group, engine

// Those of all ranks of this host together.
std::map<MeterKey, LiveMeter> in_sum(const std::vector<LiveMeter>& meters) {
  std::map<MeterKey, LiveMeter> sums;
  for (const LiveMeter& meter : meters) {
    LiveMeter& sum = sums[{meter.call, meter.group, meter.engine}];
    sum.failed += meter.failed;
    sum.bytes += meter.bytes;
    sum.seconds += meter.seconds;
    for (std::size_t i = 0; i < sum.ended.size(); ++i) sum.ended[i] += meter.ended[i];
  }
  return sums;
}

std::string labels_of(const MeterKey& key) {
  const auto& [call, group, engine] = key;
  return fmt::format(
      "call=\"{}\",group=\"{}\",engine=\"{}\"", escaped(call), escaped(group), escaped(engine));
}

void write_meters(MetricsWriter& out, const LiveJob& job) {
  const auto sums = in_sum(job.meters);
  const auto bounds = meter_bounds();
  out.family("hocket_call_duration_seconds",
             "histogram",
             "seconds",
             "Time from a rank's coming to a call to its going, of the ranks of this host.");
  for (const auto& [key, sum] : sums) {
    const std::string labels = labels_of(key);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      count += sum.ended[i];
      const std::string bound = std::isinf(bounds[i]) ? "+Inf" : fmt::format("{}", bounds[i]);
      out.sample("_bucket", fmt::format("{},le=\"{}\"", labels, bound), static_cast<double>(count));
    }
    out.sample("_sum", labels, sum.seconds);
    out.sample("_count", labels, static_cast<double>(count));
  }
  out.family("hocket_call_bytes",
             "counter",
             "bytes",
             "Bytes of the larger array of each call, of the ranks of this host.");
  for (const auto& [key, sum] : sums) {
    out.sample("_total", labels_of(key), static_cast<double>(sum.bytes));
  }
  out.family(
      "hocket_calls_failed", "counter", "", "Calls that ended by an error, on this host's ranks.");
  for (const auto& [key, sum] : sums) {
    out.sample("_total", labels_of(key), static_cast<double>(sum.failed));
  }
}

const char* word_of(LiveState state) {
  switch (state) {
    case LiveState::kAbsent:
      return "absent";
    case LiveState::kAlive:
      return "alive";
    case LiveState::kLeft:
      return "left";
    case LiveState::kDied:
      return "died";
    case LiveState::kSilent:
      break;
  }
  return "silent";
}

void write_ranks(MetricsWriter& out, const LiveJob& job) {
  std::map<std::string, int> states{{"alive", 0}, {"died", 0}, {"left", 0}, {"silent", 0}};
  for (const LiveRank& rank : job.ranks) ++states[word_of(rank.state)];
  out.family("hocket_ranks", "gauge", "", "Ranks of the job, by what has become of them.");
  for (const auto& [state, count] : states) {
    out.sample("", fmt::format("state=\"{}\"", state), count);
  }
  const auto each_here = [&](std::string_view suffix, auto&& value) {
    for (const LiveRank& rank : job.ranks) {
      if (rank.is_here) out.sample(suffix, fmt::format("rank=\"{}\"", rank.rank), value(rank));
    }
  };
  out.family("hocket_waiting_seconds",
             "counter",
             "seconds",
             "Time in calls to which other ranks had not come, by looks ten times a second.");
  each_here("_total", [&](const LiveRank& rank) { return rank.waiting * job.looked_s; });
  out.family("hocket_inside_seconds",
             "counter",
             "seconds",
             "Time in calls altogether, by looks ten times a second.");
  each_here("_total", [&](const LiveRank& rank) { return rank.inside * job.looked_s; });
  out.family("hocket_unmoved_seconds",
             "gauge",
             "seconds",
             "Since when the rank has neither begun nor ended a call.");
  each_here("", [](const LiveRank& rank) { return rank.since_s; });
  out.family("hocket_holds_up_ranks",
             "gauge",
             "",
             "How many ranks wait for this one in the end.");
  each_here("", [&](const LiveRank& rank) {
    double count = 0;
    for (const LiveRank& other : job.ranks) count += other.blocked_by == rank.rank ? 1 : 0;
    return count;
  });
}

void write_groups(MetricsWriter& out, const LiveJob& job) {
  std::map<std::pair<std::string, std::string>, int> failures;
  std::map<std::string, std::uint64_t> calls;
  for (const LiveRank& rank : job.ranks) {
    if (!rank.is_here) continue;
    for (const LiveGroup& group : rank.groups) {
      calls[group.name] += group.calls;
      if (!group.failure.empty()) ++failures[{group.name, group.failure}];
    }
  }
  out.family("hocket_group_calls",
             "gauge",
             "",
             "Calls that the ranks of this host have made in each group that is open.");
  for (const auto& [group, count] : calls) {
    out.sample("", fmt::format("group=\"{}\"", escaped(group)), static_cast<double>(count));
  }
  out.family("hocket_failed_groups",
             "gauge",
             "",
             "Ranks of this host in whose group a failure has ended all calls, by its cause.");
  for (const auto& [key, count] : failures) {
    out.sample(
        "", fmt::format("group=\"{}\",cause=\"{}\"", escaped(key.first), key.second), count);
  }
}

}  // namespace

std::string metrics_text(const LiveJob& job, MetricsForm form) {
  MetricsWriter out(form);
  write_ranks(out, job);
  write_groups(out, job);
  write_meters(out, job);
  out.family("hocket_memory_bytes", "gauge", "bytes", "Shared memory of the job on this host.");
  out.sample("", "kind=\"touched\"", static_cast<double>(job.memory_bytes));
  out.sample("", "kind=\"reserved\"", static_cast<double>(job.reserved_bytes));
  return out.end();
}

}  // namespace hocket
