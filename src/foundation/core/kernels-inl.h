// The vectorized reduction. Each kernels_*.cc defines HWY_TARGET_INCLUDE and includes this file,
// and Highway's foreach_target compiles it once for each instruction set.
//
// A kernel combines an `Elements` type (elements-inl.h) with an operation. Whole vectors come
// first. The last few elements use the same operations, one element at a time.
#if defined(HOCKET_CORE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_CORE_KERNELS_INL_H_
#undef HOCKET_CORE_KERNELS_INL_H_
#else
#define HOCKET_CORE_KERNELS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "foundation/core/elements-inl.h"
#include "foundation/core/kernels.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
// The product of complex numbers (a + bi)(c + di) = (ac - bd) + (ad + bc)i. Real parts are in even
// lanes. Each term is rounded separately.
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
// Selects the lane of `a` if it is less, and otherwise the lane of `b`. If either is NaN, it is the
// lane of `b`.
template <class V>
HWY_INLINE V lesser_or_second(V a, V b) {
#if HWY_TARGET <= HWY_SSE4 && HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}
// The minimum. For floats it is the minimum of IEEE 754-2019: it computes the lesser lane in both
// argument orders. The two results differ only for zeros of different sign, or for NaN. Their
// bitwise or is then -0 or NaN.
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

// Computes one vector of the result, at byte `offset`. kSources is the number of sources if the
// compiler knows it. 0: there are `n` sources.
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

// Computes the lanes [i, count) of the result, one element at a time.
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

// Computes the result with ordinary stores: first four vectors at a time, then single vectors, then
// single elements.
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

// Computes the result with streaming stores:
//
//   | single elements | streamed vectors ...            | single elements |
//                     ^ start of a cache line
//
// Single elements are computed once, into the first out, and copied from there to the other outs.
// Computing them again would be wrong, because the first out may be a source.
template <class Elements, class Op, int kOuts, int kSources>
HWY_INLINE void reduce_streaming(void* const* outs,
                                 int n_outs,
                                 const void* const* sources,
                                 int n,
                                 std::size_t count,
                                 int average_over) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kBytes = Elements::kBytes;
  const int all_outs = kOuts > 0 ? kOuts : n_outs;
  const auto out = [&](int o) { return static_cast<std::byte*>(outs[o]); };
  const auto singles = [&](std::size_t first, std::size_t last) {
    reduce_singles<Elements, Op, kSources>(out(0), sources, n, first, last, average_over);
    for (int o = 1; o < all_outs; ++o) {
      std::memcpy(out(o) + first * kBytes, out(0) + first * kBytes, (last - first) * kBytes);
    }
  };
  const hn::ScalableTag<typename Elements::Lane> d;
  const std::size_t step = hn::Lanes(d);
  const std::size_t bytes_to_line = -reinterpret_cast<std::uintptr_t>(outs[0]) % kLine;
  std::size_t i = HWY_MIN(count, bytes_to_line / kBytes);
  singles(0, i);
  for (; i + step <= count; i += step) {
    const std::size_t at = i * kBytes;
    const auto v = accumulate<Elements, Op, kSources>(d, sources, n, at, average_over);
    for (int o = 0; o < all_outs; ++o) {
      Elements::template store<Stores::kStreaming>(d, v, out(o) + at);
    }
  }
  singles(i, count);
  hwy::FlushStream();
}

// A ReduceKernel with ordinary stores. Two sources, the most common case, have a loop of their own.
template <class Elements, class Op>
void kernel(void* const* outs,
            int n_outs,
            const void* const* sources,
            int n,
            std::size_t count,
            int average_over) {
  auto* bytes = static_cast<std::byte*>(outs[0]);
  const std::size_t lanes = count * Elements::kLanes;
  if (n == 2) {
    const void* const pair[2] = {sources[0], sources[1]};
    reduce_cached<Elements, Op, 2>(bytes, pair, 2, lanes, average_over);
  } else {
    reduce_cached<Elements, Op, 0>(bytes, sources, n, lanes, average_over);
  }
  if (n_outs > 1) copy_to_others(outs, n_outs, lanes * Elements::kBytes);
}

// Returns whether all outs have the same offset in a cache line, so that their elements reach the
// start of a line at the same index.
inline bool lie_alike(void* const* outs, int n_outs, std::size_t element_bytes) {
  constexpr std::uintptr_t kLine = 64;
  const auto place = [](const void* out) { return reinterpret_cast<std::uintptr_t>(out) % kLine; };
  for (int o = 1; o < n_outs; ++o) {
    if (place(outs[o]) != place(outs[0])) return false;
  }
  return place(outs[0]) % element_bytes == 0;
}

// A ReduceKernel with streaming stores, if the addresses of the outs allow them. Two sources have
// loops of their own, for one out and for two.
template <class Elements, class Op>
void streaming_kernel(void* const* outs,
                      int n_outs,
                      const void* const* sources,
                      int n,
                      std::size_t count,
                      int average_over) {
  if (!lie_alike(outs, n_outs, Elements::kLanes * Elements::kBytes)) {
    return kernel<Elements, Op>(outs, n_outs, sources, n, count, average_over);
  }
  const std::size_t lanes = count * Elements::kLanes;
  const auto run = [&]<int kOuts, int kSources>(void* const* to, const void* const* from) {
    reduce_streaming<Elements, Op, kOuts, kSources>(to, n_outs, from, n, lanes, average_over);
  };
  if (n != 2 || n_outs > 2) return run.template operator()<0, 0>(outs, sources);
  const void* const pair[2] = {sources[0], sources[1]};
  if (n_outs == 1) return run.template operator()<1, 2>(outs, pair);
  void* const both[2] = {outs[0], outs[1]};
  run.template operator()<2, 2>(both, pair);
}

// Returns the kernel for `stores`.
template <class Elements, class Op>
ReduceKernel kernel_for(Stores stores) {
  return stores == Stores::kStreaming ? &streaming_kernel<Elements, Op> : &kernel<Elements, Op>;
}

// Maps each ReduceOp to its operation.
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

// Returns the kernel of `op` if it is one of kOps, else null.
template <class Elements, ReduceOp... kOps>
ReduceKernel one_of(ReduceOp op, Stores stores) {
  ReduceKernel found = nullptr;
  ((op == kOps ? void(found = kernel_for<Elements, OperationOf<kOps>>(stores)) : void()), ...);
  return found;
}

// Returns the kernels of the five operations of real floats.
template <class Elements>
ReduceKernel real_kernel(ReduceOp op, Stores stores) {
  return one_of<Elements,
                ReduceOp::kSum,
                ReduceOp::kProduct,
                ReduceOp::kMin,
                ReduceOp::kMax,
                ReduceOp::kAvg>(op, stores);
}

// Convert whole arrays from elements in memory to arrays of lanes, and back. Narrowing divides by
// `divisor` first.
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
