// The store's bytes: what is written can be read, and nothing else can.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "membership/rendezvous/store/request.h"
#include "membership/rendezvous/wire/handshake.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

std::span<const std::byte> body_of(const Bytes& frame) {
  return std::span(frame).subspan(kFrameHeaderBytes);
}

std::vector<StoreRequest> requests() {
  return {
      {.op = Op::kSet, .key = "k", .value = to_bytes("value")},
      {.op = Op::kGet, .timeout = Duration(123456789), .key = std::string(kMaxKeyBytes, 'x')},
      {.op = Op::kTryGet, .key = "t"},
      {.op = Op::kWait, .timeout = kForever, .keys = {"a", "", "ccc"}},
      {.op = Op::kAdd, .key = "n", .amount = std::numeric_limits<std::int64_t>::min()},
      {.op = Op::kCompareAndSet, .key = "c", .value = to_bytes("new"), .expected = to_bytes("old")},
      {.op = Op::kCompareAndSet, .key = "c", .value = to_bytes("new"), .expected = std::nullopt},
      {.op = Op::kErase, .key = "e"},
      {.op = Op::kExchange,
       .timeout = Duration(5),
       .key = "x",
       .value = to_bytes("mine"),
       .rank = 3,
       .size = 9},
      {.op = Op::kBarrier, .timeout = Duration(5), .key = "b", .rank = -1, .size = 2},
      {.op = Op::kGoodbye},
  };
}

TEST(FrameTest, IsCompleteWithItsLastByte) {
  WireWriter writer;
  writer.text("payload");
  const Bytes frame = std::move(writer).frame();
  ASSERT_EQ(frame.size(), 15U);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    EXPECT_EQ(parse_frame(std::span(frame).first(size), 100).state, Frame::State::kIncomplete);
  }
  Bytes more = frame;
  more.push_back(std::byte{1});
  const Frame parsed = parse_frame(more, 11);
  EXPECT_EQ(parsed.state, Frame::State::kComplete);
  EXPECT_EQ(parsed.size, frame.size());
  EXPECT_EQ(parsed.payload.size(), 11U);
  EXPECT_EQ(parse_frame(frame, 10).state, Frame::State::kTooLong);
  EXPECT_EQ(parse_frame(std::span(frame).first(4), 10).state, Frame::State::kTooLong);
}

TEST(WireTest, ReadingPastTheEndIsSeenAndHarmless) {
  WireWriter writer;
  writer.u16(0x1234);
  const Bytes payload = writer.payload();
  WireReader reader(payload);
  EXPECT_EQ(reader.u16(), 0x1234);
  EXPECT_TRUE(reader.finished());
  EXPECT_EQ(reader.u32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0U);
  const Bytes hello = to_bytes(std::string_view("\x05\0\0\0hello", 9));
  WireReader limited(hello);
  EXPECT_TRUE(limited.blob(4).empty());
  EXPECT_FALSE(limited.ok());
}

TEST(RequestTest, SurvivesTheWire) {
  std::uint32_t id = 4000000000U;
  for (const StoreRequest& request : requests()) {
    const Bytes frame = encode_request(++id, request);
    const auto parsed = parse_request(body_of(frame));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->id, id);
    EXPECT_EQ(parsed->request.op, request.op);
    EXPECT_EQ(parsed->request.timeout, request.timeout);
    EXPECT_EQ(parsed->request.key, request.key);
    EXPECT_EQ(parsed->request.value, request.value);
    EXPECT_EQ(parsed->request.expected, request.expected);
    EXPECT_EQ(parsed->request.amount, request.amount);
    EXPECT_EQ(parsed->request.rank, request.rank);
    EXPECT_EQ(parsed->request.size, request.size);
    EXPECT_EQ(parsed->request.keys, request.keys);
  }
}

TEST(RequestTest, IsNothingButWhole) {
  for (const StoreRequest& request : requests()) {
    Bytes frame = encode_request(7, request);
    const auto payload = body_of(frame);
    for (std::size_t size = 0; size < payload.size(); ++size) {
      EXPECT_FALSE(parse_request(payload.first(size)));
    }
    frame.push_back(std::byte{0});
    EXPECT_FALSE(parse_request(body_of(frame)));
  }
  EXPECT_FALSE(parse_request(
      body_of(encode_request(7, {.op = Op::kSet, .key = std::string(kMaxKeyBytes + 1, 'x')}))));
  EXPECT_FALSE(parse_request(body_of(
      encode_request(7, {.op = Op::kSet, .key = "k", .value = Bytes(kMaxValueBytes + 1)}))));
}

TEST(ReplyTest, SurvivesTheWire) {
  const Reply reply{.code = ReplyCode::kTimeout,
                    .number = -3,
                    .missing = {"2", "5"},
                    .text = "why",
                    .value = std::make_shared<const Bytes>(to_bytes("bytes"))};
  Bytes frame = encode_reply(9, reply);
  frame.insert(frame.end(), reply.value->begin(), reply.value->end());
  const Frame parsed_frame = parse_frame(frame, kMaxPayload);
  ASSERT_EQ(parsed_frame.state, Frame::State::kComplete);
  EXPECT_EQ(parsed_frame.size, frame.size());
  const auto parsed = parse_reply(parsed_frame.payload);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, 9U);
  EXPECT_EQ(parsed->reply.code, ReplyCode::kTimeout);
  EXPECT_EQ(parsed->reply.number, -3);
  EXPECT_EQ(parsed->reply.missing, reply.missing);
  EXPECT_EQ(parsed->reply.text, "why");
  EXPECT_EQ(*parsed->reply.value, *reply.value);
}

