// The awaiting of messages within algorithms.
#include <gtest/gtest.h>

#include <vector>

#include "engines/algorithm/messages.h"

namespace hocket::algorithm {
namespace {

using engine::MessageId;

// Counts how often it is asked to move something. A message is complete once it has been asked so
// often.
class Counting final : public engine::PointToPoint {
 public:
  MessageId send(const engine::Envelope&, std::span<const std::byte>) override { return {}; }
  MessageId recv(const engine::Envelope&, std::span<std::byte>) override { return {}; }
  bool test(MessageId, engine::Envelope*) override { return moves_ >= needs; }
  bool progress() override {
    ++moves_;
    return false;
  }
  void cancel(MessageId) noexcept override {}
  int moves() const { return moves_; }
  int needs = 0;

 private:
  int moves_ = 0;
};

engine::Task await(Endpoint at, std::vector<Message>& messages) { co_await at.completed(messages); }

// A move may be a system call. And an algorithm without messages to wait for is about to post
// receives: messages that arrive before would be copied once more.
TEST(Awaiting, CompleteMessagesMoveNothing) {
  Counting carrier;
  const engine::GroupFacts facts{.rank = 0, .size = 2, .hosts = {}};
  const Endpoint at(carrier, facts, {});
  std::vector<Message> messages;
  engine::Task none = await(at, messages);
  EXPECT_EQ(none.step(), engine::Poll::kDone);
  EXPECT_EQ(carrier.moves(), 0);
  messages.push_back(at.send(1, {}));
  engine::Task one = await(at, messages);
  EXPECT_EQ(one.step(), engine::Poll::kDone);
  EXPECT_EQ(carrier.moves(), 0);
  EXPECT_TRUE(messages.empty());
}

TEST(Awaiting, OtherMessagesAreMovedInEachStep) {
  Counting carrier;
  carrier.needs = 2;
  const engine::GroupFacts facts{.rank = 0, .size = 2, .hosts = {}};
  const Endpoint at(carrier, facts, {});
  std::vector<Message> messages;
  messages.push_back(at.send(1, {}));
  engine::Task task = await(at, messages);
  EXPECT_NE(task.step(), engine::Poll::kDone);
  EXPECT_EQ(carrier.moves(), 1);
  EXPECT_EQ(task.step(), engine::Poll::kDone);
  EXPECT_EQ(carrier.moves(), 2);
  EXPECT_TRUE(messages.empty());
}

}  // namespace
}  // namespace hocket::algorithm
