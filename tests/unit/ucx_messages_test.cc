// Cancelled UCX messages, on both paths of long ones; see tests/conformance/messages_test.cc for
// the behaviour of every carrier.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engines/ucx/devices.h"
#include "engines/ucx/ucx_point_to_point.h"

namespace hocket::engines::ucx {
namespace {

using engine::Envelope;
using engine::MessageId;

constexpr std::size_t kBytes = std::size_t{3} << 20;
constexpr std::size_t kLong = std::size_t{64} << 20;  // more than sockets hold
constexpr auto kWatchdog = std::chrono::seconds(60);

using Bytes = std::vector<std::byte>;

Bytes filled(unsigned char value) { return Bytes(kBytes, std::byte{value}); }
Envelope envelope(int peer, std::uint64_t tag, std::size_t count = kBytes) {
  return {.peer = peer, .tag = tag, .dtype = DType::kUInt8, .count = count};
}

// Two ends in one process, each moved only when the test says so.
class UcxMessages : public testing::TestWithParam<Bulk> {
 protected:
  void SetUp() override {
    const FoundUcx found = UcxLibrary::find();
    if (!found.library) GTEST_SKIP() << found.why_not;
    std::vector<Bytes> addresses;
    for (int rank = 0; rank < 2; ++rank) {
      FabricOptions options{.bulk = GetParam()};
      options.fate = [this](int) { return fate_.load(); };
      fabrics_.push_back(std::make_shared<Fabric>(library_for(rank, found.library), options));
      addresses.push_back(fabrics_.back()->address());
    }
    for (int rank = 0; rank < 2; ++rank) {
      fabric(rank).meet(addresses);
      ends_.push_back(std::make_unique<UcxPointToPoint>(
          fabrics_[static_cast<std::size_t>(rank)],
          Members{.group = 3, .rank = rank, .world_ranks = {0, 1}}));
    }
    if (!testing::Test::HasFatalFailure()) get_acquainted();
  }
  void TearDown() override {
    ends_.clear();
    std::vector<std::jthread> threads;  // as each end needs the other to go in peace
    for (auto& fabric : fabrics_) {
      threads.emplace_back(
          [&fabric] { fabric->flush(base::Deadline::in(std::chrono::seconds(1))); });
    }
  }

  virtual void get_acquainted() { exchange(99); }
  // For tests with a UCX that does as it likes.
  virtual std::shared_ptr<const UcxLibrary> library_for(int,
                                                        std::shared_ptr<const UcxLibrary> found) {
    return found;
  }

  Fabric& fabric(int rank) { return *fabrics_[static_cast<std::size_t>(rank)]; }
  UcxPointToPoint& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
  MessageId send(std::uint64_t tag, const Bytes& bytes) {
    return end(0).send(envelope(1, tag), bytes);
  }
  MessageId recv(std::uint64_t tag, Bytes& bytes) { return end(1).recv(envelope(0, tag), bytes); }

  // Moves those ends until the condition holds.
  void until(std::initializer_list<int> moving, const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + kWatchdog;
    while (!condition()) {
      for (const int rank : moving) end(rank).progress();
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("nothing moves");
    }
  }
  // A message from 0 to 1 that nothing happens to.
  void exchange(std::uint64_t tag) {
    const Bytes out = filled(static_cast<unsigned char>(tag));
    Bytes in = filled(0);
    const MessageId receive = recv(tag, in);
    const MessageId sent = send(tag, out);
    bool came = false;
    bool left = false;
    until({0, 1}, [&] {
      came = came || end(1).test(receive, nullptr);
      left = left || end(0).test(sent, nullptr);
      return came && left;
    });
    EXPECT_EQ(in, out);
  }
  // Until the sockets are full and nothing goes on.
  void until_still(int rank) {
    constexpr auto kStill = std::chrono::milliseconds(500);
    auto moved = std::chrono::steady_clock::now();
    until({}, [&] {
      const auto now = std::chrono::steady_clock::now();
      if (end(rank).progress()) moved = now;
      return now - moved > kStill;
    });
  }
  // A long message is granted, and cancelled when the reader no longer moves.
  void never_finish() {
    const Bytes out(kLong, std::byte{7});
    Bytes in(kLong);
    const MessageId receive = end(1).recv(envelope(0, 1, kLong), in);
    const MessageId sent = end(0).send(envelope(1, 1, kLong), out);
    until_moved(1);
    until_moved(0);
    until_still(0);
    end(0).cancel(sent);
    end(1).cancel(receive);
  }
  // Until something comes to it.
  void until_moved(int rank) {
    bool moved = false;
    until({}, [&] { return moved = moved || end(rank).progress(); });
  }

