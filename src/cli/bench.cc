// `hocket bench`: how fast the collectives are here, beside other libraries.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <limits>
#include <memory>

#include "cli/bench/html.h"
#include "cli/bench/libraries.h"
#include "cli/bench/machine.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/bench/team.h"
#include "cli/bench/worker.h"
#include "cli/binding.h"
#include "cli/commands.h"
#include "cli/process_tree.h"
#include "hocket/error.h"

namespace hocket::cli {
namespace {

using namespace bench;

// The options as they were typed. A value.
struct BenchArguments {
  std::vector<std::string> collectives;
  int ranks = 2;
  std::string min = "8";
  std::string max = "64M";
  int factor = 4;
  std::vector<std::string> sizes;
  std::vector<std::string> dtypes{"float32"};
  std::string op = "sum";
  std::vector<std::string> memories{"ordinary"};
  std::string in_place = "no";
  std::vector<std::string> compare;
  CLI::Option* compare_option = nullptr;
  int repeats = 9;
  int batch_ms = 30;
  int timeout_s = 60;
  std::string json_file;
  std::string html_file;
};

// --- From words to a plan ---------------------------------------------------------------------

std::size_t parse_bytes(const std::string& text) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  std::string unit = text.substr(digits);
  if (unit.size() > 1 && (unit.substr(1) == "iB" || unit.substr(1) == "B")) unit.resize(1);
  const std::string units = "KMG";
  const std::size_t place = unit.empty() ? 0 : units.find(unit) + 1;
  const bool known = unit.empty() || unit == "B" || (unit.size() == 1 && place > 0);
  if (digits == 0 || digits > 12 || !known) {
    throw InvalidArgument(
        fmt::format("'{}' is no size: write bytes, or 64K, 16M, 1G (powers of 1024)", text));
  }
  return std::stoull(text.substr(0, digits)) << (unit == "B" ? 0 : 10 * place);
}

std::vector<std::size_t> sizes_of(const BenchArguments& arguments) {
  std::vector<std::size_t> sizes;
  for (const std::string& text : arguments.sizes) sizes.push_back(parse_bytes(text));
  if (!sizes.empty()) return sizes;
  const std::size_t max = parse_bytes(arguments.max);
  for (std::size_t size = std::max<std::size_t>(1, parse_bytes(arguments.min)); size <= max;
       size *= static_cast<std::size_t>(arguments.factor)) {
    sizes.push_back(size);
  }
  if (sizes.empty()) {
    throw InvalidArgument(fmt::format(
        "--min {} is above --max {}: there is nothing to measure", arguments.min, arguments.max));
  }
  return sizes;
}

std::vector<Collective> collectives_of(const BenchArguments& arguments) {
  if (arguments.collectives.empty()) return {Collective::kAllReduce};
  std::vector<Collective> collectives;
  for (const std::string& word : arguments.collectives) {
    std::string known;
    bool found = false;
    for (const Collective one : kCollectives) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of(one));
      if (word != name_of(one) && word != "all") continue;
      found = true;
      if (word == "all" && one == Collective::kSend && arguments.ranks < 2) continue;
      collectives.push_back(one);
    }
    if (!found) {
      throw InvalidArgument(
          fmt::format("there is no collective '{}'; there are {}, and all", word, known));
    }
  }
  const bool sends =
      std::find(collectives.begin(), collectives.end(), Collective::kSend) != collectives.end();
  if (sends && arguments.ranks < 2) throw InvalidArgument("send needs two ranks: -n 2");
  return collectives;
}

std::vector<Memory> memories_of(const BenchArguments& arguments) {
  std::vector<Memory> memories;
  for (const std::string& word : arguments.memories) {
    if (word != "ordinary" && word != "symmetric") {
      throw InvalidArgument(
          fmt::format("--memory: there is no '{}'; there are ordinary and symmetric", word));
    }
    memories.push_back(word == "symmetric" ? Memory::kSymmetric : Memory::kOrdinary);
  }
  return memories;
}

std::vector<bool> places_of(const std::string& word) {
  if (word == "no") return {false};
  if (word == "yes") return {true};
  if (word == "both") return {false, true};
  throw InvalidArgument(fmt::format("--in-place={}: it takes yes, no or both", word));
}

