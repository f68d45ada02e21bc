#include "interfaces/cli/top/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "interfaces/cli/quantities.h"

namespace hocket::cli {
namespace {

constexpr std::size_t kNamedRanks = 4;  // the most ranks that a list names
constexpr int kWideColumns = 120;       // tables of at least this width show more

// Pads a text to `width`, or truncates it with a mark.
std::string fit(std::string text, std::size_t width) {
  if (text.size() > width) {
    text.resize(width == 0 ? 0 : width - 1);
    if (width != 0) text += '>';
  }
  text.resize(width, ' ');
  return text;
}

std::string cut(std::string text, int columns) {
  const auto width = static_cast<std::size_t>(std::max(columns, 1));
  if (text.size() > width) text = fit(std::move(text), width);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string ranks_in_short(const std::vector<int>& ranks) {
  const std::vector<int> named(
      ranks.begin(),
      ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kNamedRanks)));
  std::string text = fmt::format("{}", fmt::join(named, ","));
  if (ranks.size() > kNamedRanks) text += fmt::format(" +{}", ranks.size() - kNamedRanks);
  return text;
}

const LiveGroup* doing_of(const LiveRank& rank) {
  return rank.doing < 0 ? nullptr : &rank.groups[static_cast<std::size_t>(rank.doing)];
}

std::string state_text(const LiveRank& rank) {
  switch (rank.state) {
    case LiveState::kAbsent:
      return "not come";
    case LiveState::kLeft:
      return "left";
    case LiveState::kDied:
      return "died";
    case LiveState::kSilent:
      return "not heard";
    case LiveState::kAlive:
      break;
  }
  if (rank.is_here && rank.pid == 0) return "ended";
  if (!rank.shows) return "not shown";
  if (rank.stands_still) return "stands still";
  const LiveGroup* const group = doing_of(rank);
  if (group == nullptr) return "";
  if (!group->missing.empty()) return "waits for " + ranks_in_short(group->missing);
  if (!group->message.empty()) return "waits";
  return group->inside ? "in the call" : "between calls";
}

// Returns "all_reduce #17 sum float32[1024] on world", or "all_reduce #17" if not `wide`.
std::string call_text(const LiveGroup& group, bool wide) {
  if (!group.message.empty()) return fmt::format("{} on {}", group.message, group.name);
  if (group.call.empty()) return fmt::format("no call so far on {}", group.name);
  if (!wide) return group.call.substr(0, group.call.find(' ', group.call.find('#')));
  return fmt::format("{}{} on {}", group.call, group.failed ? " (failed)" : "", group.name);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string rate_text(double bytes_per_s) {
  return bytes_per_s < 0.5 ? "0" : size_text(static_cast<std::size_t>(bytes_per_s)) + "/s";
}

std::string line_of(const LiveRank& rank, int columns) {
  const LiveGroup* const group = doing_of(rank);
  const bool wide = columns >= kWideColumns;
  const bool moves = rank.state == LiveState::kAlive;
  std::string line = fmt::format("{:>5} {:>8}  {} ",
                                 rank.rank,
                                 rank.is_here ? (rank.pid == 0 ? "-" : std::to_string(rank.pid))
                                              : fmt::format("host {}", rank.host),
                                 fit(state_text(rank), wide ? 20 : 14));
  const std::string rest =
      fmt::format(" {:>7} {:>5} {:>11}{} {:>3}",
                  moves && group != nullptr ? time_text(rank.since_s) : "",
                  moves ? percent(rank.waiting) : "",
                  moves ? rate_text(rank.bytes_per_s) : "",
                  wide ? fmt::format(" {:>9}", moves ? three_digits(rank.calls_per_s) : "") : "",
                  rank.processor < 0 ? "" : std::to_string(rank.processor));
  const int room = columns - static_cast<int>(line.size() + rest.size());
  const int for_call = wide ? std::min(room * 3 / 5, 56) : room;
  line += fit(group == nullptr ? "" : call_text(*group, wide),
              static_cast<std::size_t>(std::max(for_call, 0)));
  line += rest;
  if (wide) line += "  " + rank.process;
  return cut(std::move(line), columns);
}

std::string ranks_head(int columns) {
  const bool wide = columns >= kWideColumns;
  std::string line = fmt::format("{:>5} {:>8}  {} ", "rank", "pid", fit("state", wide ? 20 : 14));
  const std::string rest = fmt::format(
      " {:>7} {:>5} {:>11}{} {:>3}", "since", "waits", "bytes", wide ? "   calls/s" : "", "cpu");
  const int room = columns - static_cast<int>(line.size() + rest.size());
  const int for_call = wide ? std::min(room * 3 / 5, 56) : room;
  line += fit("call", static_cast<std::size_t>(std::max(for_call, 0)));
  return cut(line + rest + (wide ? "  process" : ""), columns);
}

}  // namespace

std::vector<std::string> jobs_table(const std::vector<FoundJob>& jobs, const TableView& view) {
  std::vector<std::string> lines{
      fmt::format("{:>8} {:>6} {:>6}  {}", "pid", "ranks", "here", "command")};
  for (const FoundJob& job : jobs) {
    lines.push_back(cut(fmt::format("{:>8} {:>6} {:>6}  {}{}",
                                    job.pid,
                                    job.size == 0 ? "?" : std::to_string(job.size),
                                    job.pids.size(),
                                    job.command,
                                    job.refusal.empty() ? "" : fmt::format(" ({})", job.refusal)),
                        view.columns));
  }
  return lines;
}

std::vector<std::string> job_head(const LiveJob& job,
                                  const std::string& command,
                                  const TableView& view) {
  std::vector<std::string> lines;
  lines.push_back(cut(fmt::format("job {}: {} {}, {} of shared memory, looked at for {}: {}",
                                  job.pid,
                                  job.size,
                                  job.size == 1 ? "rank" : "ranks",
                                  size_text(job.memory_bytes),
                                  time_text(job.looked_s),
                                  command),
                      view.columns));
  for (const int blamed : job.blamed) {
    const auto found = std::ranges::find(job.ranks, blamed, &LiveRank::rank);
    if (found == job.ranks.end()) continue;
    const auto waiting = std::ranges::count(job.ranks, blamed, &LiveRank::blocked_by);
    lines.push_back(cut(fmt::format("rank {} holds up {} {}{}{}{}{}",
                                    blamed,
                                    waiting,
                                    waiting == 1 ? "rank" : "ranks",
                                    found->process.empty() ? "" : ": ",
                                    found->process,
                                    found->place.empty() ? "" : ", at ",
                                    found->place),
                        view.columns));
    if (lines.size() > kNamedRanks) break;
  }
  return lines;
}

std::vector<const LiveRank*> in_order(const LiveJob& job, SortedBy sorted) {
  std::vector<const LiveRank*> ranks;
  for (const LiveRank& rank : job.ranks) ranks.push_back(&rank);
  const auto key = [sorted](const LiveRank* rank) {
    switch (sorted) {
      case SortedBy::kRank:
        return 0.0;
      case SortedBy::kWaiting:
        // The rank that waits least comes first: the others probably wait for it.
        return rank->waiting;
      case SortedBy::kBytes:
        return -rank->bytes_per_s;
      case SortedBy::kSince:
        return -rank->since_s;
    }
    return 0.0;
  };
  std::ranges::stable_sort(ranks, {}, key);
  return ranks;
}

std::vector<std::string> ranks_table(const LiveJob& job, const TableView& view) {
  const Colours& colours = view.colours;
  std::vector<std::string> lines{colours.faint + ranks_head(view.columns) + colours.end};
  for (const LiveRank* rank : in_order(job, view.sorted)) {
    std::string line = line_of(*rank, view.columns);
    const bool is_blamed = std::ranges::find(job.blamed, rank->rank) != job.blamed.end();
    const bool is_lost = rank->state == LiveState::kDied || rank->state == LiveState::kSilent;
    if (is_blamed || is_lost || rank->stands_still) line = colours.bad + line + colours.end;
    if (rank->rank == view.chosen) line = colours.bold + line + colours.end;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> calls_table(const LiveRank& rank, const TableView& view) {
  std::vector<std::string> lines;
  if (!rank.place.empty()) lines.push_back(cut("at " + rank.place, view.columns));
  for (const LiveGroup& group : rank.groups) {
    lines.push_back(cut(fmt::format("{}: rank {} of {}, {} calls{}",
                                    group.name,
                                    group.rank,
                                    group.size,
                                    group.calls,
                                    group.failure.empty() ? "" : ", ended by " + group.failure),
                        view.columns));
    if (!group.message.empty()) lines.push_back(cut("  now " + group.message, view.columns));
    for (auto each = group.recent.rbegin(); each != group.recent.rend(); ++each) {
      const bool is_last = each == group.recent.rbegin();
      lines.push_back(
          cut(fmt::format("  {}{}", *each, is_last && group.inside ? " (has not ended)" : ""),
              view.columns));
    }
  }
  return lines;
}

}  // namespace hocket::cli
