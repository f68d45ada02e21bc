#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/digest.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "hwy/highway.h"
// clang-format on

#include "foundation/core/digest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

// This part is the same for all instruction sets, so it is compiled once.
#ifndef HOCKET_CORE_DIGEST_SHARED_
#define HOCKET_CORE_DIGEST_SHARED_
namespace hocket::core {
namespace {

constexpr std::size_t kLanes = 8;  // words of 64 bits; together a stripe
constexpr std::size_t kStripe = kLanes * sizeof(std::uint64_t);

// The weights are odd, so that a difference in a single lane changes the total.
constexpr std::array<std::uint64_t, kLanes> kWeights = {0x9e3779b97f4a7c15,
                                                        0xbf58476d1ce4e5b9,
                                                        0x94d049bb133111eb,
                                                        0xd6e8feb86659fd93,
                                                        0xa0761d6478bd642f,
                                                        0xe7037ed1a0b428db,
                                                        0x8ebc6af09c88c6e3,
                                                        0x589965cc75374cc3};

// The rotation of `order`'s state from one word of a lane to the next. Without it, equal changes of
// two words, such as the signs of two numbers, could cancel.
constexpr int kTurn = 41;

// The exponent bits of an element type within a word of 64 bits. An element is an infinity or a NaN
// if all exponent bits are set in one of its lanes of `lane_bytes`.
struct Exponents {
  std::uint64_t mask = 0;  // 0: every value is finite
  std::uint32_t full = 0;  // the exponent bits of one lane
  int lane_bytes = 4;
};

constexpr Exponents exponents_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return {};
    case DType::kFloat16:
      return {0x7c007c007c007c00, 0x7c00, 2};
    case DType::kBFloat16:
      return {0x7f807f807f807f80, 0x7f80, 2};
    case DType::kFloat32:
    case DType::kComplex64:
      return {0x7f8000007f800000, 0x7f800000, 4};
    case DType::kFloat64:
    case DType::kComplex128:
      return {0x7ff0000000000000, 0x7ff00000, 4};  // in the word's upper half
    case DType::kFloat8E4M3:
      return {0x7f7f7f7f7f7f7f7f, 0x7f, 1};  // it has no infinities
    case DType::kFloat8E5M2:
      return {0x7c7c7c7c7c7c7c7c, 0x7c, 1};
  }
  return {};
}

constexpr std::uint64_t mixed(std::uint64_t sum) noexcept { return sum ^ (sum >> 29); }

template <typename Lane>
bool has_full_lane(std::uint64_t masked, std::uint32_t full) noexcept {
  for (std::size_t i = 0; i < sizeof(masked) / sizeof(Lane); ++i) {
    if (static_cast<Lane>(masked >> (8 * sizeof(Lane) * i)) == static_cast<Lane>(full)) return true;
  }
  return false;
}

bool has_full(std::uint64_t word, const Exponents& exponents) noexcept {
  const std::uint64_t masked = word & exponents.mask;
  if (exponents.lane_bytes == 1) return has_full_lane<std::uint8_t>(masked, exponents.full);
  if (exponents.lane_bytes == 2) return has_full_lane<std::uint16_t>(masked, exponents.full);
  return has_full_lane<std::uint32_t>(masked, exponents.full);
}

}  // namespace
}  // namespace hocket::core
#endif

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Combines the states of all lanes into the digest of a block.
HWY_INLINE Digest folded(const std::array<std::uint64_t, kLanes>& sums,
                         const std::array<std::uint64_t, kLanes>& order) {
  Digest digest;
  for (std::size_t i = 0; i < kLanes; ++i) {
    digest.sums += kWeights[i] * sums[i];
    digest.order += kWeights[i] * mixed(order[i]);
  }
  return digest;
}

