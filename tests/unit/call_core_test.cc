// One call's path, from its request to its end. The engine does what the test says, and the group's
// other rank is the test itself. There is no world and no other process.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calls/call/core.h"
#include "calls/world/plan_cache.h"
#include "foundation/base/poll.h"
#include "foundation/os/segment.h"
#include "membership/failure/witness.h"

namespace hocket::call {
namespace {

using control::Cause;
using engine::Kind;
using engine::Signature;
using engine::Task;

// Carries every call; its calls end when `is_through` says so.
class ScriptedEngine final : public engine::CollectiveEngine {
 public:
  std::function<bool()> at_once = [] { return false; };
  std::function<bool()> is_through = [] { return true; };
  std::function<void()> at_start = [] {};
  std::vector<std::uint64_t> carried;
  std::vector<std::uint64_t> skipped;
  mutable int scored = 0;

  std::string_view name() const noexcept override { return "scripted"; }
  std::optional<engine::Score> score(const Signature&) const noexcept override {
    ++scored;
    return engine::Score{1.0};
  }
  bool attempt(const engine::Call& call) override {
    carried.push_back(call.sequence);
    return at_once();
  }
  Task start(const engine::Call&) override {
    at_start();
    return wait();
  }
  void skip(std::uint64_t sequence) override { skipped.push_back(sequence); }

 private:
  Task wait() {
    co_await engine::until([this] { return is_through(); });
  }
};

// Carries messages that end when the test says so.
class ScriptedMessages final : public engine::PointToPoint {
 public:
  bool tells_ends = true;
  int tests = 0;

  void end(engine::MessageId message) {
    has_ended_.at(static_cast<std::size_t>(message)) = true;
    ++ended_;
  }
  std::size_t under_way() const noexcept { return has_ended_.size() - freed_; }

  engine::MessageId send(const engine::Envelope&, std::span<const std::byte>) override {
    return engine::kComplete;
  }
  engine::MessageId recv(const engine::Envelope&, std::span<std::byte>) override {
    has_ended_.push_back(false);
    return engine::MessageId{static_cast<std::uint32_t>(has_ended_.size() - 1)};
  }
  bool test(engine::MessageId message, engine::Envelope*) override {
    ++tests;
    if (!has_ended_.at(static_cast<std::size_t>(message))) return false;
    ++freed_;
    return true;
  }
  std::optional<engine::MessageId> arrives;  // when all that has come is looked at

  bool progress() override {
    if (!arrives) return false;
    end(*std::exchange(arrives, std::nullopt));
    return true;
  }
  bool progress_wanted() override { return false; }
  std::optional<std::uint64_t> ended() const noexcept override {
    return tells_ends ? std::optional(ended_) : std::nullopt;
  }
  void cancel(engine::MessageId) noexcept override { ++freed_; }
  bool withdraw(engine::MessageId message) noexcept override {
    if (has_ended_.at(static_cast<std::size_t>(message))) return false;
    ++freed_;
    return true;
  }

 private:
  std::vector<bool> has_ended_;
  std::uint64_t ended_ = 0;
  std::size_t freed_ = 0;
};

constexpr control::HostShape kShape{.ranks = 2, .remote = 0, .stripe_bytes = 1 << 20};

std::shared_ptr<os::Segment> make_segment() {
  auto segment = std::make_shared<os::Segment>(
      os::Segment::create_private(control::HostControl::segment_bytes(kShape)));
  control::HostControl::format(*segment, kShape);
  return segment;
}

class Process final : public JobContext {
 public:
  Process(const std::shared_ptr<os::Segment>& segment, int rank)
      : host_(std::make_shared<control::HostControl>(segment, rank)),
        witness_(std::shared_ptr<control::Liveness>(host_, &host_->liveness)) {
    host_->arrive(rank);
  }
  control::HostControl& host() noexcept override { return *host_; }
  failure::Witness& witness() noexcept override { return witness_; }
  const os::ForkGuard& forks() const noexcept override { return forks_; }
  bool interrupted() override { return wants_to_stop; }
  bool has_left() const noexcept override { return false; }
  bool is_ending() const noexcept override { return false; }
  void watch(std::shared_ptr<Core>) override { ++watched; }
  bool has_told_of_loss() const noexcept override { return false; }
  void tell_of_loss() noexcept override {}
  base::WaitTimes wait_times() const noexcept override { return {kForever, kForever}; }
  const std::string& dump_directory() const noexcept override { return nowhere_; }
  int world_rank() const noexcept override { return host_->self(); }
  const std::shared_ptr<observe::TraceFile>& trace() const noexcept override { return trace_; }
  const std::shared_ptr<observe::AuditFile>& audit() const noexcept override { return audit_; }
  std::shared_ptr<observe::AuditFile> open_audit() override { return audit_; }

