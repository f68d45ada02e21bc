// Joining by the key-value space of a launcher's process manager: PMI 1, with a small manager of
// our own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hocket/error.h"
#include "membership/rendezvous/launchers/launcher_space.h"
#include "rendezvous_stores.h"

namespace hocket::rendezvous {
namespace {

using hocket::testing::in_threads;
using hocket::testing::message_of;

// As Hydra's proxy: a thread for each rank's socket.
class Manager {
 public:
  explicit Manager(int size, std::string strange_answer = {})
      : size_(size), strange_(std::move(strange_answer)) {
    for (int rank = 0; rank < size; ++rank) {
      std::array<int, 2> pair{};
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) != 0) throw SystemError("pair", errno);
      ends_.push_back(pair[0]);
      threads_.emplace_back([this, fd = pair[1]] { serve(fd); });
    }
  }
  ~Manager() {
    for (const int end : ends_) ::close(end);
    for (auto& thread : threads_) thread.join();
  }
  int end(int rank) const { return ends_[static_cast<std::size_t>(rank)]; }

 private:
  void serve(int fd) {
    std::string line;
    for (char next = 0; ::read(fd, &next, 1) == 1;) {
      if (next != '\n') {
        line += next;
        continue;
      }
      const std::string reply = (strange_.empty() ? answer(line) : strange_) + "\n";
      if (::write(fd, reply.data(), reply.size()) < 0) break;
      line.clear();
    }
    ::close(fd);
  }

  static std::string field(const std::string& line, const std::string& name) {
    const auto at = line.find(name + "=");
    if (at == std::string::npos) return {};
    const auto first = at + name.size() + 1;
    return line.substr(first, line.find(' ', first) - first);
  }

  std::string answer(const std::string& line) {
    const std::string cmd = field(line, "cmd");
    std::unique_lock lock(mutex_);
    if (cmd == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
    if (cmd == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_7_0";
    if (cmd == "put") {
      EXPECT_EQ(field(line, "kvsname"), "kvs_7_0");
      EXPECT_LE(field(line, "key").size(), 60U);
      EXPECT_LE(field(line, "value").size(), 1000U);
      values_[field(line, "key")] = field(line, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    if (cmd == "get") {
      const auto found = values_.find(field(line, "key"));
      if (found == values_.end()) return "cmd=get_result rc=-1 msg=key_not_found";
      return "cmd=get_result rc=0 msg=success value=" + found->second;
    }
    const int round = arrived_++ / size_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return arrived_ >= (round + 1) * size_; });
    return "cmd=barrier_out rc=0";
  }

  int size_;
  std::string strange_;
  std::vector<int> ends_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  int arrived_ = 0;
};

// The environment is the process's, so that ranks that are threads open their spaces in turn.
std::unique_ptr<Bootstrap> join(const Manager& manager, int rank, int size) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  ::setenv("PMI_FD", std::to_string(manager.end(rank)).c_str(), 1);
  auto space = open_pmi_space();
  ::unsetenv("PMI_FD");
  return make_space_bootstrap(std::move(space), {.rank = rank, .size = size});
}

TEST(PmiBootstrap, BroadcastsAndFolds) {
  constexpr int kRanks = 3;
  const Manager manager(kRanks);
  in_threads(kRanks, [&](int rank) {
    const auto bootstrap = join(manager, rank, kRanks);
    for (int round = 0; round < 2; ++round) {
      std::vector<std::int64_t> values{rank + round, -5 * rank};
      bootstrap->all_reduce(values, Bootstrap::Fold::kSum);
      EXPECT_EQ(values, (std::vector<std::int64_t>{3 + 3 * round, -15}));
      bootstrap->all_reduce(values = {rank + 7}, Bootstrap::Fold::kMin);
      EXPECT_EQ(values, (std::vector<std::int64_t>{7}));
      // Longer than one value may be.
      std::vector<std::byte> bytes(1234);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank + round));
      }
      bootstrap->broadcast(bytes, 2);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(bytes[i], static_cast<std::byte>(i * 7 + 2 + static_cast<std::size_t>(round)));
      }
    }
  });
}

TEST(PmiBootstrap, SaysWhatTheManagerAnswered) {
  for (const char* answer :
       {"nonsense", "cmd=response_to_init rc=-1", "cmd=response_to_init=3 rc"}) {
    const Manager manager(1, answer);
    const std::string message = message_of([&] { join(manager, 0, 1); });
    EXPECT_NE(message.find(answer), std::string::npos) << message;
    EXPECT_NE(message.find("HOCKET_STORE"), std::string::npos) << message;
  }
}

TEST(PmiBootstrap, SaysThatTheManagerHasGone) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
  ::close(pair[1]);
  ::setenv("PMI_FD", std::to_string(pair[0]).c_str(), 1);
  const std::string message = message_of([] { open_pmi_space(); });
  ::unsetenv("PMI_FD");
  ::close(pair[0]);
  EXPECT_NE(message.find("PMI_FD"), std::string::npos) << message;
}

TEST(PmiBootstrap, IsNotThereWithoutALauncher) { EXPECT_EQ(open_pmi_space(), nullptr); }

}  // namespace
}  // namespace hocket::rendezvous
