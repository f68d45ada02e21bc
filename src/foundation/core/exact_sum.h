// Sums of integers that cannot overflow, for averages.
#pragma once

#include <cstdint>
#include <type_traits>

namespace hocket::core {

// The exact sum of up to 2^31 integers of up to 32 bits. A value.
template <typename T>
class ExactSum {
 public:
  constexpr ExactSum() = default;
  constexpr explicit ExactSum(std::int64_t total) : total_(total) {}
  constexpr void add(T value) { total_ += static_cast<std::int64_t>(value); }
  // Rounds toward zero.
  constexpr T divided(int by) const { return static_cast<T>(total_ / by); }

 private:
  std::int64_t total_ = 0;
};

// The sum of up to 2^31 64-bit integers, in two halves: high * 2^32 + low. A value.
template <typename T>
  requires(sizeof(T) == 8)
class ExactSum<T> {
 public:
  constexpr ExactSum() = default;
  constexpr ExactSum(std::int64_t high, std::int64_t low) : high_(high), low_(low) {}
  constexpr explicit ExactSum(T value)
      : high_(static_cast<std::int64_t>(value >> 32)),
        low_(static_cast<std::int64_t>(value & 0xffffffff)) {}
  constexpr void add(T value) {
    const ExactSum added(value);
    high_ += added.high_;
    low_ += added.low_;
  }
  constexpr std::int64_t high() const { return high_; }
  constexpr std::int64_t low() const { return low_; }

  // Rounds toward zero. It divides in two steps, as in long division, which round down. Then it
  // adds 1 to a negative result that is not exact.
  constexpr T divided(int by) const {
    const std::int64_t high = high_ + (low_ >> 32);
    std::int64_t first = high / by;
    std::int64_t rest = high % by;
    if (rest < 0) {
      rest += by;
      --first;
    }
    rest = rest << 32 | (low_ & 0xffffffff);
    const bool is_above = high < 0 && rest % by != 0;
    return static_cast<T>((static_cast<std::uint64_t>(first) << 32) +
                          static_cast<std::uint64_t>(rest / by) + (is_above ? 1 : 0));
  }

 private:
  std::int64_t high_ = 0;
  std::int64_t low_ = 0;
};

}  // namespace hocket::core
