// Measures the time from a rank's death until the other ranks learn of it.
//
//     failure_latency [-n RANKS] [--rounds N] [--gib 0,1,8] [--seed S] [--rebuild] [--hosts H]
//                     [--namespaces A,B,... --at ADDRESS] [--device cuda]
//
// A round is a separate job. Its ranks repeat one kind of call, and one of them (the victim) holds
// `--gib` GiB of memory. At a random point SIGKILL kills the victim. A sample is the time from just
// before the kill until a survivor has caught its PeerDied. All processes use the one clock of the
// machine.
//
// --rebuild      until the survivor has rebuilt the communicator and passed a barrier of it
// --hosts        the ranks act as if this machine were H hosts
// --namespaces   each host is a network namespace of that name (`ip netns`; needs root), connected
//                by the user; ADDRESS is the first one's
// --device cuda  the calls are on arrays in GPUs' memory, one GPU for each rank, and the ranks wait
//                for them (HOCKET_ENGINES selects the engine)
#include <fcntl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "call_streams.h"
#include "hocket/hocket.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

struct Options {
  int ranks = 4;
  int rounds = 50;
  std::vector<double> gib{0, 1, 8};
  unsigned seed = 1;
  bool rebuild = false;
  bool on_gpus = false;
  int hosts = 1;
  std::vector<std::string> namespaces;
  std::string at;
};

constexpr int kMaxRanks = 64;

// State that the processes of a round share.
struct Board {
  std::atomic<int> ready{0};
  std::array<std::atomic<std::int64_t>, kMaxRanks> heard_at{};  // ns; 0: not yet
  std::array<std::atomic<int>, kMaxRanks> signal{};
};

std::int64_t now_ns() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// Allocates memory in ordinary pages, and touches all of them.
void hold_memory(double gib) {
  const auto bytes = static_cast<std::size_t>(gib * (1 << 30));
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  constexpr std::size_t kPage = 4096;
  for (std::size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
}

struct Round {
  int ranks;
  int victim;
  double gib;
  CallStream kind;
  microseconds until_the_kill;
  std::string address;
  bool rebuild;
  bool on_gpus;
  int hosts;
  const std::vector<std::string>& namespaces;
  std::optional<hocket::Key> key;
};

// Moves this process into a network namespace. It runs before any code asks which host this is. UCX
// looks for interfaces in /sys, so /sys is mounted anew for the namespace.
void move_to(const std::string& name) {
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
    throw std::runtime_error("cannot enter the network namespace " + name);
  }
  close(fd);
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "none", MS_SLAVE | MS_REC, nullptr) != 0 ||
      umount2("/sys", MNT_DETACH) != 0 || mount(name.c_str(), "/sys", "sysfs", 0, nullptr) != 0) {
    throw std::runtime_error("cannot show the interfaces of the network namespace " + name);
  }
}

[[noreturn]] void be_rank(int rank, const Round& round, Board& board) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int host = rank * round.hosts / round.ranks;
  try {
    if (!round.namespaces.empty()) {
      move_to(round.namespaces[static_cast<std::size_t>(host)]);
    } else if (round.hosts > 1) {
      setenv("HOCKET_HOST", fmt::format("{}/", host).c_str(), 1);
    }
    if (rank == round.victim) hold_memory(round.gib);
    auto world = hocket::init(
        {.rank = rank, .size = round.ranks, .address = round.address, .key = round.key});
    try {
      if (round.on_gpus) {
        call_on_gpus(world.communicator(), round.kind, board.ready);
      } else {
        call_on_hosts(world.communicator(), round.kind, board.ready);
      }
    } catch (const hocket::PeerDied& error) {
      const auto at = static_cast<std::size_t>(rank);
      if (round.rebuild) {
        world.rebuild();
        world.communicator().barrier();
      }
      board.heard_at[at] = now_ns();
      board.signal[at] = error.signal();
      // If a rank ended at once, ranks that are still in the barrier would see its death.
      if (round.rebuild) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      _exit(error.rank() == round.victim ? 0 : 1);
    } catch (const hocket::Aborted&) {
      // Another survivor has called rebuild first, which ends this call with Aborted.
      if (!round.rebuild) throw;
      world.rebuild();
      world.communicator().barrier();
      board.heard_at[static_cast<std::size_t>(rank)] = now_ns();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      _exit(0);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  _exit(1);
}

struct Sample {
  double milliseconds;
  bool signal_known;
};

// Runs one round. Throws if a survivor learns of no failure, or of another one than the kill.
std::vector<Sample> run(const Round& round) {
  void* page =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  auto& board = *new (page) Board;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < round.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) be_rank(rank, round, board);
    pids.push_back(pid);
  }
  while (board.ready < round.ranks) std::this_thread::sleep_for(microseconds(200));
  std::this_thread::sleep_for(round.until_the_kill);
  const std::int64_t killed_at = now_ns();
  kill(pids[static_cast<std::size_t>(round.victim)], SIGKILL);
  std::vector<Sample> samples;
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    int status = 0;
    waitpid(pids[rank], &status, 0);
    if (static_cast<int>(rank) == round.victim) continue;
    if (status != 0) throw std::runtime_error(fmt::format("rank {} did not hear of it", rank));
    samples.push_back({.milliseconds = static_cast<double>(board.heard_at[rank] - killed_at) / 1e6,
                       .signal_known = board.signal[rank] == SIGKILL});
  }
  munmap(page, sizeof(Board));
  return samples;
}

