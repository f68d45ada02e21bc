// The network's thread and the carrier of messages between hosts.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "foundation/os/sockets/socket.h"
#include "membership/control/group.h"
#include "membership/control/network.h"

namespace hocket::control {
namespace {

// Number of this process's epolls that contain a descriptor.
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

std::shared_ptr<os::Segment> segment(HostShape shape) {
  shape.stripe_bytes = 1 << 20;
  auto made =
      std::make_shared<os::Segment>(os::Segment::create_private(HostControl::segment_bytes(shape)));
  HostControl::format(*made, shape);
  return made;
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
  const auto host = std::make_shared<HostControl>(segment({.ranks = 1}), 0);
  Network network(options, os::listen_tcp({.host = "127.0.0.1", .port = 0}));
  network.start(host, {.event_fd = event.get(), .arm = [&] { return !has_come.load(); }});
  EXPECT_EQ(epolls_of(event.get()), 0);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(network.arm());
    EXPECT_TRUE(network.arm());  // by another thread
    EXPECT_EQ(epolls_of(event.get()), 1);
    // A sleeper is woken by the arrival, and the descriptor is not watched from then on.
    const std::uint32_t ticket = host->doorbells.before_sleep();
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    until([&] { return epolls_of(event.get()) == 0; });
    until([&] { return host->doorbells.before_sleep() != ticket; });
    std::uint64_t came = 0;
    ASSERT_EQ(::read(event.get(), &came, sizeof(came)), ssize_t{sizeof(came)});
  }
  has_come = true;
  EXPECT_FALSE(network.arm());
  EXPECT_EQ(epolls_of(event.get()), 0);
}

// One of two hosts, of a rank each, with its network and a group of both.
class Host {
 public:
  static constexpr std::uint64_t kGroup = 7;

  Host(int rank, os::Fd listener, const std::vector<std::string>& addresses)
      : rank_(rank), network_(options(rank, addresses), std::move(listener)) {
    control_ = std::make_shared<HostControl>(segment({.ranks = 1, .remote = 1}), 0);
    control_->arrive(rank);
    const int holders[] = {0, HostMemory::kNetwork};
    block_ = control_->memory.allocate(GroupControl::bytes(2), holders);
    GroupControl::format(control_->memory.at(block_), members());
    control_->groups.enlist({.id = kGroup, .block = block_, .size = 2});
  }
  Network& network() { return network_; }
  HostControl& control() { return *control_; }
  void start() { network_.start(control_, {}); }
  // Without a word to the network where `entry` is null.
  GroupControl group(GroupEntry* entry = nullptr) {
    return GroupControl(*control_, control_->memory.at(block_), rank_, members(), entry);
  }
  GroupEntry* entry() { return control_->groups.find(kGroup); }
  void close_group() {
    control_->memory.release(block_);
    control_->doorbells.ring_network();
    network_.notify();
  }

 private:
  static NetworkOptions options(int rank, const std::vector<std::string>& addresses) {
    NetworkOptions options;
    options.identity.rank = rank;
    options.identity.size = 2;
    options.trust_network = true;
    options.hosts = {0, 1};
    options.places = {rank, 1 - rank};
    options.addresses = addresses;
    options.host_names = {"one", "other"};
    options.silence = std::chrono::seconds(3);
    return options;
  }
  // The place of each on this host.
  std::span<const int> members() const {
    static constexpr int kPlaces[2][2] = {{0, 1}, {1, 0}};
    return kPlaces[rank_];
  }

  int rank_;
  Network network_;
  std::shared_ptr<HostControl> control_;
  std::uint64_t block_ = 0;
};

// All pending facts about a group are sent. Its last rank here may close it, and its network may
// remove it, between a look at the word for news and the news.
TEST(Network, WhatEndedAGroupIsToldWithTheLastOfIt) {
  std::vector<os::Fd> listeners;
  std::vector<std::string> addresses;
  for (int i = 0; i < 2; ++i) {
    listeners.push_back(os::listen_tcp({.host = "127.0.0.1", .port = 0}));
    addresses.push_back("127.0.0.1:" + std::to_string(os::local_port(listeners[i].get())));
  }
  Host one(0, std::move(listeners[0]), addresses);
  Host other(1, std::move(listeners[1]), addresses);
  const auto deadline = base::Deadline::in(std::chrono::seconds(30));
  std::thread establishes([&] { EXPECT_EQ(other.network().establish(deadline).text, ""); });
  EXPECT_EQ(one.network().establish(deadline).text, "");
  establishes.join();
  one.start();
  other.start();
  until([&] { return other.control().liveness.state(1) == RankState::kAlive; });
  one.group().record(1, 5, {.kind = engine::Kind::kBarrier});
  one.group().fail({.cause = Cause::kAbortCalled, .reporter = 0, .culprit = 0, .text = "enough"});
  one.close_group();
  until([&] { return one.entry() == nullptr; });
  GroupControl there = other.group(other.entry());
  until([&] { return there.failed(); });
  EXPECT_EQ(there.failure().text, "enough");
  EXPECT_EQ(there.last_sequence(0), 1U);
}

// Rank 1 leaves because rank 2 of its host has died. The death is held back until the status of the
// process is known, and the departure with it.
TEST(Network, ADeathIsToldBeforeTheEndsThatFollowIt) {
  std::vector<std::string> addresses(3, "127.0.0.1:1");
  const auto network_of = [&](int rank, std::vector<int> places) {
    NetworkOptions options;
    options.identity.rank = rank;
    options.identity.size = 3;
    options.trust_network = true;
    options.hosts = {0, 1, 1};
    options.places = std::move(places);
    options.host_names = {"one", "other", "other"};
    options.silence = std::chrono::seconds(3);
    return options;
  };
  os::Fd listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  os::Fd other_listener = os::listen_tcp({.host = "127.0.0.1", .port = 0});
  addresses[0] = "127.0.0.1:" + std::to_string(os::local_port(listener.get()));
  addresses[1] = "127.0.0.1:" + std::to_string(os::local_port(other_listener.get()));
  NetworkOptions options = network_of(0, {0, 1, 2});
  NetworkOptions other_options = network_of(1, {2, 0, 1});
  options.addresses = other_options.addresses = addresses;
  const auto one = std::make_shared<HostControl>(segment({.ranks = 1, .remote = 2}), 0);
  const auto memory = segment({.ranks = 2, .remote = 1});
  const auto other = std::make_shared<HostControl>(memory, 0);
  one->arrive(0);
  other->arrive(1);
  HostControl(memory, 1).arrive(2);
  Network network(options, std::move(listener));
  Network other_network(other_options, std::move(other_listener));
  const auto deadline = base::Deadline::in(std::chrono::seconds(30));
  std::thread establishes([&] { EXPECT_EQ(other_network.establish(deadline).text, ""); });
  EXPECT_EQ(network.establish(deadline).text, "");
  establishes.join();
  network.start(one, {});
  other_network.start(other, {});
  until([&] { return one->liveness.state(2) == RankState::kAlive; });

  other->liveness.record_death(1);
  other->liveness.leave();
  until([&] { return one->liveness.state(1) == RankState::kLeft; });
  EXPECT_EQ(one->liveness.state(2), RankState::kDied);
  EXPECT_LE(one->liveness.ended_at(2), one->liveness.ended_at(1));
}

}  // namespace
}  // namespace hocket::control
