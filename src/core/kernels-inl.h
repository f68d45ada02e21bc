// The vectorised reduction, compiled once for each instruction set by Highway's foreach_target; a
// kernels_*.cc includes it after defining HWY_TARGET_INCLUDE.
//
// A kernel is put together from `Elements` (how lanes are loaded from and stored to memory) and an
// operation. Whole vectors and the last few elements run the same code, the latter one at a time.
#if defined(HOCKET_CORE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_CORE_KERNELS_INL_H_
#undef HOCKET_CORE_KERNELS_INL_H_
#else
#define HOCKET_CORE_KERNELS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernels.h"
#include "hocket/small_floats.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Any alignment. Vectors shorter than 16 bytes go by way of an array, since Highway reads those
// through a typed pointer.
template <class D>
HWY_INLINE hn::VFromD<D> load_lanes(D d, const std::byte* from) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) < 16) {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    std::memcpy(lanes, from, sizeof(lanes));
    return hn::Load(d, lanes);
  } else {
    return hn::LoadU(d, reinterpret_cast<const T*>(from));
  }
}

// Streaming stores want `to` aligned to the vector; none are shorter than 16 bytes.
template <Stores kStores, class D>
HWY_INLINE void store_lanes(D d, hn::VFromD<D> v, std::byte* to) {
  using T = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(D()) * sizeof(T) < 16) {
    HWY_ALIGN T lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    std::memcpy(to, lanes, sizeof(lanes));
  } else if constexpr (kStores == Stores::kStreaming) {
    hn::Stream(v, d, reinterpret_cast<T*>(to));
  } else {
    hn::StoreU(v, d, reinterpret_cast<T*>(to));
  }
}

// ---- Elements: kBytes is the size in memory of a Lane, kLanes the lanes of an element; load and
// store move a vector of them, apply and finish compute; Tail does the same for single elements.

// Of those whose loaded form is one vector.
struct OneVector {
  template <class Op, class V>
  static HWY_INLINE V apply(V a, V b) {
    return Op::apply(a, b);
  }
  template <class Op, class D>
  static HWY_INLINE hn::VFromD<D> finish([[maybe_unused]] D d,
                                         hn::VFromD<D> v,
                                         [[maybe_unused]] int average_over) {
    if constexpr (Op::kDivides) {
      return hn::Div(v, hn::Set(d, static_cast<hn::TFromD<D>>(average_over)));
    } else {
      return v;
    }
  }
};

// Lanes that lie in memory as they are.
template <typename T, int kLanesOfElement = 1>
struct Plain : OneVector {
  using Lane = T;
  using Tail = Plain;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr std::size_t kLanes = kLanesOfElement;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    return load_lanes(d, from);
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, std::byte* to) {
    store_lanes<kStores>(d, v, to);
  }
};

// Bytes of which any but zero is true.
struct Booleans : OneVector {
  using Tail = Booleans;
  using Lane = std::uint8_t;
  static constexpr std::size_t kBytes = 1;
  static constexpr std::size_t kLanes = 1;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    return hn::Min(load_lanes(d, from), hn::Set(d, std::uint8_t{1}));
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, std::byte* to) {
    store_lanes<kStores>(d, v, to);
  }
};

// Bytes in lanes of 16 bits, for the product that the processors lack; the excess is cut off.
struct WideBytes : OneVector {
  using Tail = WideBytes;
  using Lane = std::uint16_t;
  static constexpr std::size_t kBytes = 1;
  static constexpr std::size_t kLanes = 1;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    return hn::PromoteTo(d, load_lanes(hn::Rebind<std::uint8_t, D>(), from));
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, std::byte* to) {
    const hn::Rebind<std::int16_t, D> signed_tag;
    const hn::Rebind<std::uint8_t, D> byte_tag;
    const auto low = hn::And(v, hn::Set(d, Lane{0xff}));
    store_lanes<kStores>(byte_tag, hn::DemoteTo(byte_tag, hn::BitCast(signed_tag, low)), to);
  }
};

