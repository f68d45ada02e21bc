// Loads, combines and stores vectors of each element type: the part of a kernel that depends on the
// format of the elements. It is compiled once for each instruction set; see kernels-inl.h.
#if defined(HOCKET_CORE_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_CORE_ELEMENTS_INL_H_
#undef HOCKET_CORE_ELEMENTS_INL_H_
#else
#define HOCKET_CORE_ELEMENTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "foundation/core/reduce.h"
#include "hocket/small_floats.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads a vector from any address. A vector shorter than 16 bytes is copied to a temporary array
// first, because Highway would read it through a typed pointer.
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

// Stores a vector. For streaming stores, `to` must be aligned to the vector. No streamed vector is
// shorter than 16 bytes.
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

// ---- Elements. Each type below describes how kernels handle one format:
//   kBytes          the size of a Lane in memory
//   kLanes          the number of lanes of an element, 2 for complex numbers
//   load, store     move a vector between memory and registers
//   apply, finish   combine two vectors; divide the last one, for averages
//   Tail            the type that handles single elements

// The base of elements whose loaded form is one vector.
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

// Elements whose lanes have the same format in memory and in registers.
template <typename T, int kLanesOfElement = 1>
struct NativeLanes : OneVector {
  using Lane = T;
  using Tail = NativeLanes;
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

// Booleans, in bytes. Any value except zero is true.
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

// Bytes in 16-bit lanes, for products: processors cannot multiply vectors of bytes. A store
// discards the upper half of each lane.
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

// Converts the codes of a small float format, in the low bits of 32-bit lanes, to float and back.
// Each lane gives the same bits as the functions of hocket/small_floats.h.
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
// float16 with the processor's own conversions, which give the same bits as Codec.
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

// bfloat16: the upper halves of floats.
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

  // Returns the bits of `v`, rounded so that the upper halves are the codes. The lower halves are
  // undefined.
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
// bfloat16 without shuffles. Each 32-bit word holds two neighbours. One goes to a lane of the
// vector `even`, and the other to a lane of the vector `odd`. This assumes little-endian order,
// which all of Highway's targets have.
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

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
