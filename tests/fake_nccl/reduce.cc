#include "reduce.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace fake_nccl {

using hocket::engines::nccl::NcclType;
using hocket::engines::nccl::RedOp;

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
void reduce_as(void* out, const std::vector<const void*>& sources, std::size_t count, RedOp op) {
  const auto at = [](const void* array, std::size_t i) {
    return static_cast<Wide>(static_cast<const T*>(array)[i]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    Wide value = at(sources[0], i);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const Wide next = at(sources[s], i);
      switch (op) {
        case RedOp::kSum:
        case RedOp::kAvg:
          value = static_cast<Wide>(value + next);
          break;
        case RedOp::kProduct:
          value = static_cast<Wide>(value * next);
          break;
        case RedOp::kMax:
          value = std::max(value, next);
          break;
        case RedOp::kMin:
          value = std::min(value, next);
          break;
      }
    }
    if (op == RedOp::kAvg) value = static_cast<Wide>(value / static_cast<Wide>(sources.size()));
    static_cast<T*>(out)[i] = static_cast<T>(value);
  }
}

}  // namespace

std::size_t size_of(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
    case NcclType::kUInt8:
      return 1;
    case NcclType::kFloat16:
    case NcclType::kBFloat16:
      return 2;
    case NcclType::kInt32:
    case NcclType::kUInt32:
    case NcclType::kFloat32:
      return 4;
    case NcclType::kInt64:
    case NcclType::kUInt64:
    case NcclType::kFloat64:
      break;
  }
  return 8;
}

void reduce(void* out,
            const std::vector<const void*>& sources,
            std::size_t count,
            NcclType type,
            RedOp op) {
  switch (type) {
    case NcclType::kInt8:
      return reduce_as<std::int8_t, std::int8_t>(out, sources, count, op);
    case NcclType::kUInt8:
      return reduce_as<std::uint8_t, std::uint8_t>(out, sources, count, op);
    case NcclType::kInt32:
    case NcclType::kUInt32:  // sums wrap around alike
      return type == NcclType::kInt32 && (op == RedOp::kMax || op == RedOp::kMin)
                 ? reduce_as<std::int32_t, std::int32_t>(out, sources, count, op)
                 : reduce_as<std::uint32_t, std::uint32_t>(out, sources, count, op);
    case NcclType::kInt64:
    case NcclType::kUInt64:
      return type == NcclType::kInt64 && (op == RedOp::kMax || op == RedOp::kMin)
                 ? reduce_as<std::int64_t, std::int64_t>(out, sources, count, op)
                 : reduce_as<std::uint64_t, std::uint64_t>(out, sources, count, op);
    case NcclType::kFloat16:
      return reduce_as<_Float16, float>(out, sources, count, op);
    case NcclType::kBFloat16:
      return reduce_as<BFloat16, float>(out, sources, count, op);
    case NcclType::kFloat32:
      return reduce_as<float, float>(out, sources, count, op);
    case NcclType::kFloat64:
      return reduce_as<double, double>(out, sources, count, op);
  }
}

}  // namespace fake_nccl
