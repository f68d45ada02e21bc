// Conversions between the elements of a vector and the wider numbers in which a reduction computes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engines/peer/kernels/marks.h"
#include "engines/peer/kernels/vectors.h"
#include "hocket/small_floats.h"

namespace hocket::engines::peer {

// A complex number.
template <typename Real>
struct Pair {
  Real real, imaginary;
};

// Describes how a reduction handles elements of type T. They are stored as `Stored` and computed as
// `Wide`. The choice is the same as in foundation/core/reduce.h.
template <typename T>
struct Number {
  using Stored = T;
  using Wide =
      std::conditional_t<std::is_integral_v<T> && (sizeof(T) < 4),
                         std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                         T>;
  static HOCKET_ANYWHERE Wide widen(T value) { return static_cast<Wide>(value); }
  static HOCKET_ANYWHERE T narrow(Wide value) { return static_cast<T>(value); }
};

template <typename Real>
struct Number<Pair<Real>> {
  using Stored = Pair<Real>;
  using Wide = Pair<Real>;
  static HOCKET_ANYWHERE Wide widen(Stored value) { return value; }
  static HOCKET_ANYWHERE Stored narrow(Wide value) { return value; }
};

template <typename Format, typename Code>
struct CodedNumber {
  using Stored = Code;
  using Wide = float;
  static HOCKET_ANYWHERE float widen(Code code) { return Format::decode(code); }
  static HOCKET_ANYWHERE Code narrow(float value) {
    return static_cast<Code>(Format::encode(value));
  }
};

template <>
struct Number<float8_e5m2> : CodedNumber<detail::Float8E5M2Format, std::uint8_t> {};
template <>
struct Number<float8_e4m3> : CodedNumber<detail::Float8E4M3Format, std::uint8_t> {};

// GPUs convert 16-bit floats in hardware. The results are those of the code for hosts, except the
// payloads of NaNs.
#ifdef __CUDA_ARCH__
template <>
struct Number<float16> {
  using Stored = std::uint16_t;
  using Wide = float;
  static HOCKET_ANYWHERE float widen(std::uint16_t code) {
    float value;
    asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"(code));
    return value;
  }
  static HOCKET_ANYWHERE std::uint16_t narrow(float value) {
    std::uint16_t code;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(code) : "f"(value));
    return code;
  }
};
template <>
struct Number<bfloat16> {
  using Stored = std::uint16_t;
  using Wide = float;
  static HOCKET_ANYWHERE float widen(std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
  }
  static HOCKET_ANYWHERE std::uint16_t narrow(float value) {
    std::uint16_t code;
    asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; mov.b16 %0, h; }" : "=h"(code) : "f"(value));
    return code;
  }
};
#else
template <>
struct Number<float16> : CodedNumber<detail::Float16Format, std::uint16_t> {};
template <>
struct Number<bfloat16> : CodedNumber<detail::BFloat16Format, std::uint16_t> {};
#endif

}  // namespace hocket::engines::peer