void print(const std::string& name, std::vector<Sample> samples) {
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return a.milliseconds < b.milliseconds;
  });
  const std::size_t count = samples.size();
  const auto known = std::count_if(
      samples.begin(), samples.end(), [](const Sample& sample) { return sample.signal_known; });
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.0f} % |\n",
             name,
             count,
             samples[count / 2].milliseconds,
             samples[std::min(count - 1, count * 99 / 100)].milliseconds,
             samples.back().milliseconds,
             100.0 * static_cast<double>(known) / static_cast<double>(count));
  std::fflush(stdout);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found;
  std::stringstream list(text);
  for (std::string word; std::getline(list, word, ',');) found.push_back(word);
  return found;
}

Options parse(int argc, char** argv) {
  Options options;
  constexpr std::array<option, 9> kLong{{{"rounds", required_argument, nullptr, 'r'},
                                         {"gib", required_argument, nullptr, 'g'},
                                         {"seed", required_argument, nullptr, 's'},
                                         {"rebuild", no_argument, nullptr, 'b'},
                                         {"hosts", required_argument, nullptr, 'h'},
                                         {"namespaces", required_argument, nullptr, 'm'},
                                         {"at", required_argument, nullptr, 'a'},
                                         {"device", required_argument, nullptr, 'd'},
                                         {}}};
  for (int got; (got = getopt_long(argc, argv, "n:", kLong.data(), nullptr)) != -1;) {
    if (got == 'n') options.ranks = std::atoi(optarg);
    if (got == 'r') options.rounds = std::atoi(optarg);
    if (got == 'b') options.rebuild = true;
    if (got == 'h') options.hosts = std::atoi(optarg);
    if (got == 's') options.seed = static_cast<unsigned>(std::atoi(optarg));
    if (got == 'g') {
      options.gib.clear();
      for (const auto& word : words(optarg)) options.gib.push_back(std::atof(word.c_str()));
    }
    if (got == 'm') {
      options.namespaces = words(optarg);
      options.hosts = static_cast<int>(options.namespaces.size());
    }
    if (got == 'a') options.at = optarg;
    if (got == 'd') options.on_gpus = std::string_view(optarg) == "cuda";
    if (got == '?') std::exit(2);
  }
  if (options.ranks < 2 || options.ranks > kMaxRanks || options.rounds < 1) {
    std::fprintf(stderr, "expected 2 to %d ranks, and a round at least\n", kMaxRanks);
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  utsname names{};
  uname(&names);
  fmt::print("{} ranks on {} processors, Linux {}, {} rounds a row, seed {}\n\n",
             options.ranks,
             std::thread::hardware_concurrency(),
             names.release,
             options.rounds,
             options.seed);
  fmt::print(
      "| resident, in a stream of | samples | median ms | p99 ms | max ms | signal told |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  std::mt19937 random(options.seed);
  const auto below = [&random](int end) {
    return std::uniform_int_distribution(0, end - 1)(random);
  };
  std::optional<hocket::Key> key;
  if (!options.at.empty()) key = hocket::Key::generate();
  int job = 0;
  for (const double gib : options.gib) {
    std::array<std::vector<Sample>, kCallStreams.size()> by_stream;
    std::vector<Sample> all;
    for (int i = 0; i < options.rounds; ++i) {
      const std::size_t kind = static_cast<std::size_t>(i) % kCallStreams.size();
      const Round round{.ranks = options.ranks,
                        .victim = below(options.ranks),
                        .gib = gib,
                        .kind = kCallStreams[kind],
                        .until_the_kill = microseconds(below(20'000)),
                        .address = options.at.empty()
                                       ? fmt::format("unix:hocket-latency-{}-{}", getpid(), job)
                                       : fmt::format("{}:{}", options.at, 20'000 + job % 10'000),
                        .rebuild = options.rebuild,
                        .on_gpus = options.on_gpus,
                        .hosts = options.hosts,
                        .namespaces = options.namespaces,
                        .key = key};
      ++job;
      for (const Sample& sample : run(round)) {
        by_stream[kind].push_back(sample);
        all.push_back(sample);
      }
    }
    for (std::size_t kind = 0; kind < kCallStreams.size(); ++kind) {
      if (!by_stream[kind].empty()) {
        print(fmt::format("{} GiB, {}", gib, kCallStreamNames[kind]), by_stream[kind]);
      }
    }
    print(fmt::format("**{} GiB, all**", gib), all);
  }
}