  std::atomic<engine::Fate> fate_{engine::Fate::kHere};
  std::vector<std::shared_ptr<Fabric>> fabrics_;
  std::vector<std::unique_ptr<UcxPointToPoint>> ends_;
};

TEST_P(UcxMessages, AReceiveMayBeCalledOffAtAnyTime) {
  // From "nothing has come" over "granted" to "in the middle".
  for (int turns = 0; turns < 60; ++turns) {
    const Bytes out = filled(7);
    Bytes in = filled(0);
    const MessageId receive = recv(1, in);
    const MessageId sent = send(1, out);
    for (int i = 0; i < turns; ++i) end(i % 2).progress();
    // A call that still has something under way waits for it, and needs the other end for that.
    std::jthread other([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) fabric(0).progress();
    });
    end(1).cancel(receive);
    const Bytes then = in;
    other.request_stop();
    other.join();
    // Its sender finishes, or takes it back.
    until({0, 1}, [&, i = 0]() mutable { return ++i > 200; });
    std::jthread reader([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) fabric(1).progress();
    });
    if (!end(0).test(sent, nullptr)) end(0).cancel(sent);
    reader.request_stop();
    reader.join();
    EXPECT_EQ(in, then) << "written to after it was given back";
    exchange(2);
  }
}

TEST_P(UcxMessages, ASendMayBeCalledOffAtAnyTime) {
  for (int turns = 0; turns < 60; ++turns) {
    Bytes out = filled(7);
    Bytes in = filled(0);
    const MessageId sent = send(1, out);
    const MessageId receive = recv(1, in);
    for (int i = 0; i < turns; ++i) end(i % 2).progress();
    std::jthread other([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) fabric(1).progress();
    });
    end(0).cancel(sent);
    std::ranges::fill(out, std::byte{9});
    other.request_stop();
    other.join();
    until({0, 1}, [&, i = 0]() mutable { return ++i > 200; });
    // All of it, or not at all.
    if (end(1).test(receive, nullptr)) {
      EXPECT_EQ(in, filled(7));
    } else {
      end(1).cancel(receive);
    }
    EXPECT_EQ(std::ranges::count(in, std::byte{9}), 0) << "read after it was given back";
    exchange(2);
  }
}

// Ranks may send to a group before this rank has opened it.
TEST_P(UcxMessages, MessagesForGroupsThatAreNotOpenYetAreKept) {
  constexpr int kGroups = 10, kMessages = 16;
  constexpr std::size_t kEach = std::size_t{512} << 10;  // 80 MiB in all
  const auto make = [this](int rank, int group) {
    return std::make_unique<UcxPointToPoint>(
        fabrics_[static_cast<std::size_t>(rank)],
        Members{.group = 100 + static_cast<unsigned>(group), .rank = rank, .world_ranks = {0, 1}});
  };
  const auto bytes_of = [](int group, int message) {
    return Bytes(kEach, static_cast<std::byte>(group * kMessages + message));
  };
  std::vector<std::unique_ptr<UcxPointToPoint>> senders;
  std::vector<Bytes> sent;  // stays until the end
  std::vector<std::pair<int, MessageId>> sends;
  for (int group = 0; group < kGroups; ++group) {
    senders.push_back(make(0, group));
    for (int i = 0; i < kMessages; ++i) {
      sent.push_back(bytes_of(group, i));
      sends.emplace_back(group, senders.back()->send(envelope(1, 1, kEach), sent.back()));
    }
  }
  for (int i = 0; i < 2; ++i) exchange(9);
  until({0, 1}, [this] { return !fabric(0).pending(); });
  for (int group = 0; group < kGroups; ++group) {
    const auto receiver = make(1, group);
    for (int i = 0; i < kMessages; ++i) {
      Bytes in(kEach);
      const MessageId receive = receiver->recv(envelope(0, 1, kEach), in);
      until({0, 1}, [&] { return receiver->test(receive, nullptr); });
      EXPECT_EQ(in, bytes_of(group, i)) << "group " << group << ", message " << i;
    }
  }
  for (const auto& [group, id] : sends) {
    EXPECT_TRUE(senders[static_cast<std::size_t>(group)]->test(id, nullptr));
  }
}