// Codes of a small float, in the low bits of 32-bit lanes, to float and back: what
// hocket/small_floats.h does, lane by lane.
template <class Format>
struct Codec {
  template <class D>
  static HWY_INLINE hn::VFromD<D> decode(D d, hn::VFromD<hn::RebindToUnsigned<D>> code) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    constexpr std::uint32_t kMantissas = 1u << (23 - Format::kShift);
    constexpr std::uint32_t kUnit = Format::kSmallestNormal - ((23 - Format::kShift) << 23);
    const auto magnitude = hn::And(code, hn::Set(du, Format::kSign - 1));
    const auto sign = hn::ShiftLeft<kSignShift>(hn::Xor(code, magnitude));
    const auto shifted = hn::ShiftLeft<Format::kShift>(magnitude);
    const auto normal = hn::BitCast(d, hn::Add(shifted, hn::Set(du, Format::kRebias)));
    const auto subnormal =
        hn::Mul(hn::ConvertTo(d, hn::BitCast(di, magnitude)), hn::BitCast(d, hn::Set(du, kUnit)));
    auto value = hn::IfThenElse(
        as_float_mask(d, hn::Lt(magnitude, hn::Set(du, kMantissas))), subnormal, normal);
    value = hn::IfThenElse(as_float_mask(d, hn::Gt(magnitude, hn::Set(du, Format::kLastNumber))),
                           hn::BitCast(d, hn::Or(shifted, hn::Set(du, 0x7fc00000u))),
                           value);
    if constexpr (Format::kHasInfinity) {
      value = hn::IfThenElse(as_float_mask(d, hn::Eq(magnitude, hn::Set(du, Format::kLastNumber))),
                             hn::BitCast(d, hn::Set(du, detail::kFloatInfinity)),
                             value);
    }
    return hn::Or(value, hn::BitCast(d, sign));
  }

  template <class D>
  static HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> encode(D d, hn::VFromD<D> value) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, value);
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffffu));
    const auto sign = hn::ShiftRight<kSignShift>(hn::Xor(bits, magnitude));
    const auto magic = hn::Set(du, Format::kSubnormalMagic);
    const auto subnormal =
        hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magic))), magic);
    const auto odd = hn::And(hn::ShiftRight<Format::kShift>(magnitude), hn::Set(du, 1u));
    constexpr std::uint32_t kHalf = (1u << (Format::kShift - 1)) - 1;
    const auto rounded = hn::ShiftRight<Format::kShift>(
        hn::Add(hn::Add(magnitude, odd), hn::Set(du, kHalf - Format::kRebias)));
    auto code = hn::IfThenElse(
        hn::Gt(rounded, hn::Set(du, Format::kLastNumber)), hn::Set(du, Format::kOverflow), rounded);
    code = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, Format::kSmallestNormal)), subnormal, code);
    code = hn::IfThenElse(
        hn::Gt(magnitude, hn::Set(du, detail::kFloatInfinity)), encode_nan(du, magnitude), code);
    return hn::Or(code, sign);
  }

 private:
  static constexpr int kSignShift = 31 - (__builtin_ctz(Format::kSign));

  template <class D, class M>
  static HWY_INLINE auto as_float_mask(D d, M mask) {
    return hn::RebindMask(d, mask);
  }
  template <class DU>
  static HWY_INLINE hn::VFromD<DU> encode_nan(DU du, hn::VFromD<DU> magnitude) {
    const auto base = hn::Set(du, Format::encode_nan(0));
    if constexpr (Format::kKeepsPayload) {
      constexpr std::uint32_t kPayload = (1u << (23 - Format::kShift)) - 1;
      return hn::Or(base,
                    hn::And(hn::ShiftRight<Format::kShift>(magnitude), hn::Set(du, kPayload)));
    } else {
      return base;
    }
  }
};

// Small floats of 1 or 2 bytes in lanes of float32.
template <class Format, typename Stored>
struct SmallFloats : OneVector {
  using Tail = SmallFloats;
  using Lane = float;
  static constexpr std::size_t kBytes = sizeof(Stored);
  static constexpr std::size_t kLanes = 1;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    const hn::RebindToUnsigned<D> du;
    return Codec<Format>::decode(d, hn::PromoteTo(du, load_lanes(hn::Rebind<Stored, D>(), from)));
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, std::byte* to) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<Stored, D> stored;
    store_lanes<kStores>(
        stored, hn::DemoteTo(stored, hn::BitCast(di, Codec<Format>::encode(d, v))), to);
  }
};

#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
// float16 by the processor's own conversions, which give the same bits.
struct Float16s : OneVector {
  using Tail = Float16s;
  using Lane = float;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kLanes = 1;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    const hn::Rebind<std::uint16_t, D> codes;
    const hn::Rebind<hwy::float16_t, D> halves;
    return hn::PromoteTo(d, hn::BitCast(halves, load_lanes(codes, from)));
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D /*d*/, hn::VFromD<D> v, std::byte* to) {
    const hn::Rebind<std::uint16_t, D> codes;
    const hn::Rebind<hwy::float16_t, D> halves;
    store_lanes<kStores>(codes, hn::BitCast(codes, hn::DemoteTo(halves, v)), to);
  }
};
#else
using Float16s = SmallFloats<detail::Float16Format, std::uint16_t>;
#endif