std::vector<std::string> peers_of(const BenchArguments& arguments) {
  if (arguments.compare_option->count() == 0) return {};
  std::vector<std::string> peers;
  for (const std::string& word : arguments.compare) {
    if (!word.empty() && word != "all") peers.push_back(word);
  }
  const std::vector<std::string> known = comparable_libraries();
  for (const std::string& peer : peers) {
    if (std::find(known.begin(), known.end(), peer) != known.end()) continue;
    throw InvalidArgument(
        fmt::format("--compare: there is no library '{}'; there are {}. "
                    "Collectives are written before --compare",
                    peer,
                    fmt::join(known, ", ")));
  }
  return peers.empty() ? known : peers;
}

Plan plan_of(const BenchArguments& arguments) {
  Plan plan;
  plan.collectives = collectives_of(arguments);
  plan.sizes = sizes_of(arguments);
  for (const std::string& name : arguments.dtypes) plan.dtypes.push_back(dtype_from_name(name));
  plan.op = reduce_op_from_name(arguments.op);
  plan.memories = memories_of(arguments);
  plan.places = places_of(arguments.in_place);
  plan.ranks = arguments.ranks;
  plan.repeats = arguments.repeats;
  plan.batch = std::chrono::milliseconds(arguments.batch_ms);
  return plan;
}

// --- Showing -----------------------------------------------------------------------------------

// One line on the terminal that says what is going on; nothing where stderr is no terminal.
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

void print_introduction(const Findings& findings, const Placement& placement) {
  for (const auto& [name, value] : findings.machine) fmt::print("# {}: {}\n", name, value);
  for (const Participant& one : findings.participants) {
    if (one.version.empty()) continue;
    fmt::print("# {}: {}, ranks on processors {}\n",
               one.name,
               one.version,
               fmt::join(one.processors, " | "));
  }
  fmt::print("# {} ranks, {}\n",
             placement.ranks,
             placement.binds() ? "each bound to a core of its own, in all libraries"
                               : "not bound: there are more ranks than cores");
  fmt::print(
      "# time of one call in us, the slowest rank's: median of {} batches of {} ms or more;\n# "
      "ratio: over the other's time (and the middle half of the batches side by side)\n\n",
      findings.plan.repeats,
      findings.plan.batch.count());
  std::fflush(stdout);
}

// As it was typed, but for quotes.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    if (text.empty()) word = word.substr(word.rfind('/') + 1);
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw SystemError("cannot write " + path, errno);
}

// --- Running -----------------------------------------------------------------------------------

// A resource: the libraries that take part, started one after the other.
class Session {
 public:
  Session(const BenchArguments& arguments, std::string command)
      : arguments_(arguments),
        placement_{arguments.ranks, count_cores(allowed_processors())},
        peers_(peers_of(arguments)) {
    findings_.command = std::move(command);
    findings_.date = timestamp();
    findings_.machine = machine_facts();
    findings_.plan = plan_of(arguments);
  }

  int run() {
    start(std::string(kHocket));
    for (const std::string& peer : peers_) start(peer);
    print_introduction(findings_, placement_);
    Table table(stdout, peers_);
    measure(findings_.plan,
            teams_,
            {.progress = [this](const std::string& what) { progress_.show(what); },
             .measured =
                 [&](const Point& point) {
                   progress_.clear();
                   table.add(point);
                   findings_.points.push_back(point);
                 },
             .problem = [this](const std::string& what) { problem(what); }});
    progress_.clear();
    const bool hocket_lives = teams_.front() != nullptr;
    teams_.clear();
    write_results();
    return hocket_lives && all_verified() ? 0 : kExitFailure;
  }

