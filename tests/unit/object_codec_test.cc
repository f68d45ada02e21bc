// The encoding: round trips of random objects, and bytes that mean harm.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "hocket/object.h"
#include "object_random.h"

namespace hocket {
namespace {

using Bytes = std::vector<std::byte>;

Bytes encoded(std::initializer_list<int> payload) {
  Bytes bytes{std::byte{'H'}, std::byte{'K'}, std::byte{'O'}, std::byte{1}};
  for (const int value : payload) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Decoding anything ends in an object that has the very same encoding, or in InvalidArgument.
void decode_or_refuse(const Bytes& bytes) {
  try {
    const Object object = decode(bytes);
    RC_ASSERT(encode(object) == bytes);
  } catch (const InvalidArgument&) {
  }
}

RC_GTEST_PROP(ObjectCodec, RoundTrip, ()) {
  const Object object = object_random::object(4);
  const Bytes bytes = encode(object);
  const Object back = decode(bytes);
  RC_ASSERT(back == object);
  RC_ASSERT(encode(back) == bytes);
}

RC_GTEST_PROP(ObjectCodec, TruncatedIsRefused, ()) {
  const Bytes bytes = encode(object_random::object(3));
  const auto length = *rc::gen::inRange<std::size_t>(0, bytes.size());
  RC_ASSERT_THROWS_AS(decode(std::span(bytes).first(length)), InvalidArgument);
}

RC_GTEST_PROP(ObjectCodec, TrailingBytesAreRefused, ()) {
  Bytes bytes = encode(object_random::object(2));
  bytes.push_back(std::byte{*rc::gen::arbitrary<std::uint8_t>()});
  RC_ASSERT_THROWS_AS(decode(bytes), InvalidArgument);
}

RC_GTEST_PROP(ObjectCodec, MutatedIsDecodedOrRefused, ()) {
  Bytes bytes = encode(object_random::object(3));
  const int changes = *rc::gen::inRange(1, 5);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
    bytes[at] = std::byte{*rc::gen::arbitrary<std::uint8_t>()};
  }
  decode_or_refuse(bytes);
}

RC_GTEST_PROP(ObjectCodec, RandomIsDecodedOrRefused, ()) {
  Bytes bytes = encoded({});
  const Bytes payload = object_random::bytes();
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  decode_or_refuse(bytes);
}

TEST(ObjectCodec, ErrorsTellThePosition) {
  const auto message = [](const Bytes& bytes) -> std::string {
    try {
      decode(bytes);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message({}).find("byte 0 of 0"), std::string::npos) << message({});
  EXPECT_NE(message(encoded({99})).find("byte 4 of 5"), std::string::npos)
      << message(encoded({99}));
  Bytes future = encoded({0});
  future[3] = std::byte{2};
  EXPECT_NE(message(future).find("version 2"), std::string::npos) << message(future);
}

TEST(ObjectCodec, RefusesWhatHasAShorterForm) {
  EXPECT_EQ(decode(encoded({3, 2})), Object(1));
  EXPECT_THROW(decode(encoded({3, 0x82, 0})), InvalidArgument);  // a padded varint
  EXPECT_THROW(decode(encoded({4, 1, 5})), InvalidArgument);     // a small large integer
  EXPECT_THROW(decode(encoded({4, 9, 1, 1, 1, 1, 1, 1, 1, 1, 0})), InvalidArgument);
  EXPECT_THROW(decode(encoded({3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2})),
               InvalidArgument);
}

TEST(ObjectCodec, RefusesBadDictsStringsAndArrays) {
  EXPECT_THROW(decode(encoded({12, 2, 1, 0, 1, 0})), InvalidArgument);  // the key false twice
  EXPECT_THROW(decode(encoded({12, 1, 10, 0, 0})), InvalidArgument);    // a list as key
  EXPECT_THROW(decode(encoded({8, 1, 0x80})), InvalidArgument);         // no UTF-8
  EXPECT_THROW(decode(encoded({13, 17, 0})), InvalidArgument);          // no such dtype
  EXPECT_THROW(decode(encoded({13, 0, 1, 1, 2})), InvalidArgument);     // a bool of 2
  EXPECT_THROW(decode(encoded({13, 5, 33})), InvalidArgument);          // 33 dimensions
  EXPECT_NO_THROW(decode(encoded({13, 0, 1, 1, 1})));
}

Bytes nested_lists(int levels) {
  Bytes bytes = encoded({});
  for (int i = 0; i < levels; ++i) {
    bytes.push_back(std::byte{10});
    bytes.push_back(std::byte{1});
  }
  bytes.push_back(std::byte{0});
  return bytes;
}

TEST(ObjectCodec, DepthIsBounded) {
  EXPECT_NO_THROW(decode(nested_lists(kMaxObjectDepth)));
  EXPECT_THROW(decode(nested_lists(kMaxObjectDepth + 1)), InvalidArgument);
  EXPECT_THROW(decode(nested_lists(1'000'000)), InvalidArgument);
  Object deep;
  for (int i = 0; i < kMaxObjectDepth; ++i) deep = Object::list({deep});
  EXPECT_EQ(decode(encode(deep)), deep);
  EXPECT_THROW(encode(Object::list({deep})), InvalidArgument);
}

}  // namespace
}  // namespace hocket
