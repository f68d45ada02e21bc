// Objects as values: making, asking, comparing, refusing.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "hocket/object.h"

namespace hocket {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(ObjectValue, TakesTheTypesOfCpp) {
  EXPECT_TRUE(Object().is_none());
  EXPECT_TRUE(Object(true).as_bool());
  EXPECT_EQ(Object(-7).as_integer(), -7);
  EXPECT_EQ(Object(std::size_t{9}).as_integer(), 9);
  EXPECT_EQ(Object(0.5f).as_double(), 0.5);
  EXPECT_EQ(Object(3).as_double(), 3.0);
  EXPECT_EQ(Object(std::complex<double>(1, -2)).as_complex(), std::complex<double>(1, -2));
  EXPECT_EQ(Object("voice").as_string(), "voice");
  EXPECT_EQ(Object(std::string_view("two")).as_string(), "two");
  const auto raw = bytes_of({0, 255, 7});
  EXPECT_EQ(Object::bytes(raw).as_bytes()[1], std::byte{255});
  EXPECT_EQ(Object::pickle(raw).kind(), ObjectKind::kPickle);
}

TEST(ObjectValue, ScalarsAndByteArraysAreKindsOfTheirOwn) {
  const float number = 0.5F;
  const Object scalar = Object::scalar({&number, 1, DType::kFloat32});
  EXPECT_EQ(scalar.kind(), ObjectKind::kScalar);
  EXPECT_EQ(scalar.as_array().dtype, DType::kFloat32);
  EXPECT_TRUE(scalar.as_array().shape.empty());
  EXPECT_FALSE(scalar == Object::array({&number, 1, DType::kFloat32}, {}));
  EXPECT_EQ(decode(encode(scalar)), scalar);
  EXPECT_EQ(Object::dict({{scalar, 1}}).find(scalar)->as_integer(), 1);
  const std::vector<float> two{1, 2};
  EXPECT_THROW(Object::scalar(two), InvalidArgument);

  const auto raw = bytes_of({0, 255, 7});
  const Object changeable = Object::byte_array(raw);
  EXPECT_EQ(changeable.kind(), ObjectKind::kByteArray);
  EXPECT_EQ(changeable.as_bytes()[1], std::byte{255});
  EXPECT_FALSE(changeable == Object::bytes(raw));
  EXPECT_EQ(decode(encode(changeable)), changeable);
  EXPECT_THROW(Object::dict({{changeable, 1}}), InvalidArgument);
  EXPECT_THROW(changeable.as_array(), InvalidArgument);
}

TEST(ObjectValue, DictKeepsOrderAndReplaces) {
  Object report{{"loss", 0.5}, {"step", 7}};
  report.set("step", 8);
  report.set(Object::tuple({1, "a"}), Object::list({1, 2, 3}));
  ASSERT_EQ(report.size(), 3u);
  EXPECT_EQ(report["loss"].as_double(), 0.5);
  EXPECT_EQ(report["step"].as_integer(), 8);
  EXPECT_EQ(report.entries()[2].second[1].as_integer(), 2);
  EXPECT_EQ(report.find("absent"), nullptr);
  EXPECT_EQ(report.find(true), nullptr);
}

TEST(ObjectValue, OneEntryOfTwoStringsIsADict) {
  const Object pair{{"name", "alto"}};
  ASSERT_EQ(pair.kind(), ObjectKind::kDict);
  EXPECT_EQ(pair["name"].as_string(), "alto");
}

TEST(ObjectValue, ArraysKeepShapeAndElements) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Object matrix = Object::array(values, {2, 3});
  EXPECT_EQ(matrix.as_array().dtype, DType::kFloat32);
  EXPECT_EQ(matrix.as_array().view().count(), 6u);
  EXPECT_EQ(static_cast<const float*>(matrix.as_array().view().data())[4], 5.0f);
  EXPECT_EQ(Object::array(values).as_array().shape, (std::vector<std::size_t>{6}));
  const Object copy = matrix;
  EXPECT_EQ(copy.shared_array(), matrix.shared_array());
  EXPECT_THROW(Object::array(values, {2, 4}), InvalidArgument);
  EXPECT_THROW(Object::array(values, {std::size_t{1} << 62, 8}), InvalidArgument);
  EXPECT_EQ(Object::array(std::vector<float>(), {0, 5}).as_array().data.size(), 0u);
}