// The data that UCX still has of the array can only be lost with the connection.
TEST_P(UcxMessages, WhatAPeerStillOwesIsKnown) {
  EXPECT_FALSE(end(0).owed(1) || end(1).owed(0));
  const Bytes out = filled(5);
  Bytes in = filled(0);
  const MessageId receive = recv(7, in);
  const auto before = end(1).owed(0);
  ASSERT_TRUE(before);
  EXPECT_FALSE(end(1).owed(1));  // another's
  const MessageId sent = send(7, out);
  bool came = false;
  bool left = false;
  bool has_changed = false;
  until({0, 1}, [&] {
    const auto now = end(1).owed(0);
    has_changed = has_changed || !now || *now != *before;
    came = came || end(1).test(receive, nullptr);
    left = left || end(0).test(sent, nullptr);
    return came && left;
  });
  EXPECT_TRUE(has_changed);
  EXPECT_FALSE(end(0).owed(1) || end(1).owed(0));
}

// Puts what comes where it belongs, and counts how often each byte does.
class Collected final : public engine::Taker {
 public:
  explicit Collected(std::size_t bytes) : bytes_(bytes), times_(bytes) {}
  void take(std::size_t offset, std::span<const std::byte> bytes) noexcept override {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::size_t i = 0; i < bytes.size(); ++i) ++times_[offset + i];
  }
  const Bytes& bytes() const { return bytes_; }
  bool took_each_once() const {
    return std::all_of(times_.begin(), times_.end(), [](int times) { return times == 1; });
  }

 private:
  Bytes bytes_;
  std::vector<int> times_;
};

// In one piece, in several, in longer ones, and asked for; before and after its receive.
TEST_P(UcxMessages, WhatIsTakenAsItComesComesWholeAndOnce) {
  for (const std::size_t length : {1000, 100 << 10, 400 << 10, 3 << 20}) {
    for (const bool early : {false, true}) {
      Bytes out(length);
      for (std::size_t i = 0; i < length; ++i) out[i] = static_cast<std::byte>(i * 7 + i / 256);
      Collected in(length);
      const auto post = [&] { return end(1).recv_to(envelope(0, 8, length), length, in); };
      std::optional<MessageId> receive;
      if (!early) receive = post();
      const MessageId sent = end(0).send(envelope(1, 8, length), out);
      if (early) {
        until({0, 1}, [&] { return end(1).waiting(envelope(0, 8, length)).has_value(); });
        receive = post();
      }
      ASSERT_TRUE(receive);
      bool came = false;
      bool left = false;
      until({0, 1}, [&] {
        came = came || end(1).test(*receive, nullptr);
        left = left || end(0).test(sent, nullptr);
        return came && left;
      });
      EXPECT_EQ(in.bytes(), out) << length << " bytes, early " << early;
      EXPECT_TRUE(in.took_each_once()) << length << " bytes, early " << early;
    }
  }
}

TEST_P(UcxMessages, WhatIsTakenAsItComesMayBeCalledOff) {
  for (int turns = 0; turns < 30; ++turns) {
    const Bytes out(400 << 10, std::byte{3});
    auto in = std::make_unique<Collected>(out.size());
    const auto receive = end(1).recv_to(envelope(0, 4, out.size()), out.size(), *in);
    ASSERT_TRUE(receive);
    const MessageId sent = end(0).send(envelope(1, 4, out.size()), out);
    for (int i = 0; i < turns; ++i) end(i % 2).progress();
    end(1).cancel(*receive);
    in.reset();  // the array must not be touched any more
    until({0, 1}, [&] { return end(0).test(sent, nullptr); });
    exchange(2);
  }
}

// The most that may be sent without a request, 8 MiB: more than sockets hold if no process reads
// them.
constexpr std::size_t kBurstLength = std::size_t{500} << 10;
constexpr int kBurst = 16;

bool sockets_hold_a_burst() {
  std::ifstream limits("/proc/sys/net/ipv4/tcp_wmem");
  std::size_t most = 0;
  while (limits >> most) {
  }
  return most == 0 || most > std::size_t{6} << 20;
}

TEST_P(UcxMessages, WhoIsKnownToReadIsSentLongerOnesFromWhereTheyAre) {
  if (sockets_hold_a_burst()) GTEST_SKIP() << "the system's sockets may hold all of it";
  const engine::Tag call = engine::kCallTag + 77;
  const Bytes out(kBurstLength, std::byte{5});
  const auto leaves_at_once = [&](engine::Tag tag) {
    std::vector<MessageId> sent;
    for (int i = 0; i < kBurst; ++i) {
      sent.push_back(end(0).send(envelope(1, tag, out.size()), out));
    }
    std::vector<bool> left;
    for (const MessageId id : sent) left.push_back(end(0).test(id, nullptr));
    const bool all = std::count(left.begin(), left.end(), true) == kBurst;
    Bytes in(out.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const MessageId receive = end(1).recv(envelope(0, tag, in.size()), in);
      until({0, 1}, [&] { return end(1).test(receive, nullptr); });
      EXPECT_EQ(in, out);
      if (!left[i]) until({0, 1}, [&] { return end(0).test(sent[i], nullptr); });
    }
    return all;
  };
  EXPECT_TRUE(leaves_at_once(call)) << "not copied, though the other may be late";
  Bytes word(1);
  const MessageId receive = end(0).recv(envelope(1, call, 1), word);
  const MessageId told = end(1).send(envelope(0, call, 1), word);
  until({0, 1}, [&] { return end(0).test(receive, nullptr); });
  EXPECT_TRUE(end(1).test(told, nullptr));
  EXPECT_TRUE(leaves_at_once(call + 1)) << "of another call";
  EXPECT_FALSE(leaves_at_once(call)) << "copied";
}