  bool wants_to_stop = false;
  int watched = 0;

 private:
  std::shared_ptr<control::HostControl> host_;
  failure::Witness witness_;
  os::ForkGuard forks_;
  std::string nowhere_;
  std::shared_ptr<observe::TraceFile> trace_;
  std::shared_ptr<observe::AuditFile> audit_;
};

class CallCoreTest : public ::testing::Test {
 protected:
  CallCoreTest() {
    control::GroupControl::format(block_, places_);
    auto engine = std::make_unique<ScriptedEngine>();
    engine_ = engine.get();
    Engines engines;
    engines.collectives.push_back(std::move(engine));
    auto messages = std::make_unique<ScriptedMessages>();
    messages_ = messages.get();
    engines.messages = std::move(messages);
    core_->open(std::move(engines));
  }

  Request all_reduce() {
    return {.kind = Kind::kAllReduce,
            .out = ArrayView(numbers_.data(), numbers_.size(), DType::kInt32),
            .in_place = true,
            .deadline = deadline_};
  }
  void run(const Request& request) {
    const CallGuard guard(*core_);
    core_->require_usable();
    core_->require_members();
    CallStorage storage;
    Plan plan = core_->checked(request, storage);
    core_->execute(plan, plan.call.signature, request.deadline, &storage);
  }
  std::shared_ptr<Operation> start(const Request& request) {
    const CallGuard guard(*core_);
    core_->require_usable();
    core_->require_members();
    CallStorage storage;
    const Plan plan = core_->checked(request, storage);
    return core_->enqueue(plan, plan.call.signature, std::move(storage), request.deadline);
  }
  std::shared_ptr<Operation> start_recv(std::optional<Duration> deadline = {}) {
    const CallGuard guard(*core_);
    const engine::Envelope from{.peer = 1, .tag = 0, .dtype = DType::kInt32, .count = 1};
    const engine::MessageId id = messages_->recv(from, {});
    return core_->message_calls.start(
        {.call = {from, false}, .owned = {*messages_, id}, .traced = {}, .sender = {}}, deadline);
  }
  std::vector<std::shared_ptr<Operation>> start_many(std::size_t count) {
    std::vector<std::shared_ptr<Operation>> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(start_recv());
    return all;
  }
  // The signature that rank 0 announces for its all_reduce.
  static Signature signature() {
    return {.kind = Kind::kAllReduce, .dtype = DType::kInt32, .op = ReduceOp::kSum, .count = 4};
  }

