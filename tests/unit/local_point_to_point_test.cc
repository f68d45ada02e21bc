// Behaviour of the local carrier beyond that of every carrier; see
// tests/conformance/messages_test.cc.
#include "engines/local/local_point_to_point.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hocket::engines::local {
namespace {

using engine::Envelope;
using engine::EnvelopeMismatch;
using engine::MessageId;

class LocalMessages : public testing::Test {
 protected:
  LocalMessages() {
    fabric_ = std::make_shared<LocalFabric>(2);
    const auto notify = [this](int rank) { notified_.push_back(rank); };
    for (int rank = 0; rank < 2; ++rank) {
      ranks_.push_back(std::make_unique<LocalPointToPoint>(fabric_, rank, notify));
    }
  }
  static Envelope envelope(int peer, std::uint64_t tag, std::size_t count) {
    return {.peer = peer, .tag = tag, .dtype = DType::kInt32, .count = count};
  }
  template <std::size_t N>
  MessageId send(int from, int to, std::uint64_t tag, const std::array<std::int32_t, N>& numbers) {
    return rank(from).send(envelope(to, tag, N), std::as_bytes(std::span(numbers)));
  }
  template <std::size_t N>
  MessageId recv(int at, int from, std::uint64_t tag, std::array<std::int32_t, N>& numbers) {
    return rank(at).recv(envelope(from, tag, N), std::as_writable_bytes(std::span(numbers)));
  }
  LocalPointToPoint& rank(int r) { return *ranks_[static_cast<std::size_t>(r)]; }

  std::vector<int> notified_;
  std::shared_ptr<LocalFabric> fabric_;
  std::vector<std::unique_ptr<LocalPointToPoint>> ranks_;
};

TEST_F(LocalMessages, TellsBothSidesThatSomethingHasChanged) {
  const std::array<std::int32_t, 2> out{3, 4};
  std::array<std::int32_t, 2> in{};
  const MessageId receive = recv(1, 0, 5, in);
  EXPECT_TRUE(notified_.empty());
  EXPECT_FALSE(rank(1).progress());
  const MessageId sent = send(0, 1, 5, out);
  EXPECT_EQ(notified_, std::vector{1});
  EXPECT_FALSE(rank(0).test(sent, nullptr));
  EXPECT_FALSE(rank(1).test(receive, nullptr));
  EXPECT_TRUE(rank(1).progress());
  EXPECT_EQ(notified_, (std::vector{1, 0}));
  EXPECT_TRUE(rank(0).test(sent, nullptr));
  EXPECT_TRUE(rank(1).test(receive, nullptr));
  EXPECT_EQ(in, out);
}

TEST_F(LocalMessages, ReceivesPairInTheOrderOfPosting) {
  const std::array<std::int32_t, 1> first{1}, second{2};
  std::array<std::int32_t, 1> from_any{}, from_zero{};
  const MessageId any = recv(1, engine::kAnyPeer, 7, from_any);
  const MessageId zero = recv(1, 0, 7, from_zero);
  send(0, 1, 7, first);
  send(0, 1, 7, second);
  rank(1).progress();
  Envelope received;
  EXPECT_TRUE(rank(1).test(any, &received));
  EXPECT_EQ(received.peer, 0);
  EXPECT_EQ(received.tag, 7u);
  EXPECT_TRUE(rank(1).test(zero, nullptr));
  EXPECT_EQ(from_any, first);
  EXPECT_EQ(from_zero, second);
}

TEST_F(LocalMessages, ARankMaySendToItself) {
  const std::array<std::int32_t, 3> out{5, 6, 7};
  std::array<std::int32_t, 3> in{};
  const MessageId sent = send(0, 0, 1, out);
  const MessageId receive = recv(0, 0, 1, in);
  EXPECT_TRUE(rank(0).test(receive, nullptr));
  EXPECT_TRUE(rank(0).test(sent, nullptr));
  EXPECT_EQ(in, out);
}

TEST_F(LocalMessages, ACancelledSendNeverArrives) {
  const std::array<std::int32_t, 1> cancelled{1}, kept{2};
  std::array<std::int32_t, 1> in{};
  const MessageId sent = send(0, 1, 1, cancelled);
  send(0, 1, 1, kept);
  rank(0).cancel(sent);
  const MessageId receive = recv(1, 0, 1, in);
  EXPECT_TRUE(rank(1).test(receive, nullptr));
  EXPECT_EQ(in, kept);
}

TEST_F(LocalMessages, ARankThatGoesTakesItsMessagesBack) {
  std::array<std::int32_t, 1> in{-1};
  {
    const std::array<std::int32_t, 1> out{1};
    send(0, 1, 1, out);
    ranks_[0].reset();
  }
  const MessageId receive = recv(1, 0, 1, in);
  EXPECT_FALSE(rank(1).test(receive, nullptr));
  EXPECT_EQ(in[0], -1);
  rank(1).cancel(receive);
}

TEST_F(LocalMessages, BothSidesLearnOfADisagreement) {
  const std::array<std::int32_t, 2> out{1, 2};
  std::array<std::int32_t, 3> in{-1, -1, -1};
  const MessageId sent = send(0, 1, 1, out);
  const MessageId receive = recv(1, 0, 1, in);
  try {
    rank(0).test(sent, nullptr);
    FAIL() << "the sender was told nothing";
  } catch (const EnvelopeMismatch& e) {
    EXPECT_EQ(e.expected.count, 2u);
    EXPECT_EQ(e.received.count, 3u);
    EXPECT_EQ(e.received.peer, 1);
  }
  try {
    rank(1).test(receive, nullptr);
    FAIL() << "the receiver was told nothing";
  } catch (const EnvelopeMismatch& e) {
    EXPECT_EQ(e.expected.count, 3u);
    EXPECT_EQ(e.received.count, 2u);
    EXPECT_EQ(e.received.peer, 0);
  }
  EXPECT_EQ(in, (std::array<std::int32_t, 3>{-1, -1, -1}));
  rank(0).cancel(sent);
  rank(1).cancel(receive);
}

TEST_F(LocalMessages, HandlesAreUsedAgain) {
  const std::array<std::int32_t, 1> out{1};
  std::array<std::int32_t, 1> in{};
  for (int i = 0; i < 1000; ++i) {
    const MessageId sent = send(0, 1, 1, out);
    const MessageId receive = recv(1, 0, 1, in);
    EXPECT_LT(static_cast<std::uint32_t>(sent), 4u);
    EXPECT_TRUE(rank(1).test(receive, nullptr));
    EXPECT_TRUE(rank(0).test(sent, nullptr));
  }
}

}  // namespace
}  // namespace hocket::engines::local