 private:
  void start(const std::string& library) {
    progress_.show(fmt::format("starting {}", library));
    const Offer offer = find_library(library, placement_);
    Participant participant{
        library, "", {}, fmt::format("{}", fmt::join(offer.launch.arguments, " "))};
    std::unique_ptr<Team> team;
    if (!offer.missing.empty()) {
      problem(fmt::format("{}: {}", library, offer.missing));
    } else {
      try {
        const TeamOptions options{arguments_.ranks, std::chrono::seconds(arguments_.timeout_s)};
        team = std::make_unique<Team>(offer.launch, options, listener_, interrupts_);
        participant.version = team->version();
        participant.processors = team->processors();
      } catch (const TeamFailed& error) {
        problem(fmt::format("{} did not start: {}", library, error.what()));
      }
    }
    teams_.push_back(std::move(team));
    findings_.participants.push_back(std::move(participant));
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
    if (!arguments_.json_file.empty()) {
      write_file(arguments_.json_file, to_json(findings_));
      fmt::print("\nfigures: {}\n", arguments_.json_file);
    }
    if (!arguments_.html_file.empty()) {
      write_file(arguments_.html_file, to_html(findings_));
      fmt::print("{}picture: {}\n", arguments_.json_file.empty() ? "\n" : "", arguments_.html_file);
    }
  }

  const BenchArguments& arguments_;
  Placement placement_;
  std::vector<std::string> peers_;
  Findings findings_;
  Progress progress_;
  Interrupts interrupts_;
  Listener listener_;
  std::vector<std::unique_ptr<Team>> teams_;
};

int run_bench(const BenchArguments& arguments, const std::string& command) {
  become_subreaper();
  int code = kExitFailure;
  try {
    code = Session(arguments, command).run();
  } catch (const Interrupted& interrupt) {
    fmt::print(stderr, "\nhocket bench: {}\n", interrupt.what());
    code = 128 + interrupt.signal();
  }
  kill_descendants();
  return code;
}

void add_options(CLI::App& bench, BenchArguments& arguments) {
  bench.add_option("collectives",
                   arguments.collectives,
                   "all_reduce (default), reduce, reduce_scatter, broadcast, all_gather, gather, "
                   "scatter, all_to_all, send, send_recv, barrier, or all");
  bench.add_option("-n,--ranks", arguments.ranks, "How many ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  bench.add_option("--min", arguments.min, "Smallest size in bytes (8, 64K, 16M)")
      ->capture_default_str();
  bench.add_option("--max", arguments.max, "Largest size")->capture_default_str();
  bench.add_option("--factor", arguments.factor, "From one size to the next")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  bench.add_option("--sizes", arguments.sizes, "These sizes instead: 8,1K,64M")->delimiter(',');
  bench.add_option("--dtype", arguments.dtypes, "Element types: float32,bfloat16")
      ->delimiter(',')
      ->capture_default_str();
  bench.add_option("--op", arguments.op, "How reductions reduce")->capture_default_str();
  bench.add_option("--memory", arguments.memories, "ordinary,symmetric")
      ->delimiter(',')
      ->capture_default_str();
  bench.add_flag(
      "--in-place{yes}", arguments.in_place, "Results over the inputs; =both: and apart");
  arguments.compare_option =
      bench
          .add_option(
              "--compare", arguments.compare, "Measure others too: openmpi,mpich; alone: all")
          ->delimiter(',')
          ->expected(0, 16);
  bench
      .add_option("--repeats", arguments.repeats, "Batches of each case, in turns with the others")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  bench.add_option("--min-time", arguments.batch_ms, "How long a batch lasts, in ms")
      ->capture_default_str()
      ->check(CLI::Range(1, 60000));
  bench.add_option("--timeout", arguments.timeout_s, "Give a library up after so many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  bench.add_option("--json", arguments.json_file, "Write the figures here");
  bench.add_option("--html", arguments.html_file, "Write a page with plots here");
}

}  // namespace

void add_bench(CLI::App& app, Action& chosen) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure collectives, beside other libraries, with plots");
  bench->footer(
      "Sizes are those of the larger of a rank's buffers. Results are checked before and after.\n"
      "Example: hocket bench all_reduce -n 2 --compare openmpi --html bench.html");
  auto arguments = std::make_shared<BenchArguments>();
  add_options(*bench, *arguments);
  bench->callback([&chosen, arguments] {
    chosen = [arguments] { return run_bench(*arguments, command_line()); };
  });
  CLI::App* worker = app.add_subcommand(kWorkerSubcommand, "A rank of hocket bench")->group("");
  worker->callback([&chosen] { chosen = [] { return run_worker(); }; });
}

}  // namespace hocket::cli