  std::shared_ptr<os::Segment> segment_ = make_segment();
  std::shared_ptr<Process> own_ = std::make_shared<Process>(segment_, 0);
  std::shared_ptr<Process> other_ = std::make_shared<Process>(segment_, 1);
  const std::vector<int> places_{0, 1};
  std::byte* const block_ = own_->host().memory.at(
      own_->host().memory.allocate(control::GroupControl::bytes(2), std::vector<int>{0, 1}));
  // The other rank's words.
  control::GroupControl peer_{other_->host(), block_, 1, places_};
  std::shared_ptr<Core> core_ = std::make_shared<Core>(
      own_,
      Membership{
          .name = "two", .rank = 0, .world_ranks = {0, 1}, .hosts = {0, 0}, .host_ranks = {0, 1}},
      block_,
      nullptr,
      kForever);
  ScriptedEngine* engine_ = nullptr;
  ScriptedMessages* messages_ = nullptr;
  std::vector<std::int32_t> numbers_{1, 2, 3, 4};
  std::optional<Duration> deadline_;
};

TEST_F(CallCoreTest, ACallIsAnnouncedNumberedAndFinished) {
  engine_->at_once = [] { return true; };
  run(all_reduce());
  run(all_reduce());
  const auto record = peer_.find(0, 2);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->signature, signature());
  EXPECT_NE(record->fingerprint, peer_.find(0, 1)->fingerprint);
  EXPECT_TRUE(peer_.finished_well(0, 2));
  EXPECT_EQ(engine_->carried, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(CallCoreTest, ACallIsSteppedToItsEnd) {
  int steps = 0;
  engine_->is_through = [&] { return ++steps == 1000; };
  run(all_reduce());
  EXPECT_EQ(steps, 1000);
  EXPECT_TRUE(peer_.finished_well(0, 1));
}

TEST_F(CallCoreTest, CallsUnderWayEndInTheirOrder) {
  bool first_may_end = false;
  engine_->is_through = [&] { return first_may_end; };
  const auto first = start(all_reduce());
  const auto second = start(all_reduce());
  EXPECT_FALSE(first->done());
  EXPECT_EQ(peer_.last_sequence(0), 1U);  // the second has not begun
  EXPECT_EQ(own_->watched, 1);
  first_may_end = true;
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kNothingLeft);
  EXPECT_TRUE(first->done() && second->done());
  EXPECT_TRUE(peer_.finished_well(0, 2));
}

TEST_F(CallCoreTest, ABlockingCallWaitsBehindThoseUnderWay) {
  int steps = 0;
  engine_->is_through = [&] { return ++steps > 10; };
  const auto first = start(all_reduce());
  run(all_reduce());
  EXPECT_TRUE(first->done());
  EXPECT_TRUE(peer_.finished_well(0, 2));
}

TEST_F(CallCoreTest, AWithdrawnReceiveEndsAlone) {
  const auto all = start_many(3);
  int told = 0;
  all[1]->on_done([&] { ++told; });
  EXPECT_TRUE(core_->pending.withdraw(*all[1]));
  EXPECT_TRUE(all[1]->done() && !all[1]->error() && !all[1]->received);
  EXPECT_FALSE(core_->pending.withdraw(*all[1]));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(all[0]->done() || all[2]->done());
  EXPECT_EQ(messages_->under_way(), 2U);
  messages_->end(engine::MessageId{2});
  EXPECT_FALSE(core_->pending.withdraw(*all[2]));  // it is looked at first
  EXPECT_TRUE(all[2]->done() && all[2]->received);
  EXPECT_TRUE(core_->pending.withdraw(*all[0]));
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kNothingLeft);
  EXPECT_FALSE(peer_.failed());
}

TEST_F(CallCoreTest, ACollectiveIsNotWithdrawn) {
  bool may_end = false;
  engine_->is_through = [&] { return may_end; };
  const auto call = start(all_reduce());
  EXPECT_FALSE(core_->pending.withdraw(*call));
  may_end = true;
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kNothingLeft);
  EXPECT_TRUE(call->done() && peer_.finished_well(0, 1));
}

