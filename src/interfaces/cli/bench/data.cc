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

// The type in which the expected values are worked out: wide enough to be exact.
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

// The input of rank `rank` at `index`.
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

// Equal, but for the last bits of a float: libraries may add in any order.
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

Range input_range(const Case& subject, Seat seat) noexcept {
  const std::size_t one = subject.elements;
  const auto rank = static_cast<std::size_t>(seat.rank);
  if (subject.collective == Collective::kBroadcast) return {0, seat.rank == kRoot ? one : 0};
  if (!subject.in_place) return {0, shape_of(subject, seat.rank, seat.ranks).in};
  switch (subject.collective) {
    case Collective::kAllGather:
      return {rank * one, one};
    case Collective::kGather:
      return {seat.rank == kRoot ? rank * one : 0, one};
    case Collective::kScatter:
      return {0, seat.rank == kRoot ? one * static_cast<std::size_t>(seat.ranks) : 0};
    default:
      return {0, shape_of(subject, seat.rank, seat.ranks).out};
  }
}

// Position of the results. In a scatter in place the root's own part is not a result: it stays.
Range result_range(const Case& subject, Seat seat) noexcept {
  const bool is_root = seat.rank == kRoot;
  switch (subject.collective) {
    case Collective::kReduce:
      return {0, is_root ? subject.elements : 0};
    case Collective::kExscan:
      return {0, seat.rank > 0 ? subject.elements : 0};
    case Collective::kGather:
      return {0, is_root ? subject.elements * static_cast<std::size_t>(seat.ranks) : 0};
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return {0, subject.elements};
    default:
      return {0, shape_of(subject, seat.rank, seat.ranks).out};
  }
}

template <typename T>
T expected_at(const Case& subject, Seat seat, const Source<T>& source, std::size_t index) noexcept {
  const std::size_t one = subject.elements;
  const auto rank = static_cast<std::size_t>(seat.rank);
  switch (subject.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return reduced<T>(source, subject.op, seat.ranks, index);
    case Collective::kScan:
      return reduced<T>(source, subject.op, seat.rank + 1, index);
    case Collective::kExscan:
      return reduced<T>(source, subject.op, seat.rank, index);
    case Collective::kReduceScatter:
      return reduced<T>(source, subject.op, seat.ranks, rank * one + index);
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
      return narrow<T>(source((rank + seat.ranks - 1) % seat.ranks, index));
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

// The distance of the elements that are looked at. In long results it is more than 1, because the
// expected sum takes all ranks' numbers to work out. It is odd, so that no part of a library's own
// pieces is passed over each time.
std::size_t stride_of(const Case& subject, Seat seat, std::size_t count) noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  const std::size_t each = reduces(subject.collective) ? static_cast<std::size_t>(seat.ranks) : 1;
  return count * each / kMost | 1;
}

}  // namespace

void fill(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays) {
  if (is_numeric(subject.collective)) return fill_numeric(subject, seat, seed, arrays);
  // The byte 0xa5 repeated is no small whole number in any type, so it cannot be taken for a
  // result. As a bool it is invalid, so bools get 1, which is right by chance half of the time.
  // Several seeds find such errors.
  const Shape shape = shape_of(subject, seat.rank, seat.ranks);
  const int poison = subject.dtype == DType::kBool ? 1 : 0xa5;
  if (shape.out > 0) std::memset(arrays.out, poison, shape.out * size_of(subject.dtype));
  const bool reads_out = subject.in_place || subject.collective == Collective::kBroadcast;
  void* input = reads_out ? arrays.out : arrays.in;
  if (input == nullptr) return;
  const Range range = input_range(subject, seat);
  with_type(subject.dtype, [&](auto element) {
    using T = decltype(element);
    const Source<T> source{seed, subject.op, variety<T>(seat.ranks)};
    // In place, the part that an all-gather brings is numbered from 0 like anywhere else.
    T* first = static_cast<T*>(input) + range.first;
    for (std::size_t i = 0; i < range.count; ++i) first[i] = narrow<T>(source(seat.rank, i));
  });
}

std::string check(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays) {
  if (is_numeric(subject.collective)) return check_numeric(subject, seat, seed, arrays);
  const Range range = result_range(subject, seat);
  return with_type(subject.dtype, [&](auto element) {
    using T = decltype(element);
    const Source<T> source{seed, subject.op, variety<T>(seat.ranks)};
    const T* results = static_cast<const T*>(arrays.out);
    std::size_t wrong = 0;
    std::size_t first_wrong = 0;
    const std::size_t stride = stride_of(subject, seat, range.count);
    for (std::size_t i = 0; i < range.count; i += stride) {
      if (same(results[i], expected_at<T>(subject, seat, source, i))) continue;
      if (wrong++ == 0) first_wrong = i;
    }
    if (wrong == 0) return std::string();
    std::ostringstream text;
    text << "rank " << seat.rank << ": " << wrong << " of " << (range.count + stride - 1) / stride
         << " elements that were looked at are wrong, the first at " << first_wrong << ": "
         << text_of(results[first_wrong]) << " instead of "
         << text_of(expected_at<T>(subject, seat, source, first_wrong));
    return text.str();
  });
}

}  // namespace hocket::cli::bench
