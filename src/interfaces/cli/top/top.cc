// `hocket top`: the activity of this user's jobs on this host.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hocket/live.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/top/json.h"
#include "interfaces/cli/top/screen.h"
#include "interfaces/cli/top/table.h"

namespace hocket::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLook{20};  // between two samples of the job

constexpr const char* kTopFooter = R"(
Shows the jobs of this user on this host, however they were started, and one job whole: a line a rank.
A job is read where its memory lies, so that one that hangs, or whose processes are stopped, is seen as
any other; nothing of it runs for that. HOCKET_TOP=0 in a rank's environment keeps it out of sight.

`since`: for how long it has been seen to be there. `waits`: the share of the time in calls to which
others had not come. `bytes`: of the rank's larger array in each call, a second.

Keys: up and down choose a rank, Enter shows its last calls, r w b s sort by rank, waiting (least first,
for whom the others wait), bytes, since; q quits. Where the output is no terminal, one look is printed.

Exit code: 0, or 1 where there is no such job.

Examples:
  hocket top                    # the job, if there is one; else a list
  hocket top 4242               # the job of which process 4242 is a rank
  hocket top --once --rank 3    # also the last calls of rank 3
  hocket top --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["jobs"][0]["blamed"])'
)";

struct TopArguments {
  int pid = 0;
  int rank = -1;
  double seconds = 1;
  bool once = false;
  bool json = false;
  int columns = 0;
};

// Returns the job of `jobs` that a process belongs to. If none has it, returns an entry with its
// pid.
FoundJob found_job(const std::vector<FoundJob>& jobs, int pid) {
  for (const FoundJob& job : jobs) {
    if (std::ranges::find(job.pids, pid) != job.pids.end()) return job;
  }
  return {.pid = pid, .pids = {pid}};
}

void look_for(JobView& view, double seconds) {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    view.look();
    std::this_thread::sleep_for(kLook);
  } while (Clock::now() < until);
  view.look();
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

int show_json(const TopArguments& arguments, std::vector<FoundJob> jobs) {
  if (arguments.pid != 0) jobs = {found_job(jobs, arguments.pid)};
  std::vector<ShownJob> shown;
  std::vector<std::optional<JobView>> views;
  for (const FoundJob& job : jobs) {
    shown.push_back({.found = job, .seen = {}});
    views.emplace_back();
    try {
      if (job.refusal.empty()) views.back() = JobView::open(job);
    } catch (const Error& error) {
      if (arguments.pid != 0) throw;
      shown.back().found.refusal = error.what();  // the job has ended meanwhile
    }
  }
  const auto until = Clock::now() + std::chrono::duration<double>(arguments.seconds);
  while (Clock::now() < until) {
    for (auto& view : views) {
      if (view) view->look();
    }
    std::this_thread::sleep_for(kLook);
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!views[i]) continue;
    views[i]->look();
    shown[i].seen = views[i]->report({.recent = arguments.rank});
    shown[i].found.size = shown[i].seen.size;
  }
  const std::string text = jobs_json(shown);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

int show_once(const TopArguments& arguments, const FoundJob& job, TableView view) {
  JobView seen = JobView::open(job);
  look_for(seen, arguments.seconds);
  const LiveJob now = seen.report({.recent = arguments.rank});
  print(job_head(now, job.command, view));
  print(ranks_table(now, view));
  const auto rank = std::ranges::find(now.ranks, arguments.rank, &LiveRank::rank);
  if (arguments.rank < 0) return 0;
  if (rank == now.ranks.end()) {
    fmt::print(stderr, "hocket: the job has no rank {}\n", arguments.rank);
    return kExitFailure;
  }
  fmt::print("\nrank {}, its last calls first\n", arguments.rank);
  print(calls_table(*rank, view));
  return 0;
}

// A resource: the view of one job on a terminal.
class Top {
 public:
  Top(const TopArguments& arguments, const FoundJob& job, const Colours& colours)
      : job_(job), seconds_(std::max(arguments.seconds, 0.1)), view_(JobView::open(job)) {
    table_.colours = colours;
    table_.opened = arguments.rank;
  }

