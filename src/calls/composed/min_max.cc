#include "calls/composed/min_max.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hocket/compression.h"

namespace hocket::composed {
namespace {

constexpr double kLevels = 255;

// The header of each block.
struct ValueRange {
  float least;  // NaN: the block has a value that is not finite
  float step;
};
static_assert(sizeof(ValueRange) == 8);

// Returns the range of a block. It uses explicit lanes, because compilers do not reorder float
// operations.
ValueRange range_of(const float* in, std::size_t count) noexcept {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> least, greatest, probe;
  least.fill(in[0]);
  greatest.fill(in[0]);
  probe.fill(0);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = in[i + lane];
      least[lane] = value < least[lane] ? value : least[lane];
      greatest[lane] = value > greatest[lane] ? value : greatest[lane];
      probe[lane] += value * 0.0F;  // NaN once a value is not finite
    }
  }
  for (; i < count; ++i) {
    least[0] = std::min(least[0], in[i]);
    greatest[0] = std::max(greatest[0], in[i]);
    probe[0] += in[i] * 0.0F;
  }
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    least[0] = std::min(least[0], least[lane]);
    greatest[0] = std::max(greatest[0], greatest[lane]);
    probe[0] += probe[lane];
  }
  if (probe[0] != 0) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const double width = static_cast<double>(greatest[0]) - least[0];
  return {least[0], static_cast<float>(width / kLevels)};
}

void compress_block(const float* in, std::size_t count, std::byte* out) noexcept {
  const ValueRange range = range_of(in, count);
  std::memcpy(out, &range, sizeof range);
  auto* levels = reinterpret_cast<std::uint8_t*>(out + sizeof range);
  if (!(range.step > 0)) {  // all values are equal, or the range is not known
    std::memset(levels, 0, count);
    return;
  }
  const double per_step = 1.0 / range.step;
  for (std::size_t i = 0; i < count; ++i) {
    const double level = (static_cast<double>(in[i]) - range.least) * per_step + 0.5;
    levels[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(std::min(level, kLevels)));
  }
}

// Calls `put(place, value)` for each element.
template <typename Put>
void read_blocks(const std::byte* in, std::size_t count, Put&& put) noexcept {
  for (std::size_t first = 0; first < count; first += kCompressionBlock) {
    const std::size_t length = std::min(kCompressionBlock, count - first);
    ValueRange range;
    std::memcpy(&range, in, sizeof range);
    const auto* levels = reinterpret_cast<const std::uint8_t*>(in + sizeof range);
    for (std::size_t i = 0; i < length; ++i) {
      // In double, because step * 255 may exceed float's range.
      put(first + i, static_cast<float>(range.least + static_cast<double>(range.step) * levels[i]));
    }
    in += sizeof range + length;
  }
}

}  // namespace

std::size_t compressed_size(std::size_t count) noexcept {
  const std::size_t blocks = (count + kCompressionBlock - 1) / kCompressionBlock;
  return count + blocks * sizeof(ValueRange);
}

void compress(const float* in, std::size_t count, std::byte* out) noexcept {
  for (std::size_t first = 0; first < count; first += kCompressionBlock) {
    const std::size_t length = std::min(kCompressionBlock, count - first);
    compress_block(in + first, length, out);
    out += sizeof(ValueRange) + length;
  }
}

void decompress(const std::byte* in, std::size_t count, float* out) noexcept {
  read_blocks(in, count, [&](std::size_t place, float value) { out[place] = value; });
}

void add_decompressed(const std::byte* in, std::size_t count, float* out) noexcept {
  read_blocks(in, count, [&](std::size_t place, float value) { out[place] += value; });
}

}  // namespace hocket::composed
