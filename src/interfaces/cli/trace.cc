// `hocket trace`: the calls of a job's ranks, and the ranks that they waited for.
#include "hocket/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hocket/audit.h"
#include "hocket/error.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/quantities.h"
#include "interfaces/cli/trace/chrome.h"
#include "interfaces/cli/trace/diff.h"

namespace hocket::cli {
namespace {

constexpr const char* kFooter = R"(
A job writes its calls into a folder that HOCKET_TRACE names, which `hocket run --trace DIR` sets.
The files survive a rank that is killed: its last call is seen to have begun.

`time` is from the first rank's coming to the last one's going, summed over the calls; `waiting` is
the share of it in which some were there and others were not yet; `last` is the rank that came last
most often, and in how many of the calls. Calls on GPUs show the time of putting them on a stream.

--diff compares two runs by what they have kept of their calls' arrays: digests of about 64 blocks an
array, which `hocket run --audit DIR` or HOCKET_AUDIT writes. It shows the first call that differs, on
which rank, and in which elements; any single bit is found. Arrays that GPUs exchange by themselves
are not digested.

Exit code: 0, or 1 where there is no trace that can be read; of --diff 0 where the runs do not differ,
1 where they do, 2 where they cannot be compared.

Examples:
  hocket run -n 4 --trace slow -- python train.py
  hocket trace slow
  hocket trace slow --chrome slow.json    # open it in https://ui.perfetto.dev or chrome://tracing
  hocket run -n 4 --audit good -- python train.py && hocket run -n 4 --audit bad -- python train.py
  hocket trace --diff good bad
)";

struct TraceArguments {
  std::string folder;
  std::string chrome;
  std::vector<std::string> diff;
  std::size_t lines = 20;
};

std::string plural(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

void print_head(const JobTrace& trace, const TraceSummary& summary) {
  std::set<int> hosts;
  for (const RankTrace& rank : trace.ranks) hosts.insert(rank.host);
  fmt::print("{} on {}, {}: {}, {}\n",
             plural(trace.ranks.size(), "rank"),
             plural(hosts.size(), "host"),
             time_text(summary.seconds),
             plural(summary.calls, "call"),
             plural(summary.messages, "message"));
  const auto size = static_cast<std::size_t>(trace.ranks.front().size);
  if (trace.ranks.size() < size) {
    fmt::print("The job had {}; the others have left no file here.\n", plural(size, "rank"));
  }
  if (summary.dropped != 0) {
    fmt::print("{} had no room in the files.\n", plural(summary.dropped, "call"));
  }
}

void print_lines(const TraceSummary& summary, std::size_t most) {
  if (summary.lines.empty()) return;
  fmt::print("\n{:<18} {:<10} {:<10} {:>10} {:>8} {:>9} {:>9} {:>9} {:>8}  {}\n",
             "call",
             "group",
             "engine",
             "size",
             "calls",
             "time",
             "median",
             "longest",
             "waiting",
             "last");
  const std::size_t shown = std::min(most, summary.lines.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const TraceLine& line = summary.lines[i];
    fmt::print("{:<18} {:<10} {:<10} {:>10} {:>8} {:>9} {:>9} {:>9} {:>8}  {}\n",
               line.call,
               line.group,
               line.engine,
               size_text(line.bytes),
               line.count,
               time_text(line.total_s),
               time_text(line.median_us * 1e-6),
               time_text(line.max_us * 1e-6),
               percent(line.waited_s, line.total_s),
               line.latest < 0
                   ? ""
                   : fmt::format("rank {} ({:.0f} %)", line.latest, 100 * line.latest_share));
  }
  if (shown < summary.lines.size()) {
    fmt::print("and {}; --lines shows more\n", plural(summary.lines.size() - shown, "more line"));
  }
}

void print_ranks(const JobTrace& trace, const TraceSummary& summary) {
  if (trace.ranks.size() < 2) return;
  fmt::print("\n{:>4}  {:>10}  {:>24}\n", "rank", "in calls", "waiting for later ranks");
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    fmt::print("{:>4}  {:>10}  {:>24}\n",
               trace.ranks[i].rank,
               percent(summary.calling_s[i], summary.seconds),
               percent(summary.waiting_s[i], summary.seconds));
  }
}

void print_loose(const TraceSummary& summary, std::size_t most) {
  if (summary.loose.empty()) return;
  fmt::print("\nNot ended well:\n");
  const std::size_t shown = std::min(most, summary.loose.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const TraceLoose& loose = summary.loose[i];
    std::vector<std::string> what;
    if (!loose.inside.empty()) what.push_back(ranks_text(loose.inside) + " still in it");
    if (!loose.failed.empty()) what.push_back(ranks_text(loose.failed) + " got an error");
    if (!loose.missing.empty()) what.push_back(ranks_text(loose.missing) + " never called it");
    fmt::print(
        "  {} #{} on {}: {}\n", loose.call, loose.sequence, loose.group, fmt::join(what, "; "));
  }
  if (shown < summary.loose.size()) {
    fmt::print("  and {}\n", plural(summary.loose.size() - shown, "more call"));
  }
}

void write_chrome(const JobTrace& trace, const std::string& path) {
  errno = 0;
  std::ofstream out(path, std::ios::trunc);
  write_chrome_trace(trace, out);
  out.close();
  if (!out) throw SystemError("cannot write " + path, errno);
  fmt::print(stderr, "hocket: {} is for https://ui.perfetto.dev or chrome://tracing\n", path);
}

// Returns true if a folder has an audit and no trace.
bool has_only_audit(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".trace") return false;
  }
  return has_audit(folder);
}

int show(const TraceArguments& arguments) {
  if (!arguments.diff.empty()) return show_difference(arguments.diff[0], arguments.diff[1]);
  JobTrace trace;
  try {
    if (has_only_audit(arguments.folder)) {
      fmt::print("An audit of {}, and no trace of the times of calls.\n",
                 plural(read_audit(arguments.folder).ranks.size(), "rank"));
      print_non_finite(arguments.folder);
      return 0;
    }
    trace = read_trace(arguments.folder);
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "hocket: {}\n", error.what());
    return kExitFailure;
  }
  const TraceSummary summary = summarize(trace);
  print_head(trace, summary);
  print_lines(summary, arguments.lines);
  print_ranks(trace, summary);
  print_loose(summary, arguments.lines);
  print_non_finite(arguments.folder);
  if (!arguments.chrome.empty()) write_chrome(trace, arguments.chrome);
  return 0;
}

}  // namespace

void add_trace(CLI::App& app, Action& chosen) {
  CLI::App* command =
      app.add_subcommand("trace", "Show what the ranks of a job called, and whom they waited for");
  const auto arguments = std::make_shared<TraceArguments>();
  CLI::Option* const folder =
      command->add_option("folder", arguments->folder, "Where the job wrote its trace")
          ->type_name("DIR");
  CLI::Option* const diff =
      command->add_option("--diff", arguments->diff, "Show where two runs part, by their audits")
          ->type_name("DIR")
          ->expected(2)
          ->excludes(folder);
  command->add_option("--chrome", arguments->chrome, "Also write all calls for Perfetto or Chrome")
      ->type_name("FILE");
  command->add_option("--lines", arguments->lines, "At most so many lines a table; default 20")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30));
  command->footer(kFooter);
  command->callback([arguments, folder, diff, &chosen] {
    if (folder->empty() && diff->empty()) throw CLI::RequiredError("folder");
    chosen = [arguments] { return show(*arguments); };
  });
}

}  // namespace hocket::cli
