// Two hosts whose lane goes through a bad network: at the start, while it stands, and at the end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fault_proxy.h"
#include "foundation/base/deadline.h"
#include "foundation/os/segment.h"
#include "foundation/os/sockets/socket.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "membership/control/kept_facts.h"
#include "membership/control/network.h"
#include "membership/control/succession.h"

namespace hocket::control {
namespace {

using base::Deadline;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Fault;
using testing::FaultProxy;

constexpr auto kPatience = seconds(50);

// Waits until `holds`; the test fails where that does not come.
void await(const char* what, const std::function<bool()>& holds) {
  const auto deadline = Deadline::in(kPatience);
  while (!holds() && !deadline.has_passed()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(holds()) << what;
}

// A host with one rank, in this process. A resource.
class Host {
 public:
  Host(int rank, os::Fd listener, NetworkOptions options) : rank_(rank), places_{rank, 1 - rank} {
    options.identity.rank = rank;
    options.identity.size = 2;
    options.identity.job = "lanes";
    options.hosts = {0, 1};
    options.places = places_;
    options.host_names = {"here", "there"};
    network_ = std::make_unique<Network>(std::move(options), std::move(listener));
  }
  std::string establish(Deadline deadline) { return network_->establish(deadline).text; }
  void start(CarrierHooks carrier = {}) {
    const HostShape shape{.ranks = 1, .remote = 1, .stripe_bytes = 1 << 20};
    auto segment = std::make_shared<os::Segment>(
        os::Segment::create_private(HostControl::segment_bytes(shape)));
    HostControl::format(*segment, shape);
    control_ = std::make_shared<HostControl>(segment, 0);
    control_->arrive(rank_);
    network_->start(control_, std::move(carrier));
    network_->notify();
  }
  // The state of the other host's rank, as known here.
  RankState other() const { return control_->liveness.state(1); }
  void leave() {
    control_->liveness.leave();
    network_->leave();
  }
  void end() { network_.reset(); }
  void notify() { network_->notify(); }
  // Lists a group of both ranks here, like the first rank that returns from a rebuild.
  std::unique_ptr<GroupControl> enlist(std::uint64_t id) {
    const int holders[] = {0, HostMemory::kNetwork};
    std::byte* memory =
        control_->memory.at(control_->memory.allocate(GroupControl::bytes(2), holders));
    GroupControl::format(memory, places_);
    GroupEntry* entry = Succession(*control_, memory, nullptr).enlist(id);
    return std::make_unique<GroupControl>(*control_, memory, rank_, places_, entry);
  }
  std::size_t forerunners(std::uint64_t id) const {
    return control_->groups.forerunners().of(id).size();
  }
  GroupEntry* find(std::uint64_t id) const { return control_->groups.find(id); }
  // Makes it send the news, to any listener.
  void tell(std::uint64_t id, GroupEntry::News news) {
    find(id)->news.fetch_or(news);
    notify();
    while (find(id)->news != 0) std::this_thread::yield();
  }
  void close(std::uint64_t id) { control_->memory.release(find(id)->block); }

 private:
  int rank_;
  std::vector<int> places_;
  std::unique_ptr<Network> network_;
  std::shared_ptr<HostControl> control_;
};

class LaneFaults : public ::testing::Test {
 protected:
  // Either host may call the other, through a proxy.
  explicit LaneFaults(Duration silence = seconds(30), const char* way = "127.0.0.2") {
    NetworkOptions options;
    options.identity.key = Key::generate();
    options.silence = silence;
    os::Fd listeners[] = {os::listen_tcp({.host = "127.0.0.1", .port = 0}),
                          os::listen_tcp({.host = "127.0.0.1", .port = 0})};
    for (const os::Fd& listener : listeners) {
      const int port = os::local_port(listener.get());
      const os::HostPort address{.host = way, .port = port};
      options.addresses.push_back(os::to_string(address));
      if (address.host != "127.0.0.1") {
        proxies_.push_back(std::make_unique<FaultProxy>(address.host, port));
      }
    }
    for (int rank = 0; rank < 2; ++rank) {
      hosts_.push_back(std::make_unique<Host>(rank, std::move(listeners[rank]), options));
    }
  }

  void set(Fault fault) {
    for (const auto& proxy : proxies_) proxy->set(fault);
  }
  int taken() const { return proxies_[0]->taken() + proxies_[1]->taken(); }
  // The errors that both report.
  std::vector<std::string> establish(Duration limit = kPatience) {
    std::vector<std::string> wrong(2);
    std::thread other([&] { wrong[1] = hosts_[1]->establish(Deadline::in(limit)); });
    wrong[0] = hosts_[0]->establish(Deadline::in(limit));
    other.join();
    return wrong;
  }
  void start() {
    EXPECT_EQ(establish(), std::vector<std::string>(2));
    for (const auto& host : hosts_) host->start();
    await_both();
  }
  void await_both() {
    await("both hear of each other", [&] {
      return hosts_[0]->other() == RankState::kAlive && hosts_[1]->other() == RankState::kAlive;
    });
  }
  void expect_a_clean_end_is_told() {
    hosts_[1]->leave();
    await("the end is told", [&] { return hosts_[0]->other() == RankState::kLeft; });
    hosts_[0]->leave();
  }

  std::vector<std::unique_ptr<FaultProxy>> proxies_;
  std::vector<std::unique_ptr<Host>> hosts_;
};
class QuickLaneFaults : public LaneFaults {
 protected:
  QuickLaneFaults() : LaneFaults(seconds(2)) {}
};
class StraightLanes : public LaneFaults {
 protected:
  StraightLanes() : LaneFaults(seconds(30), "127.0.0.1") {}
};

TEST_F(LaneFaults, ASlowWayOnlyTakesLonger) {
  set(Fault::kDelay);
  start();
  expect_a_clean_end_is_told();
}

TEST_F(LaneFaults, ADribblingWayOnlyTakesLonger) {
  set(Fault::kDribble);
  start();
  expect_a_clean_end_is_told();
}

// Facts that are repeated on request are left out if the queue is long.
TEST_F(LaneFaults, WhatIsToldOnceIsToldHoweverMuchWaitsToBeSent) {
  start();
  const auto ours = hosts_[0]->enlist(7);
  const auto theirs = hosts_[1]->enlist(7);
  const std::string text(Failure::kTextBytes, 'x');
  std::uint64_t call = 0;
  while (++call < kRecords) theirs->record(call, call, {}, false);
  for (int i = 0; i < 4; ++i) theirs->refuse(call++, engine::Kind::kBarrier, text);
  hosts_[0]->tell(7, GroupEntry::kAsked);
  await("the answer", [&] { return ours->finished_sequence(1) == call - 1; });
  const auto stop_the_way = [&] {
    set(Fault::kHalfOpen);
    for (int i = 0; i < 8000; ++i) hosts_[1]->tell(7, GroupEntry::kRefused);
  };
  stop_the_way();
  Succession(*theirs).come(1, kCame);
  hosts_[1]->tell(7, GroupEntry::kCome);
  set(Fault::kNone);
  await("who came is told", [&] { return Succession(*ours).has_come(1); });
  stop_the_way();
  hosts_[1]->leave();
  set(Fault::kNone);
  await("the end is told", [&] { return hosts_[0]->other() != RankState::kAlive; });
  EXPECT_EQ(hosts_[0]->other(), RankState::kLeft);
  hosts_[0]->leave();
}

TEST_F(LaneFaults, ADeadWayAtTheStartNamesBothEnds) {
  set(Fault::kHalfOpen);
  for (const std::string& wrong : establish(milliseconds(300))) {
    EXPECT_NE(wrong.find("rank 0 on here (127.0.0.2:"), std::string::npos) << wrong;
    EXPECT_NE(wrong.find("rank 1 on there (127.0.0.2:"), std::string::npos) << wrong;
  }
}

TEST_F(LaneFaults, AWayThatIsCutAtTheStartIsTriedAgain) {
  set(Fault::kRefuse);
  std::thread mender([&] {
    while (taken() < 3) std::this_thread::sleep_for(milliseconds(1));
    set(Fault::kNone);
  });
  start();
  mender.join();
  expect_a_clean_end_is_told();
}

TEST_F(LaneFaults, ACutLaneIsMadeAnew) {
  start();
  for (int i = 0; i < 3; ++i) {
    const int before = taken();
    for (const auto& proxy : proxies_) proxy->cut();
    await("called again",
          [&] { return taken() > before || hosts_[0]->other() != RankState::kAlive; });
  }
  expect_a_clean_end_is_told();
  EXPECT_EQ(hosts_[1]->other(), RankState::kLeft);
}

// A departure is reported whatever the network's thread does at the time, and however late its next
// turn comes.
class Leaving : public StraightLanes, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(AtMoments, Leaving, ::testing::Range(0, 300, 20));  // microseconds

TEST_P(Leaving, IsTold) {
  std::atomic<bool> looked{false};
  EXPECT_EQ(establish(), std::vector<std::string>(2));
  hosts_[0]->start();
  hosts_[1]->start({.pending = [] { return false; },
                    .progress =
                        [&] {
                          std::this_thread::sleep_for(milliseconds(2));
                          looked = true;
                          return false;
                        }});
  await_both();
  for (std::uint64_t id = 1; id < 40; ++id) hosts_[1]->enlist(id);
  hosts_[1]->notify();
  looked = false;
  while (!looked) {
  }
  std::this_thread::sleep_for(std::chrono::microseconds(GetParam()));
  hosts_[1]->leave();
  hosts_[1]->end();
  await("the end is known", [&] { return hosts_[0]->other() != RankState::kAlive; });
  EXPECT_EQ(hosts_[0]->other(), RankState::kLeft);
  hosts_[0]->leave();
}

TEST_F(StraightLanes, TheEndOfAProcessIsNoCut) {
  start();
  hosts_[0]->end();  // its listener, too, and without a word
  await("dead", [&] { return hosts_[1]->other() == RankState::kDied; });
}

// UCX may end a process that goes on with connections to dead ranks. So the carrier is given up
// once no other rank lives.
TEST_F(StraightLanes, TheCarrierIsGivenUpOnceNobodyElseLives) {
  std::atomic<bool> alive{true};
  std::atomic<int> asked{0};
  std::atomic<int> moved_after{0};
  EXPECT_EQ(establish(), std::vector<std::string>(2));
  hosts_[0]->start();
  hosts_[1]->start({.pending = [] { return true; },
                    .progress =
                        [&] {
                          if (asked > 1) ++moved_after;
                          return false;
                        },
                    .give_up =
                        [&] {
                          EXPECT_FALSE(alive);
                          return ++asked > 1;  // somebody is at work in it, at first
                        }});
  await_both();
  alive = false;
  hosts_[0]->end();
  await("given up", [&] {
    hosts_[1]->notify();
    return asked == 2;
  });
  for (int i = 0; i < 20; ++i) {
    hosts_[1]->notify();
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(moved_after, 0);
  hosts_[1]->leave();
}

TEST_F(StraightLanes, WhatWasSaidOfAGroupBeforeItWasListedIsKnownOnceItIs) {
  constexpr std::uint64_t kCalls = 100;
  start();
  const auto theirs = hosts_[1]->enlist(7);
  for (std::uint64_t call = 1; call <= kCalls; ++call) {
    theirs->record(call, call, {.kind = engine::Kind::kBarrier}, false);
    theirs->finish(call, true);
  }
  theirs->refuse(kCalls + 1, engine::Kind::kBroadcast, "no such root");
  theirs->fail({.reporter = 1, .culprit = 1, .text = "enough"});
  Succession(*theirs).come(1, kImpatient);
  hosts_[1]->leave();
  await("the end is told", [&] { return hosts_[0]->other() == RankState::kLeft; });
  EXPECT_EQ(hosts_[0]->enlist(8)->last_sequence(1), 0) << "it is another group's";
  const auto ours = hosts_[0]->enlist(7);
  EXPECT_EQ(ours->finished_sequence(1), kCalls + 1);
  ASSERT_TRUE(ours->last(1));
  EXPECT_TRUE(ours->last(1)->refused);
  ASSERT_TRUE(ours->find(1, kCalls));
  EXPECT_EQ(ours->find(1, kCalls)->fingerprint, kCalls);
  ASSERT_TRUE(ours->refusal(1, kCalls + 1));
  EXPECT_EQ(ours->refusal(1, kCalls + 1)->reason, "no such root");
  ASSERT_TRUE(ours->failed());
  EXPECT_EQ(ours->failure().text, "enough");
  EXPECT_EQ(Succession(*ours).how(1), kCame | kImpatient);
  hosts_[0]->leave();
}

// A rank that comes back from a rebuild after the others have rebuilt once more, without it.
TEST_F(StraightLanes, WhatWasDecidedInAGroupBeforeItWasListedIsKnownOnceItIs) {
  start();
  const auto theirs = hosts_[1]->enlist(7);
  Succession words(*theirs);
  words.come(1, kImpatient | kAlone);
  await("host 0 has no use for it", [&] {
    hosts_[1]->notify();
    return words.is_decided() && !words.owes_outcome();
  });
  hosts_[1]->close(7);
  await("taken off", [&] {
    hosts_[1]->notify();
    return hosts_[1]->find(7) == nullptr;
  });
  const auto ours = hosts_[0]->enlist(7);
  const Members only_theirs{false, true};
  EXPECT_EQ(Succession(*ours).decided(), only_theirs);
  hosts_[0]->close(7);
  await("taken off", [&] {
    hosts_[0]->notify();
    return hosts_[0]->find(7) == nullptr;
  });
  for (const auto& host : hosts_) host->leave();
}

// Last words of many groups come at a time, and facts about future groups would have no room.
TEST_F(StraightLanes, LastWordsOfAGroupThatIsGoneAreNotKeptForOneToCome) {
  constexpr std::uint64_t kEnd = 301;
  start();
  for (std::uint64_t id = 101; id < kEnd; id += 2) {
    for (const auto& host : hosts_) host->enlist(id);
    for (const int rank : {1, 0}) {
      hosts_[rank]->close(id);
      await("taken off", [&] {
        hosts_[rank]->notify();
        return hosts_[rank]->find(id) == nullptr;
      });
    }
  }
  hosts_[1]->enlist(7);
  hosts_[1]->leave();  // says it all once more
  await("the end is told", [&] { return hosts_[0]->other() == RankState::kLeft; });
  EXPECT_EQ(hosts_[0]->forerunners(7), 1);
  for (std::uint64_t id = 101; id < kEnd; id += 2) EXPECT_EQ(hosts_[0]->forerunners(id), 0) << id;
  hosts_[0]->leave();
}

// Otherwise a rank that calls just then would blame the rank that has left.
TEST_F(StraightLanes, WhatEndedAGroupIsKnownBeforeThatItsRankHasLeft) {
  start();
  const auto theirs = hosts_[1]->enlist(7);
  const auto ours = hosts_[0]->enlist(7);
  theirs->fail({.cause = Cause::kDied, .reporter = 1, .culprit = 1, .text = "enough"});
  std::thread leaver([&] { hosts_[1]->leave(); });
  while (hosts_[0]->other() != RankState::kLeft) {
  }
  EXPECT_TRUE(ours->failed());
  leaver.join();
  hosts_[0]->leave();
}

TEST_F(QuickLaneFaults, ASilentWayIsALossOnBothHosts) {
  start();
  set(Fault::kHalfOpen);
  for (const auto& host : hosts_) {
    await("silent", [&] { return host->other() == RankState::kSilent; });
  }
  hosts_[0]->leave();  // in time, though nobody hears of it
}

TEST_F(QuickLaneFaults, AWayThatDropsOneDirectionIsALossOnBothHosts) {
  start();
  set(Fault::kDropFromServer);
  await("silent", [&] { return hosts_[1]->other() == RankState::kSilent; });
  await("lost", [&] { return hosts_[0]->other() > RankState::kAlive; });
}

TEST_F(LaneFaults, AShortSilenceIsNone) {
  start();
  set(Fault::kHalfOpen);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(hosts_[0]->other(), RankState::kAlive);
  EXPECT_EQ(hosts_[1]->other(), RankState::kAlive);
  set(Fault::kNone);
  expect_a_clean_end_is_told();
}

// The ways of messages are each rank's own, the lanes the speaker's.
TEST(LaneNews, WhoSpeaksTellsWhomAHostMateCannotReachAnyMore) {
  NetworkOptions options;
  options.identity.key = Key::generate();
  options.identity.size = 3;
  options.identity.job = "lanes";
  options.silence = seconds(30);
  options.hosts = {0, 0, 1};
  options.host_names = {"here", "here", "there"};
  std::vector<os::Fd> listeners;
  for (int rank = 0; rank < 3; ++rank) {
    listeners.push_back(os::listen_tcp({.host = "127.0.0.1", .port = 0}));
    options.addresses.push_back(
        os::to_string(os::HostPort{"127.0.0.1", os::local_port(listeners.back().get())}));
  }
  const auto make_segment = [](const HostShape& shape) {
    auto segment = std::make_shared<os::Segment>(
        os::Segment::create_private(HostControl::segment_bytes(shape)));
    HostControl::format(*segment, shape);
    return segment;
  };
  const auto here = make_segment({.ranks = 2, .remote = 1, .stripe_bytes = 1 << 20});
  const auto there = make_segment({.ranks = 1, .remote = 2, .stripe_bytes = 1 << 20});
  std::vector<std::unique_ptr<Network>> networks;
  std::vector<std::shared_ptr<HostControl>> controls;
  for (int rank = 0; rank < 3; ++rank) {
    options.identity.rank = rank;
    options.places = rank == 2 ? std::vector<int>{1, 2, 0} : std::vector<int>{0, 1, 2};
    networks.push_back(
        std::make_unique<Network>(options, std::move(listeners[static_cast<std::size_t>(rank)])));
    controls.push_back(std::make_shared<HostControl>(rank == 2 ? there : here, rank % 2));
  }
  std::thread other([&] { EXPECT_EQ(networks[2]->establish(Deadline::in(kPatience)).text, ""); });
  EXPECT_EQ(networks[0]->establish(Deadline::in(kPatience)).text, "");
  other.join();
  for (int rank = 0; rank < 3; ++rank) controls[static_cast<std::size_t>(rank)]->arrive(rank);
  const auto once = [told = false]() mutable {
    return std::exchange(told, true) ? std::vector<int>{} : std::vector<int>{2};
  };
  networks[0]->start(controls[0], {});
  networks[1]->start(controls[1], {.take_broken = once});
  networks[2]->start(controls[2], {});
  await("it is known here", [&] { return controls[0]->liveness.state(2) == RankState::kCut; });
  await("it is known there", [&] { return controls[2]->liveness.state(2) == RankState::kCut; });
  EXPECT_EQ(controls[2]->liveness.state(1), RankState::kAlive);
  networks.clear();
}

}  // namespace
}  // namespace hocket::control