// bfloat16, the upper halves of floats.
struct BFloat16s : OneVector {
  using Lane = float;
  using Tail = BFloat16s;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kLanes = 1;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const std::byte* from) {
    const hn::RebindToUnsigned<D> du;
    const auto codes = hn::PromoteTo(du, load_lanes(hn::Rebind<std::uint16_t, D>(), from));
    return hn::BitCast(d, hn::ShiftLeft<16>(codes));
  }
  template <Stores kStores, class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, std::byte* to) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<std::uint16_t, D> stored;
    const auto code = hn::ShiftRight<16>(round_upper_half(d, v));
    store_lanes<kStores>(stored, hn::DemoteTo(stored, hn::BitCast(di, code)), to);
  }

  // The bits of `v`, rounded so that the upper halves are the codes; the lower ones are anything.
  template <class D>
  static HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> round_upper_half(D /*d*/, hn::VFromD<D> v) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd);
    const auto quiet = hn::Or(bits, hn::Set(du, detail::kFloatQuietBit));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  }
};

#if HWY_TARGET == HWY_SCALAR
using BFloat16Pairs = BFloat16s;
#else
// bfloat16 without shuffles: a pair of neighbours in 32 bits becomes a lane each of two vectors.
// Little-endian, as all of Highway's targets are.
struct BFloat16Pairs {
  using Lane = std::uint16_t;
  using Tail = BFloat16s;
  static constexpr std::size_t kBytes = 2;
  static constexpr std::size_t kLanes = 1;
  template <class V>
  struct Pair {
    V even, odd;
  };
  template <class D>
  using Floats = hn::Rebind<float, hn::RepartitionToWide<D>>;

  template <class D>
  static HWY_INLINE auto load(D d, const std::byte* from) {
    const hn::RepartitionToWide<D> du;
    const Floats<D> df;
    const auto codes = hn::BitCast(du, load_lanes(d, from));
    return Pair<hn::VFromD<Floats<D>>>{hn::BitCast(df, hn::ShiftLeft<16>(codes)),
                                       hn::BitCast(df, hn::And(codes, hn::Set(du, 0xffff0000u)))};
  }
  template <class Op, class V>
  static HWY_INLINE Pair<V> apply(Pair<V> a, Pair<V> b) {
    return {Op::apply(a.even, b.even), Op::apply(a.odd, b.odd)};
  }
  template <class Op, class D, class V>
  static HWY_INLINE Pair<V> finish(D /*d*/, Pair<V> v, int average_over) {
    return {OneVector::finish<Op>(Floats<D>(), v.even, average_over),
            OneVector::finish<Op>(Floats<D>(), v.odd, average_over)};
  }
  template <Stores kStores, class D, class V>
  static HWY_INLINE void store(D d, Pair<V> v, std::byte* to) {
    const hn::RepartitionToWide<D> du;
    const auto even = hn::ShiftRight<16>(BFloat16s::round_upper_half(Floats<D>(), v.even));
    const auto odd =
        hn::And(BFloat16s::round_upper_half(Floats<D>(), v.odd), hn::Set(du, 0xffff0000u));
    store_lanes<kStores>(d, hn::BitCast(d, hn::Or(even, odd)), to);
  }
};
#endif

// ---- Operations on vectors.

struct Sum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Average : Sum {
  static constexpr bool kDivides = true;
};
struct Product {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Mul(a, b);
  }
};
#if HWY_TARGET != HWY_SCALAR
// Of complex numbers, real parts in even lanes: (ac - bd) + (ad + bc)i, each term rounded by
// itself.
struct ComplexProduct {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    const V by_real = hn::Mul(hn::DupEven(a), b);
    const V by_imaginary = hn::Mul(hn::DupOdd(a), hn::Reverse2(hn::DFromV<V>(), b));
    return hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary));
  }
};
#endif
struct BitAnd {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::And(a, b);
  }
};
struct BitOr {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Or(a, b);
  }
};
struct BitXor {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    return hn::Xor(a, b);
  }
};
// A lane of `a` where it is less, else of `b`: of `b` too where either is NaN.
template <class V>
HWY_INLINE V lesser_or_second(V a, V b) {
#if HWY_TARGET <= HWY_SSE4 && HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}
// For floats IEEE 754-2019's minimum. Asked both ways, the two answers differ only where the
// arguments are zeros of two signs, or NaN is among them; or-ing them gives -0 and NaN there.
struct Minimum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Or(lesser_or_second(a, b), lesser_or_second(b, a));
    } else {
      return hn::Min(a, b);
    }
  }
};
struct Maximum {
  static constexpr bool kDivides = false;
  template <class V>
  static HWY_INLINE V apply(V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::Neg(Minimum::apply(hn::Neg(a), hn::Neg(b)));
    } else {
      return hn::Max(a, b);
    }
  }
};

