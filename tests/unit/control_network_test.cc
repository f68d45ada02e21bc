// What the network's thread does about what carries messages between hosts.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "control/network.h"
#include "os/socket.h"

namespace hocket::control {
namespace {

// How many of this process's epolls a descriptor is in.
int epolls_of(int fd) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    std::string word;
    while (info >> word) {
      int watched = -1;
      if (word == "tfd:" && info >> watched && watched == fd) ++count;
    }
  }
  return count;
}

void until(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << "it does not come";
    std::this_thread::yield();
  }
}

std::shared_ptr<os::Segment> segment_of_one() {
  const HostShape shape{.ranks = 1, .stripe_bytes = 4096};
  auto segment =
      std::make_shared<os::Segment>(os::Segment::create_private(HostControl::segment_bytes(shape)));
  HostControl::format(*segment, shape);
  return segment;
}

// Each packet pays for an epoll that its descriptor is in: only while somebody sleeps.
TEST(Network, WatchesTheCarrierOnlyWhileItIsArmed) {
  NetworkOptions options;
  options.identity.size = 1;
  options.trust_network = true;
  options.hosts = {0};
  options.places = {0};
  options.addresses = {"127.0.0.1:0"};
  options.host_names = {"here"};
  options.silence = std::chrono::seconds(3);
  const os::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<bool> has_come{false};
  const auto host = std::make_shared<HostControl>(segment_of_one(), 0);
  Network network(options, os::listen_tcp({.host = "127.0.0.1", .port = 0}));
  network.start(host, {.event_fd = event.get(), .arm = [&] { return !has_come.load(); }});
  EXPECT_EQ(epolls_of(event.get()), 0);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(network.arm());
    EXPECT_TRUE(network.arm());  // by another thread
    EXPECT_EQ(epolls_of(event.get()), 1);
    // Who sleeps is woken by what comes, which is not looked at any more from then on.
    const std::uint32_t ticket = host->before_sleep();
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    until([&] { return epolls_of(event.get()) == 0; });
    until([&] { return host->before_sleep() != ticket; });
    std::uint64_t came = 0;
    ASSERT_EQ(::read(event.get(), &came, sizeof(came)), ssize_t{sizeof(came)});
  }
  has_come = true;
  EXPECT_FALSE(network.arm());
  EXPECT_EQ(epolls_of(event.get()), 0);
}

}  // namespace
}  // namespace hocket::control
