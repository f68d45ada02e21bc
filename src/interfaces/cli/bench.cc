// `hocket bench`: measures the collectives on this machine, beside other libraries.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string_view>

#include "hocket/error.h"
#include "interfaces/cli/bench/libraries.h"
#include "interfaces/cli/bench/machine.h"
#include "interfaces/cli/bench/measure.h"
#include "interfaces/cli/bench/options.h"
#include "interfaces/cli/bench/report.h"
#include "interfaces/cli/bench/team.h"
#include "interfaces/cli/bench/worker.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/binding.h"
#include "interfaces/cli/run/process_tree.h"

namespace hocket::cli {
namespace {

using namespace bench;

// --- Showing -----------------------------------------------------------------------------------

// Shows one line of progress on the terminal; nothing if stderr is no terminal.
class Progress {
 public:
  void show(const std::string& text) {
    if (!active_) return;
    fmt::print(stderr, "\r\x1b[2K{}", text);
    std::fflush(stderr);
  }
  void clear() { show(""); }
  void problem(const std::string& text) {
    clear();
    fmt::print(stderr, "hocket bench: {}\n", text);
  }

 private:
  bool active_ = ::isatty(STDERR_FILENO) == 1;
};

std::string_view text_of(const Placement& placement) {
  switch (placement.unit()) {
    case Unit::kCore:
      return "each bound to a core of its own, in all libraries";
    case Unit::kThread:
      return "each bound to a hardware thread of its own, in all libraries";
    case Unit::kNone:
      break;
  }
  return placement.may_bind ? "not bound: there are more ranks than processors"
                            : "not bound, in all libraries";
}

void print_introduction(const Findings& findings, const Placement& placement) {
  for (const auto& [name, value] : findings.machine) fmt::print("# {}: {}\n", name, value);
  for (const Participant& one : findings.participants) {
    if (one.version.empty()) continue;
    fmt::print("# {}: {}, ranks on processors {}\n",
               one.name,
               one.version,
               fmt::join(one.starts.back().processors, " | "));
  }
  fmt::print("# {} ranks, {}\n", placement.ranks, text_of(placement));
  if (findings.plan.dirty) fmt::print("# inputs are written again before each call, untimed\n");
  fmt::print(
      "# time of one call in us, the slowest rank's: median of {} batches of {} ms or more;\n# "
      "ratio: over the other's time (and the middle half of the batches side by side)\n\n",
      findings.plan.repeats,
      findings.plan.batch.count());
  std::fflush(stdout);
}

// Returns the environment variables that are set for a library, and its command line.
std::string text_of(const Launch& launch) {
  std::string text;
  for (const auto& [name, value] : launch.environment) text += fmt::format("{}={} ", name, value);
  return text + fmt::format("{}", fmt::join(launch.arguments, " "));
}

// Returns the command as it was typed, except for quotes.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    if (text.empty()) word = word.substr(word.rfind('/') + 1);
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

constexpr std::string_view kStandardOutput = "-";

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw SystemError("cannot write " + path, errno);
}

// Throws if a file for the results cannot be written. Called before anything is measured.
void require_writable(const std::string& path) {
  if (path.empty() || path == kStandardOutput) return;
  const bool is_there = ::access(path.c_str(), F_OK) == 0;
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!file) throw SystemError("cannot write " + path, errno);
  if (!is_there) ::unlink(path.c_str());
}