TEST(ObjectValue, EqualityTellsKindsAndBitsApart) {
  EXPECT_EQ(Object(1), Object(1u));
  EXPECT_NE(Object(1), Object(1.0));
  EXPECT_NE(Object(1), Object(true));
  EXPECT_NE(Object(0.0), Object(-0.0));
  EXPECT_EQ(Object(std::nan("")), Object(std::nan("")));
  EXPECT_NE(Object::list({1}), Object::tuple({1}));
  EXPECT_NE(Object::bytes({}), Object::pickle({}));
  EXPECT_NE((Object{{"a", 1}, {"b", 2}}), (Object{{"b", 2}, {"a", 1}}));
}

TEST(ObjectValue, IntegersOfAnySize) {
  constexpr auto kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHighest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(Object(kLowest).decimal(), "-9223372036854775808");
  EXPECT_TRUE(Object::integer("-9223372036854775808").fits_int64());
  EXPECT_FALSE(Object::integer("9223372036854775808").fits_int64());
  EXPECT_EQ(Object(kHighest).decimal(), "18446744073709551615");
  EXPECT_THROW(Object(kHighest).as_integer(), InvalidArgument);
  EXPECT_EQ(Object::integer("+0012"), Object(12));
  EXPECT_EQ(Object::integer("-0"), Object(0));
  EXPECT_EQ(Object::integer(true, bytes_of({1, 0, 0})), Object(-1));
  // 2^70 and its neighbours, across the nine-digit groups.
  const Object large = Object::integer("-1180591620717411303424");
  EXPECT_TRUE(large.is_negative());
  EXPECT_EQ(large.magnitude(), bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 64}));
  EXPECT_EQ(large.decimal(), "-1180591620717411303424");
  const std::string ones(200, '1');
  EXPECT_EQ(Object::integer(ones).decimal(), ones);
  const std::string round = "1" + std::string(120, '0');
  EXPECT_EQ(Object::integer(round).decimal(), round);
  for (const char* wrong : {"", "-", "1 2", "0x10", "1.0", "--1"}) {
    EXPECT_THROW(Object::integer(wrong), InvalidArgument) << wrong;
  }
}

TEST(ObjectValue, StringsMustBeUtf8) {
  EXPECT_NO_THROW(Object("\u00e9\u20ac\U0001F3B5\U0010FFFF"));
  for (const char* wrong : {"\x80",
                            "\xc0\x80",
                            "\xc3",
                            "ab\xff",
                            "\xe0\x80\x80",
                            "\xed\xa0\x80",
                            "\xf0\x80\x80\x80",
                            "\xf4\x90\x80\x80",
                            "\xe2\x82",
                            "\xf5\x80\x80\x80"}) {
    EXPECT_THROW(Object{wrong}, InvalidArgument) << wrong;
  }
}

TEST(ObjectValue, RefusesWhatCannotBe) {
  EXPECT_THROW((Object{{"a", 1}, {"a", 2}}), InvalidArgument);
  EXPECT_THROW((Object{{Object::list(), 1}}), InvalidArgument);
  EXPECT_THROW((Object{{Object::tuple({Object{{"x", 1}}}), 1}}), InvalidArgument);
  Object text("x");
  EXPECT_THROW(text.as_integer(), InvalidArgument);
  EXPECT_THROW(text.append(1), InvalidArgument);
  EXPECT_THROW(text.set("a", 1), InvalidArgument);
  EXPECT_THROW(Object::list({1})[1], InvalidArgument);
  EXPECT_THROW(Object::list({1})[-1], InvalidArgument);
  EXPECT_THROW(Object::dict()["absent"], InvalidArgument);
  float x = 0;
  constexpr std::size_t kQuarter = SIZE_MAX / 4 + 1;  // floats that have no bytes, it seems
  EXPECT_THROW(Object::array({&x, SIZE_MAX, DType::kFloat32}), InvalidArgument);
  EXPECT_THROW(Object::array({&x, kQuarter, DType::kFloat32}), InvalidArgument);
  EXPECT_THROW(Object::array({&x, 1, static_cast<DType>(99)}), InvalidArgument);
  EXPECT_THROW(Object::array(ConstArrayView(nullptr, 1, DType::kFloat32)), InvalidArgument);
  try {
    text.as_bool();
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("the string \"x\""), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hocket