TEST_F(CallCoreTest, ADifferentCallOfAPeerIsAMismatchThatNamesBoth) {
  engine_->is_through = [] { return false; };
  Signature other = signature();
  other.count = 5;
  peer_.record(1, 17, other);
  try {
    run(all_reduce());
    FAIL();
  } catch (const Mismatch& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("int32[4]"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 called all_reduce #1 sum int32[5]"), std::string::npos) << text;
  }
  EXPECT_EQ(peer_.failure().cause, Cause::kDifferent);
}

TEST_F(CallCoreTest, ADifferenceIsFoundOnceTheCallHasEnded) {
  engine_->at_once = [] { return true; };
  Signature other = signature();
  other.op = ReduceOp::kMax;
  peer_.record(1, 17, other);
  EXPECT_THROW(run(all_reduce()), Mismatch);
}

TEST_F(CallCoreTest, BadArgumentsAreRefusedAndTheOthersHear) {
  Request request = all_reduce();
  request.out = ArrayView(nullptr, 4, DType::kInt32);
  EXPECT_THROW(run(request), InvalidArgument);
  ASSERT_TRUE(peer_.refusal(0, 1));
  EXPECT_EQ(engine_->skipped, (std::vector<std::uint64_t>{1}));
  EXPECT_FALSE(peer_.failed());
  engine_->at_once = [] { return true; };
  run(all_reduce());
  EXPECT_EQ(peer_.last_sequence(0), 2U);
}

TEST_F(CallCoreTest, ARefusalByAPeerEndsTheCallAlone) {
  engine_->is_through = [] { return false; };
  peer_.refuse(1, Kind::kAllReduce, "its array is too short");
  try {
    run(all_reduce());
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("too short"), std::string::npos);
    EXPECT_EQ(error.status().peer, 1);
  }
  EXPECT_FALSE(peer_.failed());
  engine_->is_through = [] { return true; };
  run(all_reduce());
  EXPECT_TRUE(peer_.finished_well(0, 2));
}

TEST_F(CallCoreTest, AnEngineThatCannotStartACallRefusesIt) {
  engine_->at_start = [] { throw std::bad_alloc(); };
  EXPECT_THROW(run(all_reduce()), std::bad_alloc);
  ASSERT_TRUE(peer_.refusal(0, 1));
  EXPECT_NE(peer_.refusal(0, 1)->reason.find("no memory"), std::string::npos);
  EXPECT_FALSE(peer_.failed());
}

TEST_F(CallCoreTest, AnExceptionInACallThatHasBegunEndsTheGroup) {
  engine_->is_through = []() -> bool { throw std::runtime_error("the wire is cut"); };
  EXPECT_THROW(run(all_reduce()), std::runtime_error);
  ASSERT_TRUE(peer_.failed());
  EXPECT_EQ(peer_.failure().cause, Cause::kCannotGoOn);
  EXPECT_EQ(peer_.failure().text, "the wire is cut");
  EXPECT_THROW(run(all_reduce()), Aborted);
}

TEST_F(CallCoreTest, ALossIsFoundWhileWaiting) {
  engine_->is_through = [] { return false; };
  other_->host().liveness.record_death(1);
  try {
    run(all_reduce());
    FAIL();
  } catch (const PeerDied& error) {
    EXPECT_EQ(error.status().peer, 1);
  }
  EXPECT_EQ(peer_.failure().cause, Cause::kDied);
}

TEST_F(CallCoreTest, WhoHasLeftInGoodOrderAndIsNotNeededIsNotMissed) {
  engine_->at_once = [] { return true; };
  run(all_reduce());
  other_->host().liveness.leave();
  EXPECT_THROW(run(all_reduce()), PeerDied);
  EXPECT_EQ(peer_.failure().cause, Cause::kLeft);
}

TEST_F(CallCoreTest, ADeadlineNamesWhoHasNotCome) {
  engine_->is_through = [] { return false; };
  deadline_ = std::chrono::microseconds(1);
  try {
    run(all_reduce());
    FAIL();
  } catch (const DeadlineExceeded& error) {
    EXPECT_EQ(error.missing(), std::vector<int>{1});
  }
  EXPECT_EQ(peer_.failure().cause, Cause::kLate);
}

