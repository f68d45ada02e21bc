// Ranks that read each other's arrays by the kernel: results, and arrays that are gone, or whose
// call has ended, while they are read.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <thread>

#include "collectives.h"
#include "ranks.h"
#include "refusing.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::map<std::string, std::string> kAlways{{"HOCKET_SINGLE_COPY", "always"}};
constexpr std::size_t kCount = std::size_t{1} << 17;  // of a rank's part: one piece of the kernel's

// A call in which others read this rank's array. `seed` is that of the array's values.
struct Reads {
  const char* name;
  void (*call)(Communicator& comm, int seed, std::optional<Duration> deadline);
};

// The value that rank `rank` gives to `to`; never 0.
int given(int rank, int to, int seed) { return 1 + seed + 31 * rank + 7 * to; }

// The array that a rank gives to all. Once its call has ended, the program owns the array and
// zeroes its pages at once. No later read by a peer belongs to the call.
class Given {
 public:
  Given(const Communicator& comm, int seed)
      : count_(kCount * static_cast<std::size_t>(comm.size())),
        array_(static_cast<int*>(mmap(nullptr,
                                      count_ * sizeof(int),
                                      PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS,
                                      -1,
                                      0))) {
    for (int to = 0; to < comm.size(); ++to) {
      std::fill_n(
          array_ + kCount * static_cast<std::size_t>(to), kCount, given(comm.rank(), to, seed));
    }
  }
  ~Given() {
    madvise(array_, count_ * sizeof(int), MADV_DONTNEED);
    std::this_thread::sleep_for(milliseconds(1));  // for who reads it yet
    munmap(array_, count_ * sizeof(int));
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  std::span<const int> get() const { return {array_, count_}; }

 private:
  std::size_t count_;
  int* array_;
};

void expect_all(std::span<const int> part, int value, const char* name) {
  for (const int each : part) {
    if (each != value) {
      throw std::logic_error(fmt::format("{} gave {}, expected {}", name, each, value));
    }
  }
}

std::span<const int> part(const std::vector<int>& all, int rank) {
  return std::span(all).subspan(kCount * static_cast<std::size_t>(rank), kCount);
}

int sum_for(const Communicator& comm, int to, int seed) {
  int sum = 0;
  for (int rank = 0; rank < comm.size(); ++rank) sum += given(rank, to, seed);
  return sum;
}

const Reads kReads[] = {
    {"all_to_all",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(in.get().size());
       comm.all_to_all(in.get(), std::span(out), {.deadline = deadline});
       for (int i = 0; i < comm.size(); ++i) {
         expect_all(part(out, i), given(i, comm.rank(), seed), "all_to_all");
       }
     }},
    {"scatter",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(kCount);
       comm.scatter(in.get(), std::span(out), {.root = 1, .deadline = deadline});
       expect_all(out, given(1, comm.rank(), seed), "scatter");
     }},
    {"reduce_scatter",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(kCount);
       comm.reduce_scatter(in.get(), std::span(out), {.deadline = deadline});
       expect_all(out, sum_for(comm, comm.rank(), seed), "reduce_scatter");
     }},
    {"all_reduce",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(in.get().size());
       comm.all_reduce(in.get(), std::span(out), {.deadline = deadline});
       for (int i = 0; i < comm.size(); ++i) {
         expect_all(part(out, i), sum_for(comm, i, seed), "all_reduce");
       }
     }},
    {"reduce",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(in.get().size());
       comm.reduce(in.get(), std::span(out), {.root = 0, .deadline = deadline});
       for (int i = 0; comm.rank() == 0 && i < comm.size(); ++i) {
         expect_all(part(out, i), sum_for(comm, i, seed), "reduce");
       }
     }},
    {"gather",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(comm.rank() == 0 ? in.get().size() : 0);
       comm.gather(in.get().first(kCount), std::span(out), {.root = 0, .deadline = deadline});
       for (int i = 0; comm.rank() == 0 && i < comm.size(); ++i) {
         expect_all(part(out, i), given(i, 0, seed), "gather");
       }
     }},
    {"send_recv",
     [](Communicator& comm, int seed, std::optional<Duration> deadline) {
       const Given in(comm, seed);
       std::vector<int> out(in.get().size());
       const int right = (comm.rank() + 1) % comm.size();
       const int left = (comm.rank() + comm.size() - 1) % comm.size();
       comm.send_recv(in.get(), right, std::span(out), left, {.deadline = deadline});
       for (int i = 0; i < comm.size(); ++i)
         expect_all(part(out, i), given(left, i, seed), "send_recv");
     }},
};