  int run() {
    {
      Screen screen;
      while (turn(screen)) {
      }
    }
    if (has_ended_) fmt::print("hocket: the job has ended\n");
    return 0;
  }

 private:
  // Samples the job until it is time to draw. Returns false if the user wants to quit.
  bool turn(Screen& screen) {
    const auto until = Clock::now() + std::chrono::duration<double>(is_first_ ? 0.2 : seconds_);
    is_first_ = false;
    while (Clock::now() < until) {
      view_.look();
      const auto pressed = screen.wait(kLook);
      if (!pressed) continue;
      if (pressed->key == Key::kQuit) return false;
      take(*pressed);
      draw(screen);
    }
    view_.look();
    if (!view_.lives()) {
      has_ended_ = true;
      return false;
    }
    now_ = view_.report({.recent = table_.opened});
    view_.begin_anew();
    draw(screen);
    return true;
  }

  void take(const Pressed& pressed) {
    switch (pressed.key) {
      case Key::kUp:
        return choose(-1);
      case Key::kDown:
        return choose(1);
      case Key::kEnter:
        table_.opened = table_.opened < 0 ? std::max(table_.chosen, 0) : -1;
        return;
      case Key::kBack:
        table_.opened = -1;
        return;
      case Key::kQuit:
      case Key::kResize:
        return;
      case Key::kLetter:
        break;
    }
    if (pressed.letter == 'r') table_.sorted = SortedBy::kRank;
    if (pressed.letter == 'w') table_.sorted = SortedBy::kWaiting;
    if (pressed.letter == 'b') table_.sorted = SortedBy::kBytes;
    if (pressed.letter == 's') table_.sorted = SortedBy::kSince;
  }

  void choose(int step) {
    const auto ranks = in_order(now_, table_.sorted);
    if (ranks.empty()) return;
    const auto found = std::ranges::find(ranks, table_.chosen, &LiveRank::rank);
    const int last = static_cast<int>(ranks.size()) - 1;
    const int at =
        found == ranks.end() ? (step > 0 ? -1 : last + 1) : static_cast<int>(found - ranks.begin());
    table_.chosen = ranks[static_cast<std::size_t>(std::clamp(at + step, 0, last))]->rank;
    if (table_.opened >= 0) table_.opened = table_.chosen;
  }

  void draw(const Screen& screen) {
    table_.columns = screen.columns();
    std::vector<std::string> lines = job_head(now_, job_.command, table_);
    const auto opened = std::ranges::find(now_.ranks, table_.opened, &LiveRank::rank);
    std::vector<std::string> calls;
    if (table_.opened >= 0 && opened != now_.ranks.end()) {
      if (opened->groups.empty() || opened->groups.front().recent.empty()) {
        now_ = view_.report({.recent = table_.opened});
      }
      const auto again = std::ranges::find(now_.ranks, table_.opened, &LiveRank::rank);
      calls = {"", fmt::format("rank {}, its last calls first", table_.opened)};
      std::ranges::move(calls_table(*again, table_), std::back_inserter(calls));
    }
    const std::vector<std::string> ranks = ranks_table(now_, table_);
    const int room = std::max(screen.lines() - static_cast<int>(lines.size()) - 1, 3);
    const int for_calls = std::min(static_cast<int>(calls.size()), room / 2);
    add_some(lines, ranks, room - for_calls);
    lines.insert(lines.end(), calls.begin(), calls.begin() + for_calls);
    lines.resize(static_cast<std::size_t>(std::max(screen.lines() - 1, 1)));
    // Truncates the line, because a line that wraps would shift the others.
    const std::string keys = "up down Enter: a rank's calls   r w b s: sort   q: quit";
    lines.push_back(table_.colours.faint +
                    keys.substr(0, static_cast<std::size_t>(std::max(table_.columns, 0))) +
                    table_.colours.end);
    screen.draw(lines);
  }