TEST_F(CallCoreTest, ACallBehindOthersIsLateByItsOwnDeadline) {
  engine_->is_through = [] { return false; };
  const auto first = start(all_reduce());
  deadline_ = std::chrono::milliseconds(1);
  const auto second = start(all_reduce());
  EXPECT_TRUE(core_->pending.wait(*first, base::Deadline::in(std::chrono::seconds(30))));
  EXPECT_THROW(first->rethrow(), DeadlineExceeded);
  EXPECT_TRUE(second->done());
  EXPECT_EQ(peer_.failure().sequence, second->sequence());
}

TEST_F(CallCoreTest, AnAbortOfAPeerEndsTheCallWithItsWords) {
  engine_->is_through = [] { return false; };
  peer_.fail({.cause = Cause::kAbortCalled, .reporter = 1, .culprit = 1, .text = "nothing to do"});
  try {
    run(all_reduce());
    FAIL();
  } catch (const Aborted& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 called abort(): nothing to do"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(CallCoreTest, AnInterruptionEndsTheWait) {
  engine_->is_through = [] { return false; };
  own_->wants_to_stop = true;
  EXPECT_THROW(run(all_reduce()), Aborted);
  EXPECT_EQ(peer_.failure().cause, Cause::kInterrupted);
}

TEST_F(CallCoreTest, WhoeverDropsAWorkEndsTheGroup) {
  engine_->is_through = [] { return false; };
  const auto operation = start(all_reduce());
  core_->pending.abandon(*operation);
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(peer_.failure().cause, Cause::kWorkDropped);
}

TEST(PlanCache, AreThoseOfTheLastRequestsOfSeveralKinds) {
  std::int32_t values[4] = {};
  std::int32_t others[4] = {};
  const ArrayView all(values);
  const Request sum{.kind = Kind::kAllReduce, .out = all, .in_place = true};
  const Request elsewhere{.kind = Kind::kAllReduce, .out = ArrayView(others), .in_place = true};
  const Request sent{.kind = Kind::kBroadcast, .out = all, .in_place = true};
  Request again = sum;
  again.deadline = std::chrono::seconds(1);  // no part of a plan
  world::PlanCache<std::unique_ptr<int>> kept;
  EXPECT_EQ(kept.find(sum), nullptr);
  kept.keep(sum, std::make_unique<int>(1));
  kept.keep(sent, std::make_unique<int>(2));
  ASSERT_NE(kept.find(again), nullptr);
  EXPECT_EQ(**kept.find(again), 1);
  EXPECT_EQ(**kept.find(sent), 2);
  EXPECT_EQ(kept.find(elsewhere), nullptr);
  EXPECT_EQ(*kept.likely(elsewhere), 1);  // of the same kind and size
  kept.keep(elsewhere, std::make_unique<int>(3));
  EXPECT_EQ(kept.find(sum), nullptr);
  EXPECT_EQ(**kept.find(elsewhere), 3);
}

TEST(PlanCache, TellABarrierOfTheHostFromOneOnAStream) {
  const Request here{.kind = Kind::kBarrier};
  Request on_stream = here;
  on_stream.stream = StreamRef();
  world::PlanCache<std::unique_ptr<int>> kept;
  kept.keep(here, std::make_unique<int>(1));
  EXPECT_EQ(kept.find(on_stream), nullptr);
  EXPECT_NE(kept.find(here), nullptr);
}

TEST_F(CallCoreTest, APlanOfTheSameSignatureTellsTheEngine) {
  const Request request = all_reduce();
  CallStorage storage;
  const Plan before = core_->checked(request, storage);
  const int scored = engine_->scored;
  const Plan like = core_->checked(request, storage, nullptr, &before);
  EXPECT_EQ(like.engine, before.engine);
  EXPECT_EQ(engine_->scored, scored);
  Request shorter = request;
  shorter.out = ArrayView(numbers_.data(), 1, DType::kInt32);
  static_cast<void>(core_->checked(shorter, storage, nullptr, &before));
  EXPECT_EQ(engine_->scored, scored + 1);
}

TEST_F(CallCoreTest, WhatIsNotAMemberMakesNoCalls) {
  const auto outside = std::make_shared<Core>(
      own_,
      Membership{.name = "theirs", .world_ranks = {1}, .hosts = {0}, .host_ranks = {1}},
      nullptr,
      nullptr,
      kForever);
  EXPECT_THROW(outside->require_usable(), InvalidArgument);
  EXPECT_TRUE(outside->failures.last_calls().empty());
}

// --- Messages under way -------------------------------------------------------------------------

TEST_F(CallCoreTest, AStartLooksAtItsOwnMessageAlone) {
  const auto pending = start_many(1000);
  messages_->tests = 0;
  const auto one_more = start_recv();
  EXPECT_EQ(messages_->tests, 1);
  EXPECT_EQ(own_->watched, 1);
}

TEST_F(CallCoreTest, AStepLooksAtFewOfTheMessagesThatHaveNotEnded) {
  const auto pending = start_many(1000);
  core_->pending.poke();
  messages_->tests = 0;
  messages_->end(engine::MessageId{0});
  core_->pending.poke();
  EXPECT_TRUE(pending.front()->done());
  EXPECT_LT(messages_->tests, 20);
}

// Rank 1 sends, and ends, right after this rank has looked for messages.
TEST_F(CallCoreTest, WhatWasSentBeforeALossIsReceived) {
  const auto message = start_recv();
  messages_->arrives = engine::MessageId{0};
  other_->host().liveness.leave();
  core_->pending.poke();
  EXPECT_TRUE(message->done());
  EXPECT_NO_THROW(message->rethrow());
}

class MessagesUnderWay : public CallCoreTest, public ::testing::WithParamInterface<bool> {};

TEST_P(MessagesUnderWay, EndInAnyOrder) {
  messages_->tells_ends = GetParam();
  const auto pending = start_many(300);
  std::vector<std::size_t> order(pending.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  for (std::size_t i = 0; i < order.size(); ++i) {
    messages_->end(static_cast<engine::MessageId>(order[i]));
    if (i % 3 != 0) continue;  // several at a time
    core_->pending.poke();
    for (std::size_t k = 0; k < order.size(); ++k) {
      ASSERT_EQ(pending[order[k]]->done(), k <= i) << i << " " << k;
    }
  }
  core_->pending.poke();
  EXPECT_FALSE(core_->runner().busy());
  EXPECT_EQ(messages_->under_way(), 0U);
}

TEST_P(MessagesUnderWay, OneOfManyIsLate) {
  messages_->tells_ends = GetParam();
  auto pending = start_many(500);
  pending.push_back(start_recv(std::chrono::milliseconds(1)));
  const auto more = start_many(500);
  const auto is_late = [&] {
    core_->pending.poke();
    return pending.back()->done();
  };
  EXPECT_TRUE(base::poll_until(
      is_late, base::Deadline::in(std::chrono::seconds(30)), std::chrono::milliseconds(1)));
  EXPECT_THROW(pending.back()->rethrow(), DeadlineExceeded);
  EXPECT_EQ(messages_->under_way(), 0U);  // all the others are taken back with it
}

INSTANTIATE_TEST_SUITE_P(Carriers, MessagesUnderWay, ::testing::Bool());

TEST_F(CallCoreTest, TheProgressThreadLeavesAloneWhatTheProgramMoves) {
  const auto pending = start_many(100);
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kAttended);
  EXPECT_EQ(core_->pending.progress(),
            PendingCalls::Progress::kIdle);  // no thread has been inside since
  for (int i = 0; i < 100; ++i) core_->pending.poke();
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kAttended);
  for (std::uint32_t i = 0; i < 100; ++i) messages_->end(engine::MessageId{i});
  EXPECT_EQ(core_->pending.progress(), PendingCalls::Progress::kNothingLeft);
  const auto later = start_recv();
  EXPECT_EQ(own_->watched, 2);
}

}  // namespace
}  // namespace hocket::call
