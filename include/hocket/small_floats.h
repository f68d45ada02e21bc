// Floating-point numbers of 8 and 16 bits, for storage and conversion. Arithmetic uses float.
//
// All types here are values and trivial as float is, so without braces they are uninitialized. Any
// thread may use them, and nothing fails. Conversion to float is exact and implicit. Conversion
// from float is explicit and rounds to nearest, ties to even. NaN stays NaN and keeps its sign.
// Comparisons are those of the numbers.
#pragma once

#include <bit>
#include <cstdint>

#include "hocket/cplusplus.h"

namespace hocket {
namespace detail {

// The meaning of the highest exponent of a format.
enum class TopExponent {
  kInfinityAndNan,  // as IEEE 754: infinity, and NaN for every other mantissa
  kFiniteAndNan,    // OCP "FN": ordinary numbers, NaN for the mantissa of all ones alone
};

inline constexpr std::uint32_t kFloatInfinity = 0x7f800000u;
inline constexpr std::uint32_t kFloatQuietBit = 0x00400000u;

// A format with a sign bit, `ExponentBits` (fewer than float's 8) and `MantissaBits`.
template <int ExponentBits, int MantissaBits, TopExponent Top>
struct SmallFormat {
  static constexpr int kShift = 23 - MantissaBits;
  static constexpr std::uint32_t kBias = (1u << (ExponentBits - 1)) - 1;
  static constexpr std::uint32_t kSign = 1u << (ExponentBits + MantissaBits);
  static constexpr std::uint32_t kTopExponent = ((1u << ExponentBits) - 1) << MantissaBits;
  static constexpr bool kHasInfinity = Top == TopExponent::kInfinityAndNan;
  // Codes of magnitudes above this code are NaN. In a format with infinities, this code is
  // infinity.
  static constexpr std::uint32_t kLastNumber = kHasInfinity ? kTopExponent : kSign - 2;
  // A float whose unit in the last place is this format's smallest subnormal. Adding it to a
  // magnitude below the smallest normal rounds that magnitude to the right place.
  static constexpr std::uint32_t kSubnormalMagic = (127 + 23 + 1 - kBias - MantissaBits) << 23;
  static constexpr std::uint32_t kRebias = (127 - kBias) << 23;
  static constexpr std::uint32_t kSmallestNormal = kRebias + (1u << 23);

  static constexpr std::uint32_t encode(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t sign = (bits >> 31) * kSign;
    if (magnitude > kFloatInfinity) return sign | encode_nan(magnitude);
    if (magnitude < kSmallestNormal) {
      const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kSubnormalMagic);
      return sign | (std::bit_cast<std::uint32_t>(shifted) - kSubnormalMagic);
    }
    const std::uint32_t odd = (magnitude >> kShift) & 1;
    const std::uint32_t rounded =
        (magnitude - kRebias + ((1u << (kShift - 1)) - 1) + odd) >> kShift;
    return sign | (rounded > kLastNumber ? kOverflow : rounded);
  }

  static constexpr float decode(std::uint32_t code) noexcept {
    const std::uint32_t sign = code & kSign ? 0x80000000u : 0u;
    const std::uint32_t magnitude = code & (kSign - 1);
    if (magnitude > kLastNumber) {
      return std::bit_cast<float>(sign | kFloatInfinity | kFloatQuietBit |
                                  ((magnitude << kShift) & 0x007fffffu));
    }
    if (kHasInfinity && magnitude == kLastNumber) {
      return std::bit_cast<float>(sign | kFloatInfinity);
    }
    if (magnitude < (1u << MantissaBits)) {
      // The product of a power of two and a small integer is exact.
      constexpr float kUnit = std::bit_cast<float>((127 + 1 - kBias - MantissaBits) << 23);
      const float subnormal = static_cast<float>(magnitude) * kUnit;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
    }
    return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
  }

  // The code of a number that is too large: infinity, or NaN in a format without infinity.
  static constexpr std::uint32_t kOverflow = kHasInfinity ? kTopExponent : kSign - 1;
  // Formats of 16 bits keep the top of a NaN's payload and make the NaN quiet, as processors do.
  // Formats of 8 bits have one NaN for each sign.
  static constexpr bool kKeepsPayload = MantissaBits >= 8;

  static constexpr std::uint32_t encode_nan(std::uint32_t magnitude) noexcept {
    if constexpr (!kHasInfinity) return kSign - 1;
    const std::uint32_t payload =
        kKeepsPayload ? (magnitude >> kShift) & ((1u << MantissaBits) - 1) : 0u;
    return kTopExponent | (1u << (MantissaBits - 1)) | payload;
  }
};

using Float16Format = SmallFormat<5, 10, TopExponent::kInfinityAndNan>;
using Float8E4M3Format = SmallFormat<4, 3, TopExponent::kFiniteAndNan>;
using Float8E5M2Format = SmallFormat<5, 2, TopExponent::kInfinityAndNan>;

// The upper half of a float.
struct BFloat16Format {
  static constexpr std::uint32_t encode(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > kFloatInfinity) return (bits | kFloatQuietBit) >> 16;
    return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  }
  static constexpr float decode(std::uint32_t code) noexcept {
    return std::bit_cast<float>(code << 16);
  }
};

}  // namespace detail

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa; largest number 65504.
struct float16 {
  std::uint16_t bits;

  constexpr float16() noexcept = default;
  constexpr explicit float16(float value) noexcept
      : bits(static_cast<std::uint16_t>(detail::Float16Format::encode(value))) {}
  static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 result{};
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept { return detail::Float16Format::decode(bits); }
  friend constexpr bool operator==(float16 a, float16 b) noexcept { return float(a) == float(b); }
};

// The upper 16 bits of a float32: 8 bits of exponent, 7 of mantissa.
struct bfloat16 {
  std::uint16_t bits;

  constexpr bfloat16() noexcept = default;
  constexpr explicit bfloat16(float value) noexcept
      : bits(static_cast<std::uint16_t>(detail::BFloat16Format::encode(value))) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 result{};
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept { return detail::BFloat16Format::decode(bits); }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) noexcept { return float(a) == float(b); }
};

// OCP 8-bit float "E4M3 FN": largest number 448, no infinities. NaN is 0x7f or 0xff. A number that
// is too large becomes NaN.
struct float8_e4m3 {
  std::uint8_t bits;

  constexpr float8_e4m3() noexcept = default;
  constexpr explicit float8_e4m3(float value) noexcept
      : bits(static_cast<std::uint8_t>(detail::Float8E4M3Format::encode(value))) {}
  static constexpr float8_e4m3 from_bits(std::uint8_t bits) noexcept {
    float8_e4m3 result{};
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept { return detail::Float8E4M3Format::decode(bits); }
  friend constexpr bool operator==(float8_e4m3 a, float8_e4m3 b) noexcept {
    return float(a) == float(b);
  }
};

// OCP 8-bit float "E5M2": the upper half of a float16; largest number 57344, with infinities.
struct float8_e5m2 {
  std::uint8_t bits;

  constexpr float8_e5m2() noexcept = default;
  constexpr explicit float8_e5m2(float value) noexcept
      : bits(static_cast<std::uint8_t>(detail::Float8E5M2Format::encode(value))) {}
  static constexpr float8_e5m2 from_bits(std::uint8_t bits) noexcept {
    float8_e5m2 result{};
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept { return detail::Float8E5M2Format::decode(bits); }
  friend constexpr bool operator==(float8_e5m2 a, float8_e5m2 b) noexcept {
    return float(a) == float(b);
  }
};

}  // namespace hocket