// A resource: while it lives, all printed text goes to stderr, except the figures.
class FiguresOnly {
 public:
  FiguresOnly() : out_(checked_fd(::dup(STDOUT_FILENO), "cannot copy the standard output")) {
    std::fflush(stdout);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~FiguresOnly() {
    std::fflush(stdout);
    ::dup2(out_.get(), STDOUT_FILENO);
  }
  FiguresOnly(const FiguresOnly&) = delete;
  FiguresOnly& operator=(const FiguresOnly&) = delete;

 private:
  Fd out_;
};

// --- Running -----------------------------------------------------------------------------------

// A resource: the libraries that take part, started one after the other.
class Session {
 public:
  Session(const Arguments& arguments, std::string command)
      : arguments_(arguments),
        placement_{.ranks = arguments.ranks.front(),
                   .cores = count_cores(allowed_processors()),
                   .processors = static_cast<int>(allowed_processors().size()),
                   .may_bind = arguments.bind != "none",
                   .on_gpu = on_gpu(arguments),
                   .by_graph = arguments.launch == "graph"},
        begin_(std::chrono::steady_clock::now()) {
    findings_.command = std::move(command);
    findings_.date = timestamp();
    findings_.machine = machine_facts();
    findings_.ranks = arguments.ranks;
    // Checks the options for every number of ranks before the first is measured.
    for (const int ranks : arguments.ranks) findings_.plan = plan_of(arguments, ranks);
    const int most = std::ranges::max(arguments.ranks);
    if (arguments.bind == "core" && most > placement_.processors) {
      throw InvalidArgument(
          fmt::format("--bind core: {} ranks, but only {} processors may be used here; use --bind "
                      "auto, or fewer ranks",
                      most,
                      placement_.processors));
    }
    // For a cost table, each engine is measured separately. hocket's own choice among them does not
    // matter.
    if (arguments.tune_file.empty()) add_library(std::string(kHocket));
    for (const std::string& peer : peers_of(arguments)) add_library(peer);
  }

  int run() {
    bool worked = true;
    for (std::size_t i = 0; i < arguments_.ranks.size(); ++i) {
      worked = run_with(arguments_.ranks[i], arguments_.ranks.size() - i) && worked;
    }
    write_results();
    return worked && all_verified() ? 0 : kExitFailure;
  }

  const Findings& findings() const noexcept { return findings_; }

 private:
  void add_library(const std::string& name) { findings_.participants.push_back({name, "", {}}); }

  // Measures with this number of ranks. `runs` is the number of runs that are left, including this
  // one. Returns true if no required library failed.
  // required library failed.
  bool run_with(int ranks, std::size_t runs) {
    placement_.ranks = ranks;
    findings_.plan = plan_of(arguments_, ranks);
    for (std::size_t i = 0; i < findings_.participants.size(); ++i) teams_.push_back(start(i));
    if (arguments_.seconds) {
      const auto now = std::chrono::steady_clock::now();
      const auto end = begin_ + std::chrono::seconds(*arguments_.seconds);
      findings_.plan.end = now + (end - now) / static_cast<long>(runs);
    }
    if (findings_.points.size() > 0) fmt::print("\n");
    print_introduction(findings_, placement_);
    Table table(stdout, started_peers());
    measure(findings_.plan,
            teams_,
            {.progress = [this](const std::string& what) { progress_.show(what); },
             .measured =
                 [&](const Point& point) {
                   progress_.clear();
                   table.add(point);
                   findings_.points.push_back(point);
                 },
             .problem = [this](const std::string& what) { problem(what); },
             .unfinished = [this](const Gap& gap) { findings_.gaps.push_back(gap); },
             .restart = [this](std::size_t place) { return start(place); }});
    progress_.clear();
    // A comparison succeeds if hocket has not failed. Tuning succeeds if at least one engine has
    // not.
    const auto lives = [](const std::unique_ptr<Team>& team) { return team != nullptr; };
    const bool worked = arguments_.tune_file.empty()
                            ? lives(teams_.front()) && std::ranges::none_of(findings_.gaps, is_own)
                            : std::ranges::any_of(teams_, lives);
    teams_.clear();
    return worked;
  }

  static bool is_own(const Gap& gap) { return gap.library == kHocket; }

  std::unique_ptr<Team> start(std::size_t place) {
    Participant& participant = findings_.participants[place];
    const std::string& library = participant.name;
    progress_.show(fmt::format("starting {}", library));
    Offer offer = find_library(library, placement_);
    Launch& launch = offer.launch;
    Start made{.ranks = placement_.ranks, .processors = {}, .launch = text_of(launch)};
    if (library == kHocket && !arguments_.algorithm.empty()) {
      launch.environment.emplace_back("HOCKET_ALGORITHM", arguments_.algorithm);
    }
    if (is_numeric(findings_.plan.collectives.front())) {
      // Each rank has a processor, so its library must compute with one thread.
      launch.environment.emplace_back("OMP_NUM_THREADS", "1");
      launch.environment.emplace_back("OPENBLAS_NUM_THREADS", "1");
    }
    std::unique_ptr<Team> team;
    if (!offer.missing.empty()) {
      problem(fmt::format("{}: {}", library, offer.missing));
    } else {
      try {
        const TeamOptions options{placement_.ranks, std::chrono::seconds(arguments_.timeout_s)};
        team = std::make_unique<Team>(launch, options, listener_, interrupts_);
        participant.version = team->version();
        made.processors = team->processors();
      } catch (const TeamFailed& error) {
        problem(fmt::format("{} did not start: {}", library, error.what()));
      }
    }
    const bool again =
        !participant.starts.empty() && participant.starts.back().ranks == placement_.ranks;
    if (!again) participant.starts.push_back(std::move(made));
    return team;
  }