#if HWY_TARGET == HWY_SCALAR
// The state of a block's digest while it is computed, word by word.
template <typename Lane, bool kChecks>
class Sums {
 public:
  explicit Sums(const Exponents& exponents) : exponents_(exponents) {}
  void add(const std::uint8_t* stripe) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::uint64_t word;
      std::memcpy(&word, stripe + i * sizeof(word), sizeof(word));
      sums_[i] += word;
      order_[i] = std::rotr(order_[i], kTurn) + sums_[i];
      if (kChecks && !full_) {
        full_ = has_full_lane<Lane>(word & exponents_.mask, exponents_.full);
      }
    }
  }
  Digest digest() const { return folded(sums_, order_); }
  bool has_full() const { return full_; }

 private:
  const Exponents exponents_;
  std::array<std::uint64_t, kLanes> sums_{};
  std::array<std::uint64_t, kLanes> order_{};
  bool full_ = false;
};
#else
// The state of a block's digest while it is computed, with vectors of this instruction set.
template <typename Lane, bool kChecks>
class Sums {
 public:
  explicit Sums(const Exponents& exponents)
      : mask_(hn::Set(kD, exponents.mask)), full_(static_cast<Lane>(exponents.full)) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      sums_[i] = order_[i] = largest_[i] = hn::Zero(kD);
    }
  }
  HWY_INLINE void add(const std::uint8_t* stripe) {
    for (std::size_t i = 0; i < kVectors; ++i) {
      const auto bytes = hn::LoadU(hn::Repartition<std::uint8_t, D>(), stripe + i * kStep);
      const auto words = hn::BitCast(kD, bytes);
      sums_[i] = hn::Add(sums_[i], words);
      order_[i] = hn::Add(hn::RotateRight<kTurn>(order_[i]), sums_[i]);
      if constexpr (kChecks) {
        const hn::Repartition<Lane, D> lanes;
        largest_[i] = hn::BitCast(
            kD,
            hn::Max(hn::BitCast(lanes, largest_[i]), hn::BitCast(lanes, hn::And(words, mask_))));
      }
    }
  }
  Digest digest() const {
    std::array<std::uint64_t, kLanes> sums;
    std::array<std::uint64_t, kLanes> order;
    for (std::size_t i = 0; i < kVectors; ++i) {
      hn::StoreU(sums_[i], kD, sums.data() + i * hn::MaxLanes(kD));
      hn::StoreU(order_[i], kD, order.data() + i * hn::MaxLanes(kD));
    }
    return folded(sums, order);
  }
  // Returns whether some element of the block has had all bits of its exponent set.
  bool has_full() const {
    const hn::Repartition<Lane, D> lanes;
    auto found = hn::Zero(lanes);
    for (std::size_t i = 0; i < kVectors; ++i) {
      found = hn::Max(found, hn::BitCast(lanes, largest_[i]));
    }
    return !hn::AllFalse(lanes, hn::Eq(found, hn::Set(lanes, full_)));
  }

 private:
  using D = hn::CappedTag<std::uint64_t, kLanes>;
  static constexpr D kD{};
  static constexpr std::size_t kStep = hn::MaxLanes(kD) * sizeof(std::uint64_t);
  static constexpr std::size_t kVectors = kStripe / kStep;
  using V = hn::Vec<D>;

  V sums_[kVectors];
  V order_[kVectors];
  V largest_[kVectors];
  V mask_;
  Lane full_;
};
#endif

template <typename Lane, bool kChecks>
std::size_t blocks(const std::uint8_t* data,
                   std::size_t bytes,
                   std::size_t block_bytes,
                   const Exponents& exponents,
                   Digest* digests) {
  std::size_t found = block_count(bytes, block_bytes);
  for (std::size_t begin = 0; begin < bytes; begin += block_bytes) {
    const std::size_t end = std::min(bytes, begin + block_bytes);
    Sums<Lane, kChecks> sums(exponents);
    std::size_t at = begin;
    for (; at + kStripe <= end; at += kStripe) sums.add(data + at);
    if (at != end) {
      std::array<std::uint8_t, kStripe> last{};
      std::memcpy(last.data(), data + at, end - at);
      sums.add(last.data());
    }
    const std::size_t block = begin / block_bytes;
    digests[block] = sums.digest();
    if (kChecks && sums.has_full()) found = std::min(found, block);
  }
  return found;
}

std::size_t blocks_of(const std::uint8_t* data,
                      std::size_t bytes,
                      std::size_t block_bytes,
                      const Exponents& exponents,
                      Digest* digests) {
  if (exponents.mask == 0) {
    return blocks<std::uint32_t, false>(data, bytes, block_bytes, exponents, digests);
  }
  if (exponents.lane_bytes == 1) {
    return blocks<std::uint8_t, true>(data, bytes, block_bytes, exponents, digests);
  }
  if (exponents.lane_bytes == 2) {
    return blocks<std::uint16_t, true>(data, bytes, block_bytes, exponents, digests);
  }
  return blocks<std::uint32_t, true>(data, bytes, block_bytes, exponents, digests);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(blocks_of);

std::optional<std::size_t> digest_blocks(const void* data,
                                         std::size_t bytes,
                                         std::size_t block_bytes,
                                         DType dtype,
                                         Digest* digests) noexcept {
  if (bytes == 0) return std::nullopt;
  const Exponents exponents = exponents_of(dtype);
  // A fast path for arrays of one word, which lies in the first lane of a stripe.
  if (bytes <= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, bytes);
    *digests = {.sums = kWeights[0] * word, .order = kWeights[0] * mixed(word)};
    return exponents.mask != 0 && has_full(word, exponents) ? std::optional<std::size_t>(0)
                                                            : std::nullopt;
  }
  const std::size_t found = HWY_DYNAMIC_DISPATCH(blocks_of)(
      static_cast<const std::uint8_t*>(data), bytes, block_bytes, exponents, digests);
  if (found == block_count(bytes, block_bytes)) return std::nullopt;
  return found;
}

std::optional<std::size_t> first_non_finite(const void* data,
                                            std::size_t count,
                                            DType dtype) noexcept {
  const Exponents exponents = exponents_of(dtype);
  if (exponents.mask == 0) return std::nullopt;
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  const std::size_t each = size_of(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t part = 0; part < each; part += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i * each + part, std::min(each - part, sizeof(word)));
      if (has_full(word, exponents)) return i;
    }
  }
  return std::nullopt;
}

}  // namespace hocket::core
#endif
