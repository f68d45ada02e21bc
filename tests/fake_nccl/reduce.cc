#include "reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace fake_nccl {

using hocket::engines::nccl::Op;
using hocket::engines::nccl::Type;

namespace {

// The upper half of a float32, rounded to nearest even.
struct BFloat16 {
  std::uint16_t bits;
  BFloat16(float value)  // NOLINT: as the arithmetic types convert
      : bits(static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x7fffu +
                                         (std::bit_cast<std::uint32_t>(value) >> 16 & 1)) >>
                                        16)) {}
  operator float() const {  // NOLINT
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

template <typename T, typename Wide>
void reduce_as(void* out, const std::vector<const void*>& sources, std::size_t count, Op op) {
  const auto at = [](const void* array, std::size_t i) {
    return static_cast<Wide>(static_cast<const T*>(array)[i]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    Wide value = at(sources[0], i);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const Wide next = at(sources[s], i);
      switch (op) {
        case Op::kSum:
        case Op::kAvg:
          value = static_cast<Wide>(value + next);
          break;
        case Op::kProduct:
          value = static_cast<Wide>(value * next);
          break;
        case Op::kMax:
          value = std::max(value, next);
          break;
        case Op::kMin:
          value = std::min(value, next);
          break;
      }
    }
    if (op == Op::kAvg) value = static_cast<Wide>(value / static_cast<Wide>(sources.size()));
    static_cast<T*>(out)[i] = static_cast<T>(value);
  }
}

}  // namespace

std::size_t size_of(Type type) {
  switch (type) {
    case Type::kInt8:
    case Type::kUInt8:
      return 1;
    case Type::kFloat16:
    case Type::kBFloat16:
      return 2;
    case Type::kInt32:
    case Type::kUInt32:
    case Type::kFloat32:
      return 4;
    case Type::kInt64:
    case Type::kUInt64:
    case Type::kFloat64:
      break;
  }
  return 8;
}

void reduce(
    void* out, const std::vector<const void*>& sources, std::size_t count, Type type, Op op) {
  switch (type) {
    case Type::kInt8:
      return reduce_as<std::int8_t, std::int8_t>(out, sources, count, op);
    case Type::kUInt8:
      return reduce_as<std::uint8_t, std::uint8_t>(out, sources, count, op);
    case Type::kInt32:
    case Type::kUInt32:  // sums wrap around alike
      return type == Type::kInt32 && (op == Op::kMax || op == Op::kMin)
                 ? reduce_as<std::int32_t, std::int32_t>(out, sources, count, op)
                 : reduce_as<std::uint32_t, std::uint32_t>(out, sources, count, op);
    case Type::kInt64:
    case Type::kUInt64:
      return type == Type::kInt64 && (op == Op::kMax || op == Op::kMin)
                 ? reduce_as<std::int64_t, std::int64_t>(out, sources, count, op)
                 : reduce_as<std::uint64_t, std::uint64_t>(out, sources, count, op);
    case Type::kFloat16:
      return reduce_as<_Float16, float>(out, sources, count, op);
    case Type::kBFloat16:
      return reduce_as<BFloat16, float>(out, sources, count, op);
    case Type::kFloat32:
      return reduce_as<float, float>(out, sources, count, op);
    case Type::kFloat64:
      return reduce_as<double, double>(out, sources, count, op);
  }
}

}  // namespace fake_nccl