  // Adds the head of the table, and as many of its lines as fit in `room`. The chosen line is among
  // them.
  void add_some(std::vector<std::string>& lines, const std::vector<std::string>& ranks, int room) {
    lines.push_back(ranks.front());
    const int count = static_cast<int>(ranks.size()) - 1;
    const int shown = std::min(count, std::max(room - 1, 1));
    const auto order = in_order(now_, table_.sorted);
    const auto found = std::ranges::find(order, table_.chosen, &LiveRank::rank);
    const int at = found == order.end() ? 0 : static_cast<int>(found - order.begin());
    const int first = std::clamp(at - shown / 2, 0, count - shown);
    lines.insert(lines.end(), ranks.begin() + 1 + first, ranks.begin() + 1 + first + shown);
  }

  const FoundJob job_;
  const double seconds_;
  JobView view_;
  TableView table_;
  LiveJob now_;
  bool is_first_ = true;
  bool has_ended_ = false;
};

int show(const TopArguments& arguments) {
  const std::vector<FoundJob> jobs = find_jobs();
  if (arguments.json) return show_json(arguments, jobs);
  const bool on_terminal = ::isatty(STDOUT_FILENO) != 0 && ::isatty(STDIN_FILENO) != 0;
  const bool coloured =
      ::isatty(STDOUT_FILENO) != 0 && EnvironmentBlock::inherited().get("NO_COLOR").empty();
  TableView view{.columns = arguments.columns > 0 ? arguments.columns : columns_of_output(),
                 .colours = coloured ? Colours::for_terminal() : Colours()};
  if (arguments.pid == 0 && jobs.size() != 1) {
    if (jobs.empty()) {
      fmt::print(stderr, "hocket: there is no job of this user on this host\n");
      return kExitFailure;
    }
    print(jobs_table(jobs, view));
    fmt::print("one of them whole: hocket top PID, such as hocket top {}\n", jobs.front().pid);
    return 0;
  }
  const FoundJob job = arguments.pid != 0 ? found_job(jobs, arguments.pid) : jobs.front();
  try {
    if (arguments.once || !on_terminal) return show_once(arguments, job, view);
    return Top(arguments, job, view.colours).run();
  } catch (const InvalidArgument& error) {
    fmt::print(stderr, "hocket: {}\n", error.what());
    return kExitFailure;
  }
}

double seconds_from(double seconds) {
  constexpr double kLongest = 3600;
  if (seconds >= 0 && seconds <= kLongest) return seconds;  // NaN fails this test
  throw CLI::ValidationError("--seconds", "expected a number of seconds from 0 to 3600");
}

}  // namespace

void add_top(CLI::App& app, Action& chosen) {
  CLI::App* command =
      app.add_subcommand("top", "Show what the ranks of a job are doing, and whom they wait for");
  const auto arguments = std::make_shared<TopArguments>();
  command->add_option("pid", arguments->pid, "A process of the job; default: the only job")
      ->type_name("PID")
      ->check(CLI::Range(1, 1 << 22));
  command->add_flag("--once", arguments->once, "Print one look, and end");
  command->add_flag("--json", arguments->json, "One look at all jobs, or at that of PID, as JSON");
  command->add_option("--rank", arguments->rank, "Also show the last calls of this rank")
      ->type_name("RANK")
      ->check(CLI::Range(0, 1 << 22));
  command
      ->add_option_function<double>(
          "--seconds",
          [arguments](double seconds) { arguments->seconds = seconds_from(seconds); },
          "How long to look before it is shown; default 1")
      ->type_name("S");
  command
      ->add_option("--columns", arguments->columns, "Width of the table; default: the terminal's")
      ->type_name("N")
      ->check(CLI::Range(40, 1000));
  command->footer(kTopFooter);
  command->callback([arguments, &chosen] { chosen = [arguments] { return show(*arguments); }; });
}

}  // namespace hocket::cli