// ---- The loop.

// One vector of the result, from byte `offset` on. kSources of 0 means `n` of them.
template <class Elements, class Op, int kSources, class D>
HWY_INLINE auto accumulate(
    D d, const void* const* sources, int n, std::size_t offset, int average_over) {
  const int n_sources = kSources > 0 ? kSources : n;
  auto v = Elements::load(d, static_cast<const std::byte*>(sources[0]) + offset);
  for (int s = 1; s < n_sources; ++s) {
    v = Elements::template apply<Op>(
        v, Elements::load(d, static_cast<const std::byte*>(sources[s]) + offset));
  }
  return Elements::template finish<Op>(d, v, average_over);
}

// Lanes [i, count), an element at a time.
template <class Elements, class Op, int kSources>
HWY_INLINE void reduce_singles(std::byte* out,
                               const void* const* sources,
                               int n,
                               std::size_t i,
                               std::size_t count,
                               int average_over) {
  using Tail = typename Elements::Tail;
  const hn::CappedTag<typename Tail::Lane, Tail::kLanes> single;
  for (; i < count; i += hn::Lanes(single)) {
    const std::size_t at = i * Tail::kBytes;
    const auto v = accumulate<Tail, Op, kSources>(single, sources, n, at, average_over);
    Tail::template store<Stores::kCached>(single, v, out + at);
  }
}

// Four vectors at a time, then one, then single elements.
template <class Elements, class Op, int kSources>
HWY_INLINE void reduce_cached(
    std::byte* out, const void* const* sources, int n, std::size_t count, int average_over) {
  const hn::ScalableTag<typename Elements::Lane> d;
  constexpr Stores kStores = Stores::kCached;
  const std::size_t step = hn::Lanes(d);
  const std::size_t bytes = step * Elements::kBytes;
  std::size_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    const std::size_t at = i * Elements::kBytes;
    const auto v0 = accumulate<Elements, Op, kSources>(d, sources, n, at, average_over);
    const auto v1 = accumulate<Elements, Op, kSources>(d, sources, n, at + bytes, average_over);
    const auto v2 = accumulate<Elements, Op, kSources>(d, sources, n, at + 2 * bytes, average_over);
    const auto v3 = accumulate<Elements, Op, kSources>(d, sources, n, at + 3 * bytes, average_over);
    Elements::template store<kStores>(d, v0, out + at);
    Elements::template store<kStores>(d, v1, out + at + bytes);
    Elements::template store<kStores>(d, v2, out + at + 2 * bytes);
    Elements::template store<kStores>(d, v3, out + at + 3 * bytes);
  }
  for (; i + step <= count; i += step) {
    const std::size_t at = i * Elements::kBytes;
    const auto v = accumulate<Elements, Op, kSources>(d, sources, n, at, average_over);
    Elements::template store<kStores>(d, v, out + at);
  }
  reduce_singles<Elements, Op, kSources>(out, sources, n, i, count, average_over);
}

// Single elements up to a cache line's begin, streamed vectors, single elements.
template <class Elements, class Op, int kSources>
HWY_INLINE void reduce_streaming(
    std::byte* out, const void* const* sources, int n, std::size_t count, int average_over) {
  constexpr std::size_t kLine = 64;
  const hn::ScalableTag<typename Elements::Lane> d;
  const std::size_t step = hn::Lanes(d);
  const std::size_t bytes_to_line = -reinterpret_cast<std::uintptr_t>(out) % kLine;
  std::size_t i = HWY_MIN(count, bytes_to_line / Elements::kBytes);
  reduce_singles<Elements, Op, kSources>(out, sources, n, 0, i, average_over);
  for (; i + step <= count; i += step) {
    const std::size_t at = i * Elements::kBytes;
    const auto v = accumulate<Elements, Op, kSources>(d, sources, n, at, average_over);
    Elements::template store<Stores::kStreaming>(d, v, out + at);
  }
  reduce_singles<Elements, Op, kSources>(out, sources, n, i, count, average_over);
  hwy::FlushStream();
}