// The sum exceeds the limit of unread data at a peer. The sender learns of reads by messages in the
// other direction, or else by empty ones.
TEST_P(UcxMessages, WhatWasReadIsNotCountedAsWaitingForEver) {
  const Bytes out(300 << 10, std::byte{6});
  Bytes in(out.size());
  const auto pass = [&](int from) {
    const int to = 1 - from;
    const MessageId sent = end(from).send(envelope(to, 5, out.size()), out);
    const bool unasked = end(from).test(sent, nullptr);
    const MessageId receive = end(to).recv(envelope(from, 5, in.size()), in);
    until({0, 1}, [&] { return end(to).test(receive, nullptr); });
    EXPECT_EQ(in, out);
    if (!unasked) until({0, 1}, [&] { return end(from).test(sent, nullptr); });
    return unasked;
  };
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(pass(0)) << i;
    ASSERT_TRUE(pass(1)) << i;
  }
  int unasked = 0;  // what is acknowledged may be under way
  for (int i = 0; i < 60; ++i) unasked += static_cast<int>(pass(0));
  EXPECT_GT(unasked, 40);
}

TEST_P(UcxMessages, WhatAPeerDoesNotFinishIsGivenUp) {
  never_finish();
  EXPECT_EQ(fabric(0).take_broken(), std::vector{1});
}

TEST_P(UcxMessages, SoIsWhatAPeerThatIsLostDoesNotFinish) {
  fate_ = engine::Fate::kLeft;
  never_finish();
  EXPECT_EQ(fabric(0).take_broken(), std::vector{1});
}

TEST_P(UcxMessages, WhatIsForTheDeadIsNotWaitedFor) {
  const Bytes out(kLong, std::byte{7});
  const MessageId sent = end(0).send(envelope(1, 1, kLong), out);
  fate_ = engine::Fate::kDied;
  const base::Deadline deadline = base::Deadline::in(kWatchdog);
  EXPECT_FALSE(fabric(0).flush(deadline));
  EXPECT_FALSE(deadline.has_passed());
  EXPECT_TRUE(fabric(0).try_retire());
  EXPECT_FALSE(fabric(0).progress());
  EXPECT_FALSE(fabric(0).flush(deadline));
  end(0).cancel(sent);
}

INSTANTIATE_TEST_SUITE_P(Both,
                         UcxMessages,
                         testing::Values(Bulk::kPieces, Bulk::kDirect),
                         [](const auto& each) {
                           return each.param == Bulk::kPieces ? "pieces" : "direct";
                         });

// Rank 1 has not sent anything to rank 0 before.
class UcxStrangers : public UcxMessages {
 protected:
  void get_acquainted() override {}
};

TEST_P(UcxStrangers, AreAnsweredWhileMoreOfTheirsArrives) {
  const Bytes out = filled(5);
  std::vector<Bytes> in(8, filled(0));
  std::vector<MessageId> received;
  std::vector<MessageId> sent;
  for (std::uint64_t i = 0; i < in.size(); ++i) received.push_back(recv(i + 1, in[i]));
  for (std::uint64_t i = 0; i < in.size(); ++i) sent.push_back(send(i + 1, out));
  until({0, 1}, [&] {
    std::erase_if(received, [&](MessageId id) { return end(1).test(id, nullptr); });
    std::erase_if(sent, [&](MessageId id) { return end(0).test(id, nullptr); });
    return received.empty() && sent.empty();
  });
  for (const Bytes& each : in) EXPECT_EQ(each, out);
}

INSTANTIATE_TEST_SUITE_P(Both, UcxStrangers, testing::Values(Bulk::kPieces, Bulk::kDirect));

// The settings that UCX gets before it starts.
using Settings = std::map<std::string, std::string>;
Settings& told() {
  static Settings settings;
  return settings;
}

