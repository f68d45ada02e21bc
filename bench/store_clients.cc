// Measures a store under many clients. The given number of clients join, set a key, meet at a
// barrier and get a neighbour's key, each in a separate thread. The server is another process.
//
//     store_clients [CLIENTS [ADDRESS]]
//
// On 127.0.0.1, the default, clients prove the key by HMAC; on another address of this host they
// speak TLS. Needs two descriptors a client (`ulimit -n`). Prints the seconds from the first
// connection to the last answer, and the growth of the server's memory for each client.
#include <fmt/format.h>
#include <hocket/store.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "resident.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(120);

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Serves until the process is killed. Writes the address to the descriptor `out`.
[[noreturn]] void serve(const hocket::Key& key, const std::string& address, int clients, int out) {
  const auto count = static_cast<std::size_t>(clients);
  const hocket::StoreServer server({.address = address,
                                    .key = key,
                                    .job = "bench",
                                    .size = clients,
                                    .max_clients = count + 16,
                                    .max_strangers = count + 16,
                                    .stranger_timeout = kPatience});
  const std::string bound = server.address();
  if (::write(out, bound.data(), bound.size()) < 0) ::_exit(1);
  ::close(out);
  while (true) ::pause();
}

// Number of clients that connect at the same time. More would overflow the system's queue of
// connections (net.core.somaxconn). A client beyond the queue waits for a second until TCP tries
// again.
constexpr int kConnectors = 16;

// State that the threads of the clients share.
struct Run {
  hocket::StoreClientOptions options;
  pid_t server = 0;
  std::vector<std::shared_ptr<hocket::Store>> stores;
  std::latch joined;
  std::atomic<int> done{0};
  std::atomic<int> failed{0};
  std::atomic<long> resident_kib{0};

  explicit Run(int clients)
      : stores(static_cast<std::size_t>(clients)), joined(std::min(clients, kConnectors)) {}

  void fail(int rank, const std::exception& error) {
    if (failed++ == 0) fmt::print(stderr, "rank {}: {}\n", rank, error.what());
  }
  // Connects the clients `first`, first + kConnectors, ...
  void join(int first) {
    for (int rank = first; rank < options.size; rank += kConnectors) {
      try {
        hocket::StoreClientOptions own = options;
        own.rank = rank;
        auto& store = stores[static_cast<std::size_t>(rank)];
        store = hocket::connect_store(own);
        store->set(fmt::format("key/{}", rank), hocket::as_bytes(fmt::format("value of {}", rank)));
      } catch (const std::exception& error) {
        fail(rank, error);
      }
    }
    joined.count_down();
  }
  void meet(int rank) {
    joined.wait();
    const auto& store = stores[static_cast<std::size_t>(rank)];
    if (!store) return;
    try {
      store->barrier("all", options.size, rank, kPatience);
      const int next = (rank + 1) % options.size;
      const auto got = store->get(fmt::format("key/{}", next), kPatience);
      if (hocket::to_string(got) != fmt::format("value of {}", next)) ++failed;
      if (rank == 0) resident_kib = hocket::bench::resident_kib(server);
      ++done;
    } catch (const std::exception& error) {
      fail(rank, error);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int clients = argc > 1 ? std::stoi(argv[1]) : 10'000;
  const std::string address = argc > 2 ? argv[2] : "127.0.0.1";
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto key = hocket::Key::generate();
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return 1;
  const pid_t server = ::fork();
  if (server == 0) serve(key, address, clients, pipe_ends[1]);
  ::close(pipe_ends[1]);
  std::string bound(256, '\0');
  const auto length = ::read(pipe_ends[0], bound.data(), bound.size());
  if (length <= 0) return 1;
  bound.resize(static_cast<std::size_t>(length));

  Run run(clients);
  run.options = {
      .address = bound, .key = key, .job = "bench", .size = clients, .timeout = kPatience};
  run.server = server;
  const long before = hocket::bench::resident_kib(server);
  std::vector<std::thread> threads;  // started first, because their start is not the store's time
  for (int rank = 0; rank < clients; ++rank) {
    threads.emplace_back([&run, rank] { run.meet(rank); });
  }
  const auto begin = Clock::now();
  for (int i = 0; i < std::min(clients, kConnectors); ++i) {
    threads.emplace_back([&run, i] { run.join(i); });
  }
  run.joined.wait();
  const double joined = seconds_since(begin);
  while (run.done + run.failed < clients) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const double took = seconds_since(begin);
  for (auto& thread : threads) thread.join();
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  fmt::print(
      "{} clients on {}: joined in {:.2f} s, done in {:.2f} s, {:.1f} KiB a client, {} failed\n",
      clients,
      bound,
      joined,
      took,
      static_cast<double>(run.resident_kib - before) / clients,
      run.failed.load());
  return run.failed == 0 ? 0 : 1;
}
