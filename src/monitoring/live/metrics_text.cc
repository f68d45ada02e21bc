#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "foundation/base/enumerator.h"
#include "hocket/live.h"

namespace hocket {
namespace {

// Escapes a label's value, or a help text.
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

// Writes one text of metrics. A resource.
class MetricsWriter {
 public:
  explicit MetricsWriter(MetricsForm form) : form_(form) {}

  // Begins a metric family. `unit` is the ending of its name, or "".
  void family(std::string_view name,
              std::string_view type,
              std::string_view unit,
              std::string_view help) {
    const bool is_open = form_ == MetricsForm::kOpenMetrics;
    // In the older form a counter's family has the name of its sample, which ends in "_total".
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

// Call, group and engine.
using MeterKey = std::tuple<std::string_view, std::string_view, std::string_view>;
struct MeterSum {
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  decltype(LiveMeter::ended) ended = {};
};
using MeterSums = std::map<MeterKey, MeterSum>;

// Sums over all ranks of this host, one for each kind of metric families.
struct AllSums {
  MeterSums calls, messages, launches, on_streams;
};

AllSums in_sum(const std::vector<LiveMeter>& meters) {
  AllSums all;
  for (const LiveMeter& meter : meters) {
    const bool is_message = meter.call == "send" || meter.call == "recv";
    MeterSums& sums = meter.timed == LiveTimed::kLaunch     ? all.launches
                      : meter.timed == LiveTimed::kOnStream ? all.on_streams
                      : is_message                          ? all.messages
                                                            : all.calls;
    MeterSum& sum = sums[{meter.call, meter.group, meter.engine}];
    sum.failed += meter.failed;
    sum.bytes += meter.bytes;
    sum.seconds += meter.seconds;
    for (std::size_t i = 0; i < sum.ended.size(); ++i) sum.ended[i] += meter.ended[i];
  }
  return all;
}

std::string labels_of_call(const MeterKey& key) {
  const auto& [call, group, engine] = key;
  return fmt::format(
      "call=\"{}\",group=\"{}\",engine=\"{}\"", escaped(call), escaped(group), escaped(engine));
}
std::string labels_of_message(const MeterKey& key) {
  const auto& [call, group, engine] = key;
  return fmt::format(
      "direction=\"{}\",group=\"{}\"", call == "send" ? "sent" : "received", escaped(group));
}

// The metric families of one kind. A value of views.
struct MeterFamilies {
  std::string_view duration, duration_help;
  std::string_view bytes, bytes_help;
  std::string_view failed, failed_help;
  std::string (*labels)(const MeterKey&);
};

void write_times(MetricsWriter& out, const MeterSums& sums, const MeterFamilies& families) {
  const auto bounds = meter_bounds();
  out.family(families.duration, "histogram", "seconds", families.duration_help);
  for (const auto& [key, sum] : sums) {
    const std::string labels = families.labels(key);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      count += sum.ended[i];
      const std::string bound = std::isinf(bounds[i]) ? "+Inf" : fmt::format("{}", bounds[i]);
      out.sample("_bucket", fmt::format("{},le=\"{}\"", labels, bound), static_cast<double>(count));
    }
    out.sample("_sum", labels, sum.seconds);
    out.sample("_count", labels, static_cast<double>(count));
  }
}

void write_sums(MetricsWriter& out, const MeterSums& sums, const MeterFamilies& families) {
  write_times(out, sums, families);
  out.family(families.bytes, "counter", "bytes", families.bytes_help);
  for (const auto& [key, sum] : sums) {
    out.sample("_total", families.labels(key), static_cast<double>(sum.bytes));
  }
  out.family(families.failed, "counter", "", families.failed_help);
  for (const auto& [key, sum] : sums) {
    out.sample("_total", families.labels(key), static_cast<double>(sum.failed));
  }
}

void write_meters(MetricsWriter& out, const LiveJob& job) {
  const AllSums sums = in_sum(job.meters);
  write_sums(out,
             sums.calls,
             {.duration = "hocket_call_duration_seconds",
              .duration_help =
                  "Time from a rank's coming to a call to its going, of the ranks of this host.",
              .bytes = "hocket_call_bytes",
              .bytes_help = "Bytes of the larger array of each call, of the ranks of this host.",
              .failed = "hocket_calls_failed",
              .failed_help = "Calls that ended by an error, on this host's ranks.",
              .labels = labels_of_call});
  write_sums(out,
             sums.messages,
             {.duration = "hocket_message_duration_seconds",
              .duration_help = "Time from the begin of a send or receive to its end, of the ranks "
                               "of this host.",
              .bytes = "hocket_message_bytes",
              .bytes_help = "Bytes sent and received in messages by the ranks of this host.",
              .failed = "hocket_messages_failed",
              .failed_help = "Sends and receives that ended by an error, on this host's ranks.",
              .labels = labels_of_message});
  write_sums(
      out,
      sums.launches,
      {.duration = "hocket_gpu_launch_duration_seconds",
       .duration_help = "Time in which calls and messages of GPUs were put on their streams, "
                        "of the ranks of this host.",
       .bytes = "hocket_gpu_call_bytes",
       .bytes_help = "Bytes of the larger array of each call or message of GPUs.",
       .failed = "hocket_gpu_calls_failed",
       .failed_help = "Calls and messages of GPUs that ended by an error before they were on "
                      "their streams.",
       .labels = labels_of_call});
  write_times(out,
              sums.on_streams,
              {.duration = "hocket_gpu_call_duration_seconds",
               .duration_help = "Time from the begin of a call or message of GPUs on its stream to "
                                "its end there, of the ranks of this host.",
               .labels = labels_of_call});
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
  out.family("hocket_holds_up_ranks", "gauge", "", "How many ranks wait for this one in the end.");
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
    out.sample("", fmt::format("group=\"{}\",cause=\"{}\"", escaped(key.first), key.second), count);
  }
}

}  // namespace

std::string metrics_text(const LiveJob& job, MetricsForm form) {
  base::require_enumerator(form, MetricsForm::kOpenMetrics, "form", "MetricsForm");
  MetricsWriter out(form);
  write_ranks(out, job);
  write_groups(out, job);
  write_meters(out, job);
  out.family("hocket_memory_bytes", "gauge", "bytes", "Shared memory of the job on this host.");
  out.sample("", "kind=\"touched\"", static_cast<double>(job.memory_bytes));
  out.sample("", "kind=\"reserved\"", static_cast<double>(job.reserved_bytes));
  if (job.store_clients) {
    out.family("hocket_store_clients",
               "gauge",
               "",
               "Processes that are connected to the store by which the job's ranks have met.");
    out.sample("", "", static_cast<double>(*job.store_clients));
  }
  return out.end();
}

}  // namespace hocket
