// A rank that waits for messages of GPUs: the times at which it checks for failures, and the wait
// for the first message. Uses the fake driver's GPUs, and pretended messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

#include "engines/movement/moving_engine.h"
#include "foundation/cuda/driver.h"

namespace hocket::movement {
namespace {

using base::Deadline;
using engine::Envelope;
using engine::MessageId;

// Sends complete at once, unless the receiver wants another length. A received message arrives at
// once with the sender's number, or never does while something else always moves.
class Seeming final : public engine::PointToPoint {
 public:
  void fall_silent() { silent_ = true; }
  // From now on the peer's messages have this length.
  void disagree(std::uint64_t length) { theirs_ = length; }
  MessageId send(const Envelope& to, std::span<const std::byte>) override {
    own_ = to;
    return MessageId{0};
  }
  MessageId recv(const Envelope& from, std::span<std::byte> bytes) override {
    own_ = from;
    std::ranges::fill(bytes, static_cast<std::byte>(from.peer));
    return MessageId{silent_ ? 1U : 0U};
  }
  bool test(MessageId id, Envelope*) override {
    if (theirs_) throw engine::EnvelopeMismatch{own_, {.peer = own_.peer, .count = *theirs_}};
    return id == MessageId{0};
  }
  bool progress() override {
    const auto now = std::chrono::steady_clock::now();
    if (silent_ && now > limit_) throw std::runtime_error("it does not look up");
    return silent_;
  }
  void cancel(MessageId) noexcept override {}

 private:
  bool silent_ = false;
  Envelope own_;  // of the last message
  std::optional<std::uint64_t> theirs_;
  const std::chrono::steady_clock::time_point limit_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
};

class Engine final : public MovingEngine {
 public:
  Engine(std::shared_ptr<const cuda::DeviceContext> device, Mover mover)
      : MovingEngine(std::move(device), std::move(mover)), seeming_(std::make_unique<Seeming>()) {
    carrier_ = seeming_.get();
  }
  std::string_view name() const noexcept override { return "seeming"; }
  Seeming& carrier() { return *carrier_; }
  void lose_connections() { broken_ = true; }

 private:
  void prepare() override {}
  std::string meet(const engine::Introduction&) override { return ""; }
  std::unique_ptr<engine::PointToPoint> make_messages(const std::shared_ptr<Slots>&) override {
    return std::move(seeming_);
  }
  bool is_broken(int) noexcept override { return broken_; }

  std::unique_ptr<Seeming> seeming_;
  Seeming* carrier_ = nullptr;
  bool broken_ = false;
};

class Movement : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::FoundDriver found = cuda::Driver::find();
    ASSERT_TRUE(found.driver) << found.why_not;
    device_ = std::make_shared<cuda::DeviceContext>(found.driver, 0);
    engine_.emplace(device_, Mover{.library = "Seeming", .size = 2, .interrupted = [this] {
                                     return interrupted_;
                                   }});
  }
  // The other rank says the same.
  engine::Introduction introduction(Deadline deadline) {
    const auto gather = [](std::span<const std::byte> own) {
      std::vector<std::byte> all(own.begin(), own.end());
      all.insert(all.end(), own.begin(), own.end());
      return all;
    };
    return {.gather = gather, .look = [] {}, .deadline = deadline};
  }
  std::string what_a_receive_says() { return what_it_says(engine::DeviceMessage::Way::kReceive); }
  std::string what_it_says(engine::DeviceMessage::Way way) {
    const cuda::DeviceGuard guard(*device_);
    const cuda::OwnedStream stream(device_);
    const cuda::DeviceBuffer array(device_, 4096);
    const engine::DeviceMessage message{way, 1, array.data(), array.bytes()};
    try {
      engine_->exchange({&message, 1}, stream.get());
    } catch (const DeviceError& error) {
      return error.what();
    }
    return "nothing";
  }

  std::shared_ptr<cuda::DeviceContext> device_;
  std::optional<Engine> engine_;
  bool interrupted_ = false;
};

TEST_F(Movement, WhoWaitsIsInterruptedThoughOthersMessagesMove) {
  const cuda::DeviceGuard guard(*device_);
  engine_->connect(introduction(Deadline::never()));
  engine_->carrier().fall_silent();
  interrupted_ = true;
  EXPECT_NE(what_a_receive_says().find("it was interrupted"), std::string::npos);
}

TEST_F(Movement, WhoWaitsHearsOfALostConnectionThoughOthersMessagesMove) {
  const cuda::DeviceGuard guard(*device_);
  engine_->connect(introduction(Deadline::never()));
  engine_->carrier().fall_silent();
  engine_->lose_connections();
  EXPECT_NE(what_a_receive_says().find("has lost the connection"), std::string::npos);
}

TEST_F(Movement, BothSidesOfOtherLengthsAreTold) {
  const cuda::DeviceGuard guard(*device_);
  engine_->connect(introduction(Deadline::never()));
  engine_->carrier().disagree(8192);
  EXPECT_EQ(what_it_says(engine::DeviceMessage::Way::kReceive),
            "rank 1 has sent 8192 bytes to this rank's GPU, which wanted 4096");
  EXPECT_EQ(what_it_says(engine::DeviceMessage::Way::kSend),
            "this rank has sent 4096 bytes to rank 1's GPU, which wanted 8192");
}

// Ranks that failed at once wait for the next exchange. Without this time, they would be abandoned
// together with ranks that waited for them here.
TEST_F(Movement, TheFirstMessagesLeaveTimeForWhatIsToldNext) {
  const cuda::DeviceGuard guard(*device_);
  engine_->carrier().fall_silent();
  const auto deadline = Deadline::in(std::chrono::seconds(8));
  bool had_passed = true;
  try {
    engine_->connect(introduction(deadline));
    ADD_FAILURE() << "it has not missed what never came";
  } catch (const DeviceError& error) {
    had_passed = deadline.has_passed();
    EXPECT_NE(std::string(error.what()).find("brought nothing"), std::string::npos);
  }
  EXPECT_FALSE(had_passed);
}

}  // namespace
}  // namespace hocket::movement
