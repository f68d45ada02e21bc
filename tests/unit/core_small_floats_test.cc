// hocket/small_floats.h against arithmetic done another way, over every code.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hocket/small_floats.h"

namespace hocket {
namespace {

// A format by its definition, in double arithmetic.
struct Definition {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  std::uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
  double value(std::uint32_t code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>((code & (sign() - 1)) >> mantissa_bits);
    const std::uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
    const int top = (1 << exponent_bits) - 1;
    const double negate = code & sign() ? -1.0 : 1.0;
    if (has_infinity && exponent == top) {
      return mantissa == 0 ? negate * HUGE_VAL : std::nan("");
    }
    if (!has_infinity && exponent == top && mantissa == (1u << mantissa_bits) - 1) {
      return std::nan("");
    }
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    return negate * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                   : std::ldexp(1.0 + fraction, exponent - bias));
  }
};

template <typename T>
Definition definition();
template <>
Definition definition<float16>() {
  return {5, 10, true};
}
template <>
Definition definition<bfloat16>() {
  return {8, 7, true};
}
template <>
Definition definition<float8_e4m3>() {
  return {4, 3, false};
}
template <>
Definition definition<float8_e5m2>() {
  return {5, 2, true};
}

template <typename T>
class SmallFloats : public testing::Test {
 public:
  using Bits = decltype(T::bits);
  static T of(std::uint32_t code) { return T::from_bits(static_cast<Bits>(code)); }
  static std::uint32_t codes() { return std::uint32_t{std::numeric_limits<Bits>::max()} + 1; }
};
using Types = testing::Types<float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(SmallFloats, Types);

TYPED_TEST(SmallFloats, EveryCodeHasItsValue) {
  const Definition format = definition<TypeParam>();
  for (std::uint32_t code = 0; code < this->codes(); ++code) {
    const double expected = format.value(code);
    const double got = static_cast<float>(this->of(code));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << code;
    } else {
      ASSERT_EQ(got, expected) << code;
      ASSERT_EQ(std::signbit(got), std::signbit(expected)) << code;
    }
  }
}

TYPED_TEST(SmallFloats, EveryCodeComesBack) {
  for (std::uint32_t code = 0; code < this->codes(); ++code) {
    const float value = this->of(code);
    const TypeParam again(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(again))) << code;
      ASSERT_FALSE(again == again) << code;
    } else {
      ASSERT_EQ(again.bits, code);
      ASSERT_TRUE(again == this->of(code));
    }
  }
}

// Between two neighbours: to the nearer, halfway to the even code, by a hair more to the upper.
TYPED_TEST(SmallFloats, RoundsToNearestEven) {
  const Definition format = definition<TypeParam>();
  for (std::uint32_t low = 0; low + 1 < format.sign(); ++low) {
    const double below = format.value(low);
    const double above = format.value(low + 1);
    if (!std::isfinite(below) || !std::isfinite(above)) break;
    const auto half = static_cast<float>((below + above) / 2);
    ASSERT_EQ((below + above) / 2, half) << "halves are floats";
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    ASSERT_EQ(TypeParam(half).bits, even);
    ASSERT_EQ(TypeParam(-half).bits, even | format.sign());
    ASSERT_EQ(TypeParam(std::nextafter(half, 0.0f)).bits, low);
    ASSERT_EQ(TypeParam(std::nextafter(half, HUGE_VALF)).bits, low + 1);
  }
}

TYPED_TEST(SmallFloats, NanKeepsItsSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t sign = definition<TypeParam>().sign();
  for (const float value : {nan, std::copysign(nan, -1.0f)}) {
    const TypeParam small(value);
    EXPECT_TRUE(std::isnan(static_cast<float>(small)));
    EXPECT_EQ((small.bits & sign) != 0, std::signbit(value));
  }
  // A payload in the lowest bits alone must not turn into infinity.
  const auto low = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(low))));
}

TEST(SmallFloatVectors, KnownCodes) {
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);  // halfway past the last: infinity
  EXPECT_EQ(float16(-HUGE_VALF).bits, 0xfc00);
  EXPECT_EQ(float16(5.9604645e-8f).bits, 0x0001);
  EXPECT_EQ(float16(2.9802322e-8f).bits, 0x0000);  // half of that: to even
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(3.14159265f).bits, 0x4049);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(float8_e4m3(448.0f).bits, 0x7e);
  EXPECT_EQ(float8_e4m3(464.0f).bits, 0x7e);  // halfway to where 480 would be: to even
  EXPECT_EQ(float8_e4m3(464.1f).bits, 0x7f);  // no infinity: NaN
  EXPECT_EQ(float8_e4m3(-HUGE_VALF).bits, 0xff);
  EXPECT_EQ(float8_e4m3(0.001953125f).bits, 0x01);
  EXPECT_EQ(float8_e5m2(57344.0f).bits, 0x7b);
  EXPECT_EQ(float8_e5m2(61440.0f).bits, 0x7c);
  EXPECT_EQ(float8_e5m2(-0.0f).bits, 0x80);
}

static_assert(float16(2.0f) == float16::from_bits(0x4000));
static_assert(static_cast<float>(bfloat16(-0.5f)) == -0.5f);
static_assert(static_cast<float>(float8_e4m3(0.0625f)) == 0.0625f);
static_assert(float8_e5m2().bits == 0);
static_assert(std::is_trivial_v<float16> && std::is_trivial_v<float8_e4m3>);

}  // namespace
}  // namespace hocket