class UcxIsTold : public UcxMessages {
 protected:
  std::shared_ptr<const UcxLibrary> library_for(int,
                                                std::shared_ptr<const UcxLibrary> found) override {
    static const UcxLibrary* real = nullptr;
    real = found.get();
    auto listening = std::make_shared<UcxLibrary>(*found);
    listening->config_modify = [](Config config, const char* name, const char* value) {
      const UcsStatus status = real->config_modify(config, name, value);
      if (status == UcsStatus::kOk) told()[name] = value;
      return status;
    };
    return listening;
  }
};

// UCX 1.13 to 1.19 end the process by an assertion where a connection breaks while TCP sends from
// an array. Old versions have these names without TCP's.
TEST_P(UcxIsTold, ToCopyWhatTcpSends) {
  for (const char* name :
       {"UCX_TLS", "UCX_TCP_RX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE", "UCX_ZCOPY_THRESH"}) {
    if (std::getenv(name) != nullptr) GTEST_SKIP() << name << " is set";
  }
  const bool copies = infiniband_devices().empty();
  EXPECT_EQ(told()["ZCOPY_THRESH"], copies ? "inf" : "");
  const std::string most = copies ? std::to_string(kReceivedAtOnce) : "";
  EXPECT_EQ(told()["TX_SEG_SIZE"] + told()["TCP_TX_SEG_SIZE"], most);
}

INSTANTIATE_TEST_SUITE_P(InPieces, UcxIsTold, testing::Values(Bulk::kPieces));

// UCX tells when rank 0's worker is destroyed.
class UcxWorkers : public UcxMessages {
 protected:
  static inline bool is_destroyed = false;

  std::shared_ptr<const UcxLibrary> library_for(int rank,
                                                std::shared_ptr<const UcxLibrary> found) override {
    if (rank != 0) return found;
    static const UcxLibrary* real = nullptr;
    real = found.get();
    auto telling = std::make_shared<UcxLibrary>(*found);
    telling->worker_destroy = [](Worker worker) {
      is_destroyed = true;
      real->worker_destroy(worker);
    };
    return telling;
  }
  bool end_destroys() {
    is_destroyed = false;
    TearDown();
    fabrics_.clear();
    return is_destroyed;
  }
};

TEST_P(UcxWorkers, AreDestroyedAtTheEnd) { EXPECT_TRUE(end_destroys()); }

// UCX 1.13 may end the process by an assertion when it destroys such a worker.
TEST_P(UcxWorkers, AreKeptAfterAConnectionBroke) {
  never_finish();
  EXPECT_TRUE(fabric(0).is_broken(1));
  EXPECT_FALSE(end_destroys());
}

INSTANTIATE_TEST_SUITE_P(Directly, UcxWorkers, testing::Values(Bulk::kDirect));

// Rank 1's UCX gives nothing back, whatever it is asked.
class UcxKeepsMemory : public UcxMessages {
 protected:
  std::shared_ptr<const UcxLibrary> library_for(int rank,
                                                std::shared_ptr<const UcxLibrary> found) override {
    if (rank != 1) return found;
    auto stubborn = std::make_shared<UcxLibrary>(*found);
    stubborn->request_cancel = [](Worker, void*) {};
    stubborn->ep_close_nbx = [](Endpoint, const RequestParam*) -> StatusPointer { return nullptr; };
    return stubborn;
  }
};

TEST_P(UcxKeepsMemory, ThenNothingIsWrittenThereAndNobodyWaits) {
  Bytes in = filled(0);
  const Bytes out = filled(5);
  const MessageId sent = send(1, out);
  const MessageId receive = recv(1, in);
  // It is granted, and in rank 1's hands; rank 0 has not heard of that.
  until({1}, [&, requested = std::chrono::steady_clock::now()] {
    return std::chrono::steady_clock::now() - requested > std::chrono::milliseconds(200);
  });
  end(1).cancel(receive);
  const Bytes mine = filled(9);
  in = mine;
  // Messages of rank 0 match no receive.
  for (int turn = 0; turn < 2000; ++turn) {
    end(0).progress();
    end(1).progress();
    fabric(1).progress();
  }
  EXPECT_EQ(in, mine);
  end(0).cancel(sent);
  EXPECT_TRUE(fabric(1).is_broken(0));
  const std::vector<int> broken = fabric(1).take_broken();
  EXPECT_TRUE(std::ranges::count(broken, 0) == 1);
  EXPECT_FALSE(fabric(1).pending());
}

INSTANTIATE_TEST_SUITE_P(Directly, UcxKeepsMemory, testing::Values(Bulk::kDirect));

}  // namespace
}  // namespace hocket::engines::ucx