  // Returns the peers that have started. Other peers were reported already, and would only fill
  // columns with dashes.
  std::vector<std::string> started_peers() const {
    std::vector<std::string> peers;
    for (std::size_t i = 0; i < teams_.size(); ++i) {
      const std::string& library = findings_.participants[i].name;
      if (teams_[i] != nullptr && library != kHocket) peers.push_back(library);
    }
    return peers;
  }

  void problem(const std::string& what) {
    const auto& known = findings_.problems;
    if (std::find(known.begin(), known.end(), what) != known.end()) return;
    progress_.problem(what);
    findings_.problems.push_back(what);
  }

  bool all_verified() const {
    for (const Point& point : findings_.points) {
      for (const Row& row : point) {
        if (!row.verified()) return false;
      }
    }
    return !findings_.points.empty();
  }

  void write_results() const {
    if (!arguments_.json_file.empty() && arguments_.json_file != kStandardOutput) {
      write_file(arguments_.json_file, to_json(findings_));
      fmt::print("\nfigures: {}\n", arguments_.json_file);
    }
    if (!arguments_.html_file.empty()) {
      write_file(arguments_.html_file, to_html(findings_));
      fmt::print("{}picture: {}\n", arguments_.json_file.empty() ? "\n" : "", arguments_.html_file);
    }
    if (!arguments_.tune_file.empty() && !findings_.points.empty()) {
      write_file(arguments_.tune_file, to_cost_table(findings_));
      fmt::print("\ntable of costs: {}\n", arguments_.tune_file);
    }
  }

  const Arguments& arguments_;
  Placement placement_;
  std::chrono::steady_clock::time_point begin_;
  Findings findings_;
  Progress progress_;
  Interrupts interrupts_;
  Listener listener_;
  std::vector<std::unique_ptr<Team>> teams_;
};

int measure(const Arguments& arguments, const std::string& command) {
  for (const auto* path : {&arguments.json_file, &arguments.html_file, &arguments.tune_file}) {
    require_writable(*path);
  }
  if (arguments.json_file != kStandardOutput) return Session(arguments, command).run();
  std::string figures;
  int code = 0;
  {
    const FiguresOnly only;
    Session session(arguments, command);
    code = session.run();
    figures = to_json(session.findings());
  }
  fmt::print("{}", figures);
  return code;
}

int run_bench(const Arguments& arguments, const std::string& command) {
  become_subreaper();
  int code = kExitFailure;
  try {
    code = measure(arguments, command);
  } catch (const Interrupted& interrupt) {
    fmt::print(stderr, "\nhocket bench: {}\n", interrupt.what());
    code = 128 + interrupt.signal();
  }
  kill_descendants();
  return code;
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure collectives, beside other libraries, with plots");
  bench->footer(
      "Sizes are those of the larger of a rank's buffers. Results are checked before and after.\n"
      "Examples: hocket bench all_reduce -n 2,4,8 --compare openmpi --html bench.html\n"
      "          hocket bench fft fft_transposed --sizes 128,256 --compare fftw\n"
      "          hocket bench matmul -n 4 --compare scalapack\n"
      "          hocket bench all_reduce all_gather -n 4 --device cuda --compare nccl");
  auto arguments = std::make_shared<Arguments>();
  add_options(*bench, *arguments);
  bench->callback([&chosen, arguments] {
    chosen = [arguments] { return run_bench(*arguments, command_line()); };
  });
  CLI::App* worker = app.add_subcommand(kWorkerSubcommand, "A rank of hocket bench")->group("");
  auto options = std::make_shared<WorkerOptions>();
  worker->add_option(kWorkerName, options->name);
  worker->add_flag(kWorkerOnGpu, options->on_gpu);
  worker->add_flag_callback(kWorkerEager, [options] { options->by_graph = false; });
  worker->callback([&chosen, options] { chosen = [options] { return run_worker(*options); }; });
}

}  // namespace hocket::cli
