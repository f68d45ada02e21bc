// Summarizes a trace: where time went, which ranks were waited for, which calls never ended.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hocket/trace.h"

namespace hocket {
namespace {

struct CallPart {
  std::size_t rank;  // index in JobTrace::ranks
  const TracedCall* call;
};

// One collective call over all its ranks.
struct Meeting {
  std::string group;
  int size = 0;
  std::vector<CallPart> parts;

  TraceTime first_begin() const {
    return std::ranges::min(parts, {}, [](const CallPart& p) { return p.call->begin; }).call->begin;
  }
  // Returns the part of the rank that began the call last.
  CallPart last() const {
    return std::ranges::max(parts, {}, [](const CallPart& p) { return p.call->begin; });
  }
  TraceTime last_end() const {
    return *std::ranges::max(parts, {}, [](const CallPart& p) { return *p.call->end; }).call->end;
  }
  bool ended_well() const {
    return std::ranges::all_of(parts,
                               [](const CallPart& p) { return p.call->end && !p.call->failed; });
  }
};

using MeetingKey = std::pair<std::uint64_t, std::uint64_t>;  // group, sequence
using Meetings = std::map<MeetingKey, Meeting>;

Meetings meetings_of(const JobTrace& trace) {
  Meetings meetings;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const RankTrace& rank = trace.ranks[i];
    for (const TracedCall& call : rank.calls) {
      if (call.sequence == 0) continue;
      const TracedGroup& group = rank.groups[call.group];
      Meeting& meeting = meetings[{group.id, call.sequence}];
      meeting.group = group.name;
      meeting.size = group.size;
      meeting.parts.push_back({i, &call});
    }
  }
  return meetings;
}

// Returns the members of each group, by their index in the trace.
std::map<std::uint64_t, std::vector<std::size_t>> members_of(const JobTrace& trace) {
  std::map<std::uint64_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    for (const TracedGroup& group : trace.ranks[i].groups) members[group.id].push_back(i);
  }
  return members;
}

TraceLoose loose_of(const JobTrace& trace,
                    const MeetingKey& key,
                    const Meeting& meeting,
                    const std::vector<std::size_t>& members) {
  TraceLoose loose{.call = meeting.parts.front().call->name,
                   .group = meeting.group,
                   .sequence = key.second,
                   .missing = {},
                   .inside = {},
                   .failed = {}};
  for (const std::size_t member : members) {
    const auto part = std::ranges::find(meeting.parts, member, &CallPart::rank);
    const int rank = trace.ranks[member].rank;
    if (part == meeting.parts.end()) {
      if (trace.ranks[member].dropped == 0) loose.missing.push_back(rank);
    } else if (!part->call->end) {
      loose.inside.push_back(rank);
    } else if (part->call->failed) {
      loose.failed.push_back(rank);
    }
  }
  return loose;
}

// Numbers collected for one line of the summary.
struct Gathered {
  std::vector<double> times_us;
  double waited_s = 0;
  std::map<int, std::size_t> came_last;  // by world rank
};

using LineKey = std::tuple<std::string, std::string, std::string, std::size_t>;

TraceLine line_of(const LineKey& key, Gathered& gathered) {
  auto& times = gathered.times_us;
  TraceLine line{.call = std::get<0>(key),
                 .group = std::get<1>(key),
                 .engine = std::get<2>(key),
                 .bytes = std::get<3>(key),
                 .count = times.size(),
                 .waited_s = gathered.waited_s};
  std::ranges::sort(times);
  for (const double time : times) line.total_s += time * 1e-6;
  line.median_us = times[times.size() / 2];
  line.max_us = times.back();
  for (const auto& [rank, count] : gathered.came_last) {
    const double share = static_cast<double>(count) / static_cast<double>(times.size());
    if (share <= line.latest_share) continue;
    line.latest = rank;
    line.latest_share = share;
  }
  return line;
}

constexpr double kSeconds = 1e-9;  // seconds per nanosecond

void add_waiting(TraceSummary& summary, const Meeting& meeting) {
  const TraceTime last = meeting.last().call->begin;
  for (const CallPart& part : meeting.parts) {
    if (!part.call->end) continue;
    const TraceTime alone = std::min(last, *part.call->end) - part.call->begin;
    summary.waiting_s[part.rank] += static_cast<double>(alone) * kSeconds;
  }
}

// Adds the parts of the summary that need one rank's calls alone.
void add_rank(TraceSummary& summary, const RankTrace& rank, std::size_t index, TraceTime& end) {
  summary.dropped += rank.dropped;
  for (const TracedCall& call : rank.calls) {
    if (call.name == "send") ++summary.messages;
    end = std::max(end, call.end.value_or(call.begin));
    if (call.end) {
      summary.calling_s[index] += static_cast<double>(*call.end - call.begin) * kSeconds;
    }
  }
}

}  // namespace

TraceSummary summarize(const JobTrace& trace) {
  TraceSummary summary;
  summary.waiting_s.resize(trace.ranks.size());
  summary.calling_s.resize(trace.ranks.size());
  TraceTime end = 0;
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) add_rank(summary, trace.ranks[i], i, end);
  summary.seconds = static_cast<double>(end) * kSeconds;

  const Meetings meetings = meetings_of(trace);
  const auto members = members_of(trace);
  std::map<LineKey, Gathered> lines;
  std::vector<std::pair<TraceTime, TraceLoose>> loose;
  for (const auto& [key, meeting] : meetings) {
    ++summary.calls;
    if (meeting.parts.size() > 1) add_waiting(summary, meeting);
    const auto& group = members.at(key.first);
    if (!meeting.ended_well() || meeting.parts.size() < group.size()) {
      TraceLoose found = loose_of(trace, key, meeting, group);
      if (!found.missing.empty() || !found.inside.empty() || !found.failed.empty()) {
        loose.emplace_back(meeting.first_begin(), std::move(found));
      }
      continue;
    }
    const TracedCall& call = *meeting.parts.front().call;
    Gathered& gathered = lines[{call.name, meeting.group, call.engine, call.bytes}];
    const TraceTime begin = meeting.first_begin();
    gathered.times_us.push_back(static_cast<double>(meeting.last_end() - begin) * 1e-3);
    if (meeting.parts.size() < 2) continue;
    const CallPart last = meeting.last();
    gathered.waited_s += static_cast<double>(last.call->begin - begin) * kSeconds;
    ++gathered.came_last[trace.ranks[last.rank].rank];
  }
  for (auto& [key, gathered] : lines) summary.lines.push_back(line_of(key, gathered));
  std::ranges::stable_sort(summary.lines, std::greater{}, &TraceLine::total_s);
  std::ranges::stable_sort(loose, {}, [](const auto& each) { return each.first; });
  for (auto& each : loose) summary.loose.push_back(std::move(each.second));
  return summary;
}

}  // namespace hocket
