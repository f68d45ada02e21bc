// Memory that a client costs the store's server, which runs in a separate process.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "hocket/store.h"
#include "rendezvous_stores.h"

namespace hocket {
namespace {

using testing::client_of;
using testing::in_threads;

constexpr int kFew = 50;
constexpr int kMany = 450;
constexpr std::size_t kKiB = 1024;

// A server in a separate process. A resource.
class ServerProcess {
 public:
  explicit ServerProcess(const StoreServer::Options& options) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const StoreServer server(options);
      const std::string line = server.address() + "\n";
      if (write(ends[1], line.data(), line.size()) < 0) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    for (char c; read(ends[0], &c, 1) == 1 && c != '\n';) address_ += c;
    close(ends[0]);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  const std::string& address() const { return address_; }
  // Its private memory, in bytes.
  std::size_t memory() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/smaps_rollup");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("Private_Dirty:")) continue;
      return static_cast<std::size_t>(std::atol(line.c_str() + 14)) << 10;
    }
    return 0;
  }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

// Bytes of the server's memory for each client that stays connected after its exchange.
std::size_t bytes_a_client(StoreServer::Options options) {
  options.key = Key::generate();
  options.job = "memory";
  options.size = kMany;
  const ServerProcess server(options);
  std::vector<std::shared_ptr<Store>> stores(kMany);
  const auto connect = [&](int first, int last) {
    constexpr int kThreads = 8;
    in_threads(kThreads, [&](int thread) {
      for (int rank = first + thread; rank < last; rank += kThreads) {
        auto& store = stores[static_cast<std::size_t>(rank)];
        store = connect_store({.address = server.address(),
                               .key = options.key,
                               .job = options.job,
                               .rank = rank,
                               .size = options.size,
                               .timeout = testing::kPatience});
        store->set("key", as_bytes("value"));
        EXPECT_EQ(to_string(store->get("key", testing::kPatience)), "value");
      }
    });
  };
  connect(0, kFew);
  const std::size_t before = server.memory();
  connect(kFew, kMany);
  const std::size_t after = server.memory();
  EXPECT_GT(before, 0U);
  return (after - std::min(after, before)) / (kMany - kFew);
}

class ClientMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 3 * kMany) GTEST_SKIP() << "too few descriptors: " << limit.rlim_cur;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  }
};

TEST_F(ClientMemory, IsSmallOnLoopback) {
  const std::size_t bytes = bytes_a_client({});
  RecordProperty("bytes", static_cast<int>(bytes));
  std::printf("a client on loopback: %zu bytes\n", bytes);
  EXPECT_LE(bytes, 8 * kKiB);
}

TEST_F(ClientMemory, IsBoundedWithTls) {
  const auto outside = testing::outside_address();
  if (!outside) GTEST_SKIP() << "this machine has no address but loopback";
  const std::size_t bytes = bytes_a_client({.address = *outside});
  RecordProperty("bytes", static_cast<int>(bytes));
  std::printf("a client with TLS: %zu bytes\n", bytes);
  EXPECT_LE(bytes, 96 * kKiB);
}

}  // namespace
}  // namespace hocket
