#include "interfaces/cli/bench/data.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>

#include "interfaces/cli/bench/numeric.h"

namespace hocket::cli::bench {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// The type in which the expected values are computed: wide enough to be exact.
template <typename T>
using Wide = std::conditional_t<
    kIsComplex<T>,
    std::complex<double>,
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       double>>;

std::uint32_t hash_of(std::uint32_t seed, std::size_t rank, std::size_t index) noexcept {
  auto x = static_cast<std::uint32_t>(index) * 0x9e3779b1u +
           static_cast<std::uint32_t>(rank) * 0x85ebca77u + seed * 0xc2b2ae3du;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  return x ^ (x >> 13);
}

// Number of different values of an element, chosen so that the sum over `ranks` stays exact.
template <typename T>
std::uint32_t variety(int ranks) noexcept {
  if constexpr (std::is_same_v<T, bool>) return 2;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 1) return std::max(3, 127 / ranks);
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) return 29;
  if constexpr (std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>) return 3;
  return 4093;
}

// Computes the input of rank `rank` at `index`.
template <typename T>
struct Source {
  std::uint32_t seed;
  ReduceOp op;
  std::uint32_t variety;

  Wide<T> operator()(std::size_t rank, std::size_t index) const noexcept {
    const std::uint32_t hash = hash_of(seed, rank, index);
    const bool multiplies = op == ReduceOp::kProduct && !std::is_same_v<T, bool>;
    if constexpr (kIsComplex<T>) {
      if (multiplies) return {double(1 + hash % 2), double(hash / 2 % 2)};
      return {double(hash % variety), double(hash / 7 % variety)};
    } else {
      return static_cast<Wide<T>>(multiplies ? 1 + hash % 2 : hash % variety);
    }
  }
};

template <typename T>
Wide<T> combine(ReduceOp op, Wide<T> a, Wide<T> b) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    if (op == ReduceOp::kSum || op == ReduceOp::kMax) op = ReduceOp::kBitOr;
    if (op == ReduceOp::kProduct || op == ReduceOp::kMin) op = ReduceOp::kBitAnd;
  }
  if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return a + b;
  if (op == ReduceOp::kProduct) return a * b;
  if constexpr (!kIsComplex<T>) {
    if (op == ReduceOp::kMin) return std::min(a, b);
    if (op == ReduceOp::kMax) return std::max(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::kBitAnd) return a & b;
    if (op == ReduceOp::kBitOr) return a | b;
    if (op == ReduceOp::kBitXor) return a ^ b;
  }
  return a;
}

template <typename T>
T narrow(Wide<T> value) noexcept {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> ||
                std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
T reduced(const Source<T>& source, ReduceOp op, int ranks, std::size_t index) noexcept {
  Wide<T> sum = source(0, index);
  for (int rank = 1; rank < ranks; ++rank) sum = combine<T>(op, sum, source(rank, index));
  if (op == ReduceOp::kAvg) sum /= static_cast<Wide<T>>(ranks);
  return narrow<T>(sum);
}

// Returns whether two values are equal, up to the last bits of a float: libraries may add in any
// order.
template <typename T>
bool same(T a, T b) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else if constexpr (kIsComplex<T>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else if constexpr (std::is_floating_point_v<T>) {
    return a == b || std::abs(a - b) <= 4 * std::numeric_limits<T>::epsilon() * std::abs(b);
  } else {
    const float x = a, y = b;
    return x == y || (std::isnan(x) && std::isnan(y));
  }
}

// Position of a rank's own input in its buffer: (first, count) of elements.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

Range input_range(const Case& subject, JobRank self) noexcept {
  const std::size_t one = subject.elements;
  const auto rank = static_cast<std::size_t>(self.rank);
  if (subject.collective == Collective::kBroadcast) return {0, self.rank == kRoot ? one : 0};
  if (!subject.in_place) return {0, shape_of(subject, self.rank, self.ranks).in};
  switch (subject.collective) {
    case Collective::kAllGather:
      return {rank * one, one};
    case Collective::kGather:
      return {self.rank == kRoot ? rank * one : 0, one};
    case Collective::kScatter:
      return {0, self.rank == kRoot ? one * static_cast<std::size_t>(self.ranks) : 0};
    default:
      return {0, shape_of(subject, self.rank, self.ranks).out};
  }
}

// Position of the results. In a scatter in place, the root's own part stays and is no result.
Range result_range(const Case& subject, JobRank self) noexcept {
  const bool is_root = self.rank == kRoot;
  switch (subject.collective) {
    case Collective::kReduce:
      return {0, is_root ? subject.elements : 0};
    case Collective::kExscan:
      return {0, self.rank > 0 ? subject.elements : 0};
    case Collective::kGather:
      return {0, is_root ? subject.elements * static_cast<std::size_t>(self.ranks) : 0};
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return {0, subject.elements};
    default:
      return {0, shape_of(subject, self.rank, self.ranks).out};
  }
}

template <typename T>
T expected_at(const Case& subject,
              JobRank self,
              const Source<T>& source,
              std::size_t index) noexcept {
  const std::size_t one = subject.elements;
  const auto rank = static_cast<std::size_t>(self.rank);
  switch (subject.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return reduced<T>(source, subject.op, self.ranks, index);
    case Collective::kScan:
      return reduced<T>(source, subject.op, self.rank + 1, index);
    case Collective::kExscan:
      return reduced<T>(source, subject.op, self.rank, index);
    case Collective::kReduceScatter:
      return reduced<T>(source, subject.op, self.ranks, rank * one + index);
    case Collective::kBroadcast:
      return narrow<T>(source(kRoot, index));
    case Collective::kAllGather:
    case Collective::kGather:
      return narrow<T>(source(index / one, index % one));
    case Collective::kScatter:
      return narrow<T>(source(kRoot, rank * one + index));
    case Collective::kAllToAll:
      return narrow<T>(source(index / one, rank * one + index % one));
    case Collective::kSend:
      return narrow<T>(source(1 - rank, index));
    case Collective::kSendWindow:
    case Collective::kISendWindow:
      return narrow<T>(source(0, index));
    case Collective::kSendRecv:
      return narrow<T>(source((rank + self.ranks - 1) % self.ranks, index));
    case Collective::kBarrier:
    case Collective::kFft:
    case Collective::kFftTransposed:
    case Collective::kMatmul:
      return T{};
  }
  return T{};
}

template <typename F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool{});
    case DType::kInt8:
      return f(std::int8_t{});
    case DType::kInt16:
      return f(std::int16_t{});
    case DType::kInt32:
      return f(std::int32_t{});
    case DType::kInt64:
      return f(std::int64_t{});
    case DType::kUInt8:
      return f(std::uint8_t{});
    case DType::kUInt16:
      return f(std::uint16_t{});
    case DType::kUInt32:
      return f(std::uint32_t{});
    case DType::kUInt64:
      return f(std::uint64_t{});
    case DType::kFloat16:
      return f(float16{});
    case DType::kBFloat16:
      return f(bfloat16{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(std::complex<float>{});
    case DType::kComplex128:
      return f(std::complex<double>{});
    case DType::kFloat8E4M3:
      return f(float8_e4m3{});
    case DType::kFloat8E5M2:
      return f(float8_e5m2{});
  }
  return f(std::uint8_t{});
}