// A ReduceKernel. Two sources, the commonest case, get a loop of their own.
template <class Elements, class Op>
void kernel(void* out, const void* const* sources, int n, std::size_t count, int average_over) {
  auto* bytes = static_cast<std::byte*>(out);
  const std::size_t lanes = count * Elements::kLanes;
  if (n == 2) {
    const void* const pair[2] = {sources[0], sources[1]};
    reduce_cached<Elements, Op, 2>(bytes, pair, 2, lanes, average_over);
  } else {
    reduce_cached<Elements, Op, 0>(bytes, sources, n, lanes, average_over);
  }
}

// The same with streaming stores, where elements can meet the beginning of a cache line.
template <class Elements, class Op>
void streaming_kernel(
    void* out, const void* const* sources, int n, std::size_t count, int average_over) {
  constexpr std::size_t kElementBytes = Elements::kLanes * Elements::kBytes;
  if (reinterpret_cast<std::uintptr_t>(out) % kElementBytes != 0) {
    return kernel<Elements, Op>(out, sources, n, count, average_over);
  }
  auto* bytes = static_cast<std::byte*>(out);
  const std::size_t lanes = count * Elements::kLanes;
  if (n == 2) {
    const void* const pair[2] = {sources[0], sources[1]};
    reduce_streaming<Elements, Op, 2>(bytes, pair, 2, lanes, average_over);
  } else {
    reduce_streaming<Elements, Op, 0>(bytes, sources, n, lanes, average_over);
  }
}

// The kernel for `stores`.
template <class Elements, class Op>
ReduceKernel kernel_for(Stores stores) {
  return stores == Stores::kStreaming ? &streaming_kernel<Elements, Op> : &kernel<Elements, Op>;
}

// The operation of each ReduceOp.
template <ReduceOp kOp>
struct OperationOf;
template <>
struct OperationOf<ReduceOp::kSum> : Sum {};
template <>
struct OperationOf<ReduceOp::kProduct> : Product {};
template <>
struct OperationOf<ReduceOp::kMin> : Minimum {};
template <>
struct OperationOf<ReduceOp::kMax> : Maximum {};
template <>
struct OperationOf<ReduceOp::kAvg> : Average {};
template <>
struct OperationOf<ReduceOp::kBitAnd> : BitAnd {};
template <>
struct OperationOf<ReduceOp::kBitOr> : BitOr {};
template <>
struct OperationOf<ReduceOp::kBitXor> : BitXor {};

// The kernel of `op` if it is one of kOps, else null.
template <class Elements, ReduceOp... kOps>
ReduceKernel one_of(ReduceOp op, Stores stores) {
  ReduceKernel found = nullptr;
  ((op == kOps ? void(found = kernel_for<Elements, OperationOf<kOps>>(stores)) : void()), ...);
  return found;
}

// The five operations of real floats.
template <class Elements>
ReduceKernel real_kernel(ReduceOp op, Stores stores) {
  return one_of<Elements,
                ReduceOp::kSum,
                ReduceOp::kProduct,
                ReduceOp::kMin,
                ReduceOp::kMax,
                ReduceOp::kAvg>(op, stores);
}

// Elements to lanes and back, for whole arrays.
template <class Elements>
void widen_array(void* out, const void* in, std::size_t count) {
  using Lane = typename Elements::Lane;
  const hn::ScalableTag<Lane> d;
  const hn::CappedTag<Lane, 1> one;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    store_lanes<Stores::kCached>(
        d, Elements::load(d, from + i * Elements::kBytes), to + i * sizeof(Lane));
  }
  for (; i < count; ++i) {
    store_lanes<Stores::kCached>(
        one, Elements::load(one, from + i * Elements::kBytes), to + i * sizeof(Lane));
  }
}

template <class Elements>
void narrow_array(void* out, const void* in, std::size_t count, float divisor) {
  using Lane = typename Elements::Lane;
  const hn::ScalableTag<Lane> d;
  const hn::CappedTag<Lane, 1> one;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  const std::size_t step = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + step <= count; i += step) {
    const auto v = hn::Div(load_lanes(d, from + i * sizeof(Lane)), hn::Set(d, divisor));
    Elements::template store<Stores::kCached>(d, v, to + i * Elements::kBytes);
  }
  for (; i < count; ++i) {
    const auto v = hn::Div(load_lanes(one, from + i * sizeof(Lane)), hn::Set(one, divisor));
    Elements::template store<Stores::kCached>(one, v, to + i * Elements::kBytes);
  }
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