TEST(PartsTest, SurviveTheWire) {
  const Bytes a = to_bytes("first");
  const Bytes b;
  const std::vector<std::span<const std::byte>> parts = {a, b};
  const Bytes value = encode_parts(parts);
  EXPECT_EQ(parse_parts(value, 2), (std::vector<Bytes>{a, b}));
  EXPECT_FALSE(parse_parts(value, 1));
  EXPECT_FALSE(parse_parts(value, 3));
}

TEST(OriginTest, CountsStepsToTheFirstCommonProcess) {
  struct Case {
    Origin who, other;
    std::size_t steps;
  };
  const Case cases[] = {
      {{10, 2, 1}, {10, 2, 1}, 0},          // itself
      {{11, 2, 1}, {10, 2, 1}, 1},          // of one parent
      {{12, 10, 2, 1}, {10, 2, 1}, 1},      // its child
      {{10, 2, 1}, {12, 10, 2, 1}, 0},      // its parent
      {{11, 3, 1}, {10, 2, 1}, 2},          // of another launcher
      {{11, 4, 3, 1}, {10, 3, 1}, 2},       // under a shell of its own
      {{11, 3}, {10, 2}, kNoCommonOrigin},  // of another host
      {{}, {10, 2, 1}, kNoCommonOrigin},
  };
  for (const Case& one : cases) EXPECT_EQ(steps_to(one.who, one.other), one.steps);
  const Origin own = origin_of_this_process();
  ASSERT_FALSE(own.empty());
  EXPECT_LE(own.size(), kMaxOrigin);
  EXPECT_EQ(own, origin_of_this_process());
}

TEST(HandshakeTest, MessagesSurviveTheWireAndAreNothingButWhole) {
  const Hello hello{.version = 77,
                    .trust = Trust::kUser,
                    .role = StoreRole::kObserver,
                    .epoch = 5,
                    .rank = 6,
                    .size = 7,
                    .nonce = make_nonce(),
                    .job = std::string(kMaxJobBytes, 'j'),
                    .is_named = false,
                    .origin = Origin(kMaxOrigin, UINT64_MAX)};
  const Bytes bytes = hello.encode();
  EXPECT_LE(bytes.size(), kMaxHandshakePayload);
  const auto parsed = Hello::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->version, 77);
  EXPECT_EQ(parsed->trust, Trust::kUser);
  EXPECT_EQ(parsed->role, StoreRole::kObserver);
  EXPECT_EQ(parsed->epoch, 5);
  EXPECT_EQ(parsed->rank, 6);
  EXPECT_EQ(parsed->size, 7);
  EXPECT_EQ(parsed->nonce, hello.nonce);
  EXPECT_EQ(parsed->job, hello.job);
  EXPECT_FALSE(parsed->is_named);
  EXPECT_EQ(parsed->origin, hello.origin);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Hello::parse(std::span(bytes).first(size)));
  }
  const Challenge challenge{.nonce = make_nonce()};
  EXPECT_EQ(Challenge::parse(challenge.encode()).value().nonce, challenge.nonce);
  EXPECT_FALSE(Challenge::parse(bytes));
  const Verdict verdict{.decision = Decision::kFull, .fact = -9, .mac = make_nonce()};
  EXPECT_EQ(Verdict::parse(verdict.encode()).value().fact, -9);
  EXPECT_EQ(Verdict::parse(verdict.encode()).value().mac, verdict.mac);
}

TEST(HandshakeTest, EveryPartOfTheTranscriptCounts) {
  const Key key = Key::generate();
  const Bytes a = to_bytes("hello");
  const Bytes b = to_bytes("challenge");
  const Bytes c = to_bytes("binding");
  const Transcript transcript(a, b, c);
  const Verdict welcome;
  EXPECT_TRUE(equal(transcript.client_mac(key), Transcript(a, b, c).client_mac(key)));
  EXPECT_FALSE(equal(transcript.client_mac(key), Transcript(a, b, a).client_mac(key)));
  EXPECT_FALSE(equal(transcript.client_mac(key), Transcript(b, a, c).client_mac(key)));
  EXPECT_FALSE(equal(transcript.client_mac(key), transcript.client_mac(Key::generate())));
  EXPECT_FALSE(equal(transcript.client_mac(key), transcript.server_mac(key, welcome)));
  EXPECT_FALSE(equal(transcript.server_mac(key, welcome),
                     transcript.server_mac(key, {.decision = Decision::kFull})));
  EXPECT_FALSE(equal(transcript.server_mac(key, welcome), transcript.server_mac(key, {.fact = 1})));
}

void prove_something() {
  const Bytes some = to_bytes("some");
  static_cast<void>(Transcript(some, some, some).client_mac(Key::generate()));
}

// The handler runs after all that were registered later, OpenSSL's own one among them.
TEST(HandshakeTest, ProofsAreMadeWhileTheProcessExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exits = [] {
    std::atexit(&prove_something);
    prove_something();
    std::exit(0);
  };
  EXPECT_EXIT(exits(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hocket::rendezvous