TEST(SingleCopy, ResultsAreRightWithAnySetting) {
  for (const char* own : {"auto", "always", "never"}) {
    for (const char* of_rank_1 : {"auto", "always", "never"}) {
      SCOPED_TRACE(fmt::format("{}, rank 1 {}", own, of_rank_1));
      run_job({.size = 3}, [&](Rank& rank) {
        setenv("HOCKET_SINGLE_COPY", rank.rank() == 1 ? of_rank_1 : own, 1);
        World world = rank.join();
        for (const Reads& each : kReads) each.call(world.communicator(), 5, {});
        const std::string wrong = wrong_results(world.communicator(), 2, 50'000);
        rank.check(wrong.empty(), wrong);
      });
    }
  }
}

// An owner that dies while it is read is called dead by all.
TEST(SingleCopy, AnOwnerDies) {
  for (const Reads& each : kReads) {
    SCOPED_TRACE(each.name);
    const auto ranks = run_job(
        {.size = 3, .environment = kAlways},
        [&](Rank& rank) {
          World world = rank.join();
          world.communicator().barrier();
          rank.mark(0);
          rank.attempt("call", [&] {
            for (int seed = 0;; ++seed) each.call(world.communicator(), seed, {});
          });
        },
        {1},
        [&](const Watcher& watcher) {
          watcher.await(0, 3);
          std::mt19937 random(std::random_device{}());
          std::this_thread::sleep_for(microseconds(random() % 30'000));
          watcher.signal(1, SIGKILL);
        });
    for (const std::size_t i : {0, 2}) {
      EXPECT_EQ(ranks[i].get("call"), "PeerDied") << ranks[i].get("call.message");
      EXPECT_EQ(ranks[i].number("call.peer"), 1);
    }
  }
}

// A rank whose deadline passes, or that aborts, writes to its array at once. No peer takes these
// bytes for data of the call: the others' calls end with right results, or with that error.
TEST(SingleCopy, ACallEndsWhileItsArrayIsRead) {
  for (const Reads& each : kReads) {
    SCOPED_TRACE(each.name);
    run_job({.size = 3, .environment = kAlways}, [&](Rank& rank) {
      World world = rank.join();
      std::mt19937 random(7);  // the same on all ranks
      for (int round = 0; round < 30; ++round) {
        Communicator group = world.communicator().duplicate();
        const microseconds allowed(50 + random() % 2'000);
        const bool aborts = round % 2 == 1;
        std::jthread aborter;
        if (aborts && rank.rank() == 1) {
          aborter = std::jthread([&] {
            std::this_thread::sleep_for(allowed);
            group.abort("a test");
          });
        }
        const Outcome outcome = outcome_of([&] {
          const bool is_short = !aborts && rank.rank() == 1;
          for (int seed = 0;; ++seed) {  // until one takes longer than is allowed
            const Duration left = allowed / (1 + seed / 20);
            each.call(group, seed, is_short ? std::optional(left) : std::nullopt);
          }
        });
        rank.check(outcome.kind == (aborts ? "Aborted" : "DeadlineExceeded"),
                   fmt::format("{} ended by {}: {}", each.name, outcome.kind, outcome.message));
        if (aborter.joinable()) aborter.join();
        group.close();
        world.communicator().barrier();
      }
    });
  }
}

TEST(SingleCopy, AKernelThatRefusesItToOneRankHasAllCopyTwice) {
  for (const char* call : {"process_vm_readv", "process_vm_writev"}) {
    for (const int error : {EPERM, ENOSYS}) {
      SCOPED_TRACE(call);
      run_job({.size = 3, .environment = kAlways}, [&](Rank& rank) {
        if (rank.rank() == 2) refusing::refuse(call, error);
        World world = rank.join();
        for (const Reads& each : kReads) each.call(world.communicator(), 5, {});
      });
    }
  }
}

// Memory that the process itself can access, but that the kernel gives to no other process
// (memfd_secret(2)).
class Secret {
 public:
  explicit Secret(std::size_t count) : bytes_(count * sizeof(int)) {
    const int fd = static_cast<int>(syscall(SYS_memfd_secret, 0));
    if (fd < 0) return;
    if (ftruncate(fd, static_cast<off_t>(bytes_)) == 0) {
      void* const at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (at != MAP_FAILED) array_ = static_cast<int*>(at);
    }
    close(fd);
  }
  ~Secret() {
    if (array_ != nullptr) munmap(array_, bytes_);
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  bool is_there() const { return array_ != nullptr; }
  std::span<int> get() const { return {array_, bytes_ / sizeof(int)}; }

 private:
  std::size_t bytes_;
  int* array_ = nullptr;
};

TEST(SingleCopy, MemoryThatTheKernelReachesForNobodyIsSentAllTheSame) {
  if (!Secret(1024).is_there()) GTEST_SKIP() << "this kernel has no memfd_secret";
  for (const auto& environment : {std::map<std::string, std::string>{}, kAlways}) {
    run_job({.size = 2, .environment = environment}, [](Rank& rank) {
      World world = rank.join();
      Communicator& comm = world.communicator();
      const int peer = 1 - comm.rank();
      for (const std::size_t count : {1024, 3000, 4096, 16'384, 200'000}) {
        const Secret in(2 * count), out(2 * count);
        rank.check(in.is_there() && out.is_there(), "no secret memory");
        for (int round = 0; round < 3; ++round) {
          std::fill_n(in.get().begin(), 2 * count, given(comm.rank(), peer, round));
          comm.send_recv(in.get().first(count), peer, out.get().first(count), peer);
          expect_all(out.get().first(count), given(peer, comm.rank(), round), "send_recv");
          comm.all_to_all(in.get(), out.get());
          expect_all(out.get().subspan(count * static_cast<std::size_t>(peer), count),
                     given(peer, comm.rank(), round),
                     "all_to_all");
        }
      }
    });
  }
}

// The kernel may refuse later. Then the call reports it, and a message is sent in the other way.
// The refusal proves that arrays were reached directly before.
void refuse_later(const char* call, const std::set<std::string_view>& named) {
  for (const Reads& each : kReads) {
    SCOPED_TRACE(std::string(call) + " in " + each.name);
    const auto ranks = run_job({.size = 2, .environment = kAlways}, [&](Rank& rank) {
      World world = rank.join();
      each.call(world.communicator(), 1, {});
      // Each end tests its own memory by the call that is refused. So only one rank is refused it.
      if (rank.rank() == 0) {
        world.communicator().barrier();
      } else {
        refusing::refuse(call, EPERM);
        world.communicator().barrier();
      }
      rank.attempt("call", [&] { each.call(world.communicator(), 2, {}); });
    });
    const auto names_it = [](const Result& rank) {
      return rank.get("call.message").find("HOCKET_SINGLE_COPY=never") != std::string::npos;
    };
    if (!named.contains(each.name)) {
      for (const Result& rank : ranks)
        EXPECT_EQ(rank.get("call"), "ok") << rank.get("call.message");
    } else {
      EXPECT_TRUE(names_it(ranks[1])) << ranks[1].get("call.message");
      EXPECT_TRUE(ranks[0].get("call") == "ok" || names_it(ranks[0]))
          << ranks[0].get("call.message");
    }
  }
}

// The root of the scatter, which no peer can read any more, exposes a copy. A peer of the gather
// writes.
TEST(SingleCopy, AKernelThatRefusesToReadLaterIsNamed) {
  refuse_later("process_vm_readv", {"all_to_all", "reduce_scatter", "all_reduce", "reduce"});
}
TEST(SingleCopy, AKernelThatRefusesToWriteLaterIsNamed) {
  refuse_later("process_vm_writev", {"scatter", "gather", "reduce"});
}

// An output that others write to. Once its call has ended, the program owns it, and fills it with
// something else. No later write by a peer may come.
class Filled {
 public:
  explicit Filled(std::size_t count) : values_(count) {}
  std::span<int> get() { return values_; }
  // Throws if a peer writes yet.
  void require_own() {
    std::ranges::fill(values_, -1);
    std::this_thread::sleep_for(milliseconds(1));
    expect_all(values_, -1, "a write after the call");
  }

 private:
  std::vector<int> values_;
};

struct Writes {
  const char* name;
  void (*call)(Communicator& comm, std::span<const int> in, std::span<int> out, Duration deadline);
};
const Writes kWrites[] = {
    {"gather",
     [](Communicator& comm, std::span<const int> in, std::span<int> out, Duration deadline) {
       comm.gather(in.first(kCount),
                   comm.rank() == 0 ? out : out.first(0),
                   {.root = 0, .deadline = deadline});
     }},
    {"scatter",
     [](Communicator& comm, std::span<const int> in, std::span<int> out, Duration deadline) {
       comm.scatter(in, out.first(kCount), {.root = 0, .deadline = deadline});
     }},
    {"reduce",
     [](Communicator& comm, std::span<const int> in, std::span<int> out, Duration deadline) {
       comm.reduce(in, out, {.root = 0, .deadline = deadline});
     }},
};

// The deadline of one rank passes while the others copy from and to its arrays.
TEST(SingleCopy, NoPeerWritesAfterACallHasEnded) {
  for (const Writes& each : kWrites) {
    SCOPED_TRACE(each.name);
    // A round ends when a deadline passes, which beside other work takes its time.
    const JobOptions options{.size = 3, .watchdog = seconds(150), .environment = kAlways};
    run_job(options, [&](Rank& rank) {
      World world = rank.join();
      std::mt19937 random(11);  // the same on all ranks
      const std::size_t count = kCount * 3;
      const std::vector<int> in(count, 1);
      Filled out(count);
      for (int round = 0; round < 24; ++round) {
        Communicator group = world.communicator().duplicate();
        const microseconds allowed(20 + random() % 1'500);
        const Outcome outcome = outcome_of([&] {
          for (int call = 0;; ++call) {
            const bool is_short = rank.rank() == round % 3 && call > 3;
            each.call(
                group, in, out.get(), is_short ? Duration(allowed) / (1 + call / 20) : kForever);
          }
        });
        rank.check(outcome.kind == "DeadlineExceeded",
                   fmt::format("{} ended by {}: {}", each.name, outcome.kind, outcome.message));
        out.require_own();
        group.close();
        world.communicator().barrier();
      }
    });
  }
}

}  // namespace
}  // namespace hocket::multiprocess