template <typename T>
std::string text_of(T value) {
  std::ostringstream text;
  if constexpr (std::is_integral_v<T>) {
    text << static_cast<std::int64_t>(value);
  } else if constexpr (kIsComplex<T>) {
    text << value;
  } else {
    text << static_cast<double>(value);
  }
  return text.str();
}

// The distance between checked elements. It is more than 1 in long results, because computing an
// expected sum takes the numbers of all ranks. It is odd, so that it does not always skip the same
// part of a library's chunks.
std::size_t stride_of(const Case& subject, JobRank self, std::size_t count) noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  const std::size_t each = reduces(subject.collective) ? static_cast<std::size_t>(self.ranks) : 1;
  return count * each / kMost | 1;
}

}  // namespace

void fill(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays) {
  if (is_numeric(subject.collective)) return fill_numeric(subject, self, seed, arrays);
  // A value of 0xa5 bytes is no small integer in any type, so it cannot pass for a result. As a
  // bool it would be invalid, so bools get 1. That is the right result half of the time, but
  // several seeds are tried.
  const Shape shape = shape_of(subject, self.rank, self.ranks);
  const int poison = subject.dtype == DType::kBool ? 1 : 0xa5;
  if (shape.out > 0) std::memset(arrays.out, poison, shape.out * size_of(subject.dtype));
  const bool reads_out = subject.in_place || subject.collective == Collective::kBroadcast;
  void* input = reads_out ? arrays.out : arrays.in;
  if (input == nullptr) return;
  const Range range = input_range(subject, self);
  with_type(subject.dtype, [&](auto element) {
    using T = decltype(element);
    const Source<T> source{seed, subject.op, variety<T>(self.ranks)};
    // In place, the input of an all_gather lies in the middle of `out`. It is numbered from 0 in
    // this case, too.
    // `out`.
    T* first = static_cast<T*>(input) + range.first;
    for (std::size_t i = 0; i < range.count; ++i) first[i] = narrow<T>(source(self.rank, i));
  });
}

std::string check(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays) {
  if (is_numeric(subject.collective)) return check_numeric(subject, self, seed, arrays);
  const Range range = result_range(subject, self);
  return with_type(subject.dtype, [&](auto element) {
    using T = decltype(element);
    const Source<T> source{seed, subject.op, variety<T>(self.ranks)};
    const T* results = static_cast<const T*>(arrays.out);
    std::size_t wrong = 0;
    std::size_t first_wrong = 0;
    const std::size_t stride = stride_of(subject, self, range.count);
    for (std::size_t i = 0; i < range.count; i += stride) {
      if (same(results[i], expected_at<T>(subject, self, source, i))) continue;
      if (wrong++ == 0) first_wrong = i;
    }
    if (wrong == 0) return std::string();
    std::ostringstream text;
    text << "rank " << self.rank << ": " << wrong << " of " << (range.count + stride - 1) / stride
         << " elements that were looked at are wrong, the first at " << first_wrong << ": "
         << text_of(results[first_wrong]) << " instead of "
         << text_of(expected_at<T>(subject, self, source, first_wrong));
    return text.str();
  });
}

}  // namespace hocket::cli::bench
