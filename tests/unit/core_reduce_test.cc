// foundation/core/reduce.h against plain scalar code: every dtype and op, numbers of sources,
// counts, alignments, in place, both kinds of stores.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "foundation/core/averages.h"
#include "foundation/core/dispatch.h"
#include "hocket/error.h"
#include "hocket/types.h"

namespace hocket::core {
namespace {

template <typename T>
constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <typename T>
constexpr bool kIsSmall = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> ||
                          std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>;

// ---- The reference, one element at a time.

template <typename A>
A real_operation(ReduceOp op, A a, A b) {
  const bool nan = std::isnan(a) || std::isnan(b);
  const bool zeros = a == 0 && b == 0;
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      if (nan) return std::numeric_limits<A>::quiet_NaN();
      return zeros ? (std::signbit(a) ? a : b) : (a < b ? a : b);
    case ReduceOp::kMax:
      if (nan) return std::numeric_limits<A>::quiet_NaN();
      return zeros ? (std::signbit(a) ? b : a) : (a > b ? a : b);
    default:
      return a + b;
  }
}

template <typename T>
T integer_operation(ReduceOp op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kProduct:
      return static_cast<T>(x * y);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kBitAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitOr:
      return static_cast<T>(x | y);
    case ReduceOp::kBitXor:
      return static_cast<T>(x ^ y);
    default:
      return static_cast<T>(x + y);
  }
}

bool bool_operation(ReduceOp op, bool a, bool b) {
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
      return a && b;
    case ReduceOp::kBitXor:
      return a != b;
    default:
      return a || b;
  }
}

template <typename T>
T expected_element(const std::vector<T>& values, ReduceOp op, int average_over) {
  if constexpr (kIsComplex<T>) {
    T sum = values[0];
    for (std::size_t s = 1; s < values.size(); ++s) {
      const T b = values[s];
      // Products are kept in volatiles, so that no compiler fuses them with the addition.
      volatile auto rr = sum.real() * b.real();
      volatile auto ii = sum.imag() * b.imag();
      volatile auto ri = sum.real() * b.imag();
      volatile auto ir = sum.imag() * b.real();
      sum = op == ReduceOp::kProduct ? T{rr - ii, ri + ir} : sum + b;
    }
    if (op != ReduceOp::kAvg) return sum;
    using Real = typename T::value_type;
    return {sum.real() / static_cast<Real>(average_over),
            sum.imag() / static_cast<Real>(average_over)};
  } else if constexpr (std::is_same_v<T, bool>) {
    bool result = values[0];
    for (std::size_t s = 1; s < values.size(); ++s) result = bool_operation(op, result, values[s]);
    return result;
  } else if constexpr (std::is_integral_v<T>) {
    T result = values[0];
    for (std::size_t s = 1; s < values.size(); ++s) {
      result = integer_operation(op, result, values[s]);
    }
    if (op != ReduceOp::kAvg) return result;
    __extension__ __int128 sum = 0;
    for (const T value : values) sum += value;
    return static_cast<T>(sum / average_over);
  } else {
    using A = std::conditional_t<kIsSmall<T>, float, T>;
    auto result = static_cast<A>(values[0]);
    for (std::size_t s = 1; s < values.size(); ++s) {
      result = real_operation(op, result, static_cast<A>(values[s]));
    }
    if (op == ReduceOp::kAvg) result /= static_cast<A>(average_over);
    return static_cast<T>(result);
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (kIsComplex<T>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (kIsSmall<T> || std::is_floating_point_v<T>) {
    return std::isnan(static_cast<double>(value));
  } else {
    return false;
  }
}

// The same bits, or NaN both: which NaN is not promised.
template <typename T>
bool same(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else {
    return (is_nan(a) && is_nan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
  }
}

// ---- Data: any bits at all, and numbers of a size that sums to something.

template <typename T>
T make_value(std::mt19937_64& random, bool any_bits) {
  const std::uint64_t bits = random();
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 3) != 0;
  } else if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    return {make_value<Real>(random, any_bits), make_value<Real>(random, any_bits)};
  } else {
    if (!any_bits && !std::is_integral_v<T>) {
      const double scale = kIsSmall<T> ? 8.0 : 1000.0;
      const double value = std::ldexp(static_cast<double>(bits >> 11), -53) * 2 * scale - scale;
      return static_cast<T>(static_cast<float>(value));
    }
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
}

// Arrays of T that begin `offset` bytes past a cache line.
template <typename T>
class Unaligned {
 public:
  Unaligned(std::size_t count, std::size_t offset)
      : count_(count), bytes_(count * sizeof(T) + 256, std::byte{0xA5}) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = (64 - address % 64) % 64 + 64 + offset;
  }
  std::byte* data() { return bytes_.data() + begin_; }
  T get(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + begin_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(std::size_t i, T value) { std::memcpy(data() + i * sizeof(T), &value, sizeof(T)); }
  // True if nothing was written beside the array.
  bool fence_holds() const {
    const auto untouched = [](std::byte b) { return b == std::byte{0xA5}; };
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(bytes_.begin(), first, untouched) &&
           std::all_of(
               first + static_cast<std::ptrdiff_t>(count_ * sizeof(T)), bytes_.end(), untouched);
  }

 private:
  std::size_t count_;
  std::vector<std::byte> bytes_;
  std::size_t begin_;
};

struct Shape {
  int n_sources = 2;
  std::size_t count = 0;
  std::size_t offset = 0;    // bytes past a cache line, different for each array
  int in_place_source = -1;  // which source the output equals
  Stores stores = Stores::kCached;
  bool any_bits = false;
};

std::string describe(DType dtype, ReduceOp op, const Shape& shape) {
  return std::string(name_of(op)) + " " + std::string(name_of(dtype)) + "[" +
         std::to_string(shape.count) + "] of " + std::to_string(shape.n_sources) +
         " sources, offset " + std::to_string(shape.offset) + ", in place " +
         std::to_string(shape.in_place_source) +
         (shape.stores == Stores::kStreaming ? ", streaming" : "");
}

template <typename T>
void check(ReduceOp op, const Shape& shape, std::mt19937_64& random) {
  const DType dtype = dtype_of<T>;
  const int average_over = shape.n_sources;
  std::vector<Unaligned<T>> arrays;
  for (int s = 0; s < shape.n_sources; ++s) {
    const std::size_t offset =
        shape.offset == 0 ? 0 : (shape.offset + 7 * static_cast<std::size_t>(s)) % 64;
    arrays.emplace_back(shape.count, offset);
    for (std::size_t i = 0; i < shape.count; ++i) {
      arrays.back().set(i, make_value<T>(random, shape.any_bits));
    }
  }
  std::vector<std::vector<T>> columns(shape.count);
  for (std::size_t i = 0; i < shape.count; ++i) {
    for (const auto& array : arrays) columns[i].push_back(array.get(i));
  }
  Unaligned<T> apart(shape.count, shape.offset);
  Unaligned<T>& out =
      shape.in_place_source < 0 ? apart : arrays[static_cast<std::size_t>(shape.in_place_source)];
  std::vector<const void*> sources;
  for (auto& array : arrays) sources.push_back(array.data());

  reduce(out.data(),
         sources.data(),
         shape.n_sources,
         shape.count,
         dtype,
         op,
         average_over,
         shape.stores);

  for (std::size_t i = 0; i < shape.count; ++i) {
    const T expected = expected_element(columns[i], op, average_over);
    ASSERT_TRUE(same(out.get(i), expected)) << describe(dtype, op, shape) << ", element " << i;
  }
  ASSERT_TRUE(out.fence_holds()) << describe(dtype, op, shape);
}

// The instruction sets that this processor has and the kernels are compiled for.
std::vector<std::int64_t> instruction_sets() {
  std::vector<std::int64_t> sets;
  for (const std::int64_t set : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (set == HWY_SCALAR || (hwy::SupportedTargets() & set) != 0) sets.push_back(set);
  }
  return sets;
}

class EachDType : public testing::TestWithParam<std::tuple<std::int64_t, int>> {
 protected:
  void SetUp() override { use(std::get<0>(GetParam())); }
  void TearDown() override { use(0); }

  // Makes `set` the best there is; 0 is the processor's own choice.
  static void use(std::int64_t set) {
    hwy::SetSupportedTargetsForTest(set);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  DType dtype() const { return static_cast<DType>(std::get<1>(GetParam())); }

  // Calls `function` with each op defined for the dtype.
  template <typename Function>
  void for_ops(Function&& function) {
    for (int i = 0; i < kReduceOpCount; ++i) {
      const auto op = static_cast<ReduceOp>(i);
      if (is_defined(op, dtype())) function(op);
      if (HasFatalFailure()) return;
    }
  }

  void check_shape(ReduceOp op, const Shape& shape) {
    dispatch(dtype(), [&]<typename T>() { check<T>(op, shape, random_); });
  }

  // Reduces `n` arrays into `n` outputs, each of which is one of them or separate. Output i begins
  // `i * skew` bytes after the start of a cache line.
  template <typename T>
  void check_outs(ReduceOp op, int n, Stores stores, bool in_place, std::size_t skew) {
    constexpr std::size_t kCount = 407;
    std::vector<Unaligned<T>> sources, apart;
    for (int i = 0; i < n; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * skew % 64;
      sources.emplace_back(kCount, offset);
      apart.emplace_back(kCount, offset);
      for (std::size_t k = 0; k < kCount; ++k) sources.back().set(k, make_value<T>(random_, true));
    }
    std::vector<const void*> from;
    for (auto& array : sources) from.push_back(array.data());
    Unaligned<T> expected(kCount, 0);
    reduce(expected.data(), from.data(), n, kCount, dtype(), op, n, Stores::kCached);

    auto& outs = in_place ? sources : apart;
    std::vector<void*> to;
    for (auto& array : outs) to.push_back(array.data());
    reduce_kernel(dtype(), op, stores)(to.data(), n, from.data(), n, kCount, n);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(std::memcmp(to[static_cast<std::size_t>(i)], expected.data(), kCount * sizeof(T)),
                0)
          << describe(dtype(), op, {.n_sources = n, .stores = stores}) << ", out " << i;
      ASSERT_TRUE(outs[static_cast<std::size_t>(i)].fence_holds());
    }
  }

  std::mt19937_64 random_{20240229};
};

INSTANTIATE_TEST_SUITE_P(Core,
                         EachDType,
                         testing::Combine(testing::ValuesIn(instruction_sets()),
                                          testing::Range(0, kDTypeCount)),
                         [](const auto& p) {
                           return std::string(hwy::TargetName(std::get<0>(p.param))) + "_" +
                                  std::string(name_of(static_cast<DType>(std::get<1>(p.param))));
                         });

TEST_P(EachDType, AnyNumberOfSourcesAndElements) {
  for_ops([&](ReduceOp op) {
    for (const int n : {1, 2, 3, 4, 5, 17}) {
      for (const std::size_t count : {0, 1, 2, 7, 15, 64, 127, 1000}) {
        for (const bool any_bits : {false, true}) {
          check_shape(op, {.n_sources = n, .count = count, .any_bits = any_bits});
          if (HasFatalFailure()) return;
        }
      }
    }
  });
}

TEST_P(EachDType, AnyAlignment) {
  for_ops([&](ReduceOp op) {
    for (const std::size_t offset : {1, 2, 3, 4, 8, 16, 31, 33, 63}) {
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        check_shape(op, {.n_sources = 2, .count = 333, .offset = offset, .stores = stores});
        check_shape(op, {.n_sources = 3, .count = 70, .offset = offset, .stores = stores});
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(EachDType, InPlaceOverAnySource) {
  for_ops([&](ReduceOp op) {
    for (const int n : {1, 2, 3, 5, 17}) {
      for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
        check_shape(op, {.n_sources = n, .count = 2113, .in_place_source = 0, .stores = stores});
        check_shape(op,
                    {.n_sources = n, .count = 2113, .in_place_source = n - 1, .stores = stores});
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(EachDType, StreamingOverManyBlocks) {
  for_ops([&](ReduceOp op) {
    for (const int n : {1, 2, 16, 17}) {
      check_shape(op, {.n_sources = n, .count = 9001, .stores = Stores::kStreaming});
      check_shape(op, {.n_sources = n, .count = 9001, .offset = 5, .stores = Stores::kStreaming});
      if (HasFatalFailure()) return;
    }
  });
}

// Every pair of special values meets: infinities, NaN, zeros of both signs, extremes, subnormals.
TEST_P(EachDType, SpecialValuesMeet) {
  dispatch(dtype(), [&]<typename T>() {
    std::vector<T> specials;
    if constexpr (kIsSmall<T>) {
      for (int code = 0; code < 256; ++code) {
        using Bits = decltype(T::bits);
        specials.push_back(T::from_bits(static_cast<Bits>(code << (8 * (sizeof(T) - 1)))));
        if (sizeof(T) == 2) specials.push_back(T::from_bits(static_cast<Bits>((code << 8) | 1)));
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      for (const T value : {T{0},
                            T{1},
                            Limits::infinity(),
                            Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            Limits::quiet_NaN(),
                            T(0.1)}) {
        specials.push_back(value);
        specials.push_back(-value);
      }
    } else if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      specials = {T(0), T(1), static_cast<T>(-1), Limits::min(), Limits::max()};
    } else {
      specials = {T(0, 0), T(1, -0.0), T(INFINITY, 1), T(NAN, 2), T(-3, 1e30)};
    }
    const std::size_t n = specials.size();
    for_ops([&](ReduceOp op) {
      Unaligned<T> a(n * n, 0), b(n * n, 0), out(n * n, 0);
      for (std::size_t i = 0; i < n * n; ++i) {
        a.set(i, specials[i / n]);
        b.set(i, specials[i % n]);
      }
      const void* const sources[] = {a.data(), b.data()};
      reduce(out.data(), sources, 2, n * n, dtype(), op, 3, Stores::kCached);
      for (std::size_t i = 0; i < n * n; ++i) {
        ASSERT_TRUE(same(out.get(i), expected_element<T>({a.get(i), b.get(i)}, op, 3)))
            << describe(dtype(), op, {}) << ", " << i / n << " with " << i % n;
      }
    });
  });
}

// However an array is cut into calls, the bits are the same, NaN's too.
TEST_P(EachDType, CutsDoNotMatter) {
  dispatch(dtype(), [&]<typename T>() {
    constexpr std::size_t kCount = 700;
    Unaligned<T> a(kCount, 0), b(kCount, 0), c(kCount, 0), whole(kCount, 0), cut(kCount, 0);
    for (std::size_t i = 0; i < kCount; ++i) {
      for (auto* array : {&a, &b, &c}) array->set(i, make_value<T>(random_, true));
    }
    for_ops([&](ReduceOp op) {
      const void* const sources[] = {a.data(), b.data(), c.data()};
      for (const int n : {2, 3}) {
        reduce(whole.data(), sources, n, kCount, dtype(), op, n, Stores::kCached);
        std::size_t i = 0;
        for (std::size_t part = 1; i < kCount; ++part) {
          const std::size_t count = std::min(part, kCount - i);
          const std::size_t at = i * sizeof(T);
          const void* const parts[] = {a.data() + at, b.data() + at, c.data() + at};
          const Stores stores = part % 2 == 0 ? Stores::kCached : Stores::kStreaming;
          reduce(cut.data() + at, parts, n, count, dtype(), op, n, stores);
          i += count;
        }
        ASSERT_EQ(std::memcmp(whole.data(), cut.data(), kCount * sizeof(T)), 0)
            << describe(dtype(), op, {});
      }
    });
  });
}

// Each of several outs holds the result that a single out would, whether or not they have the same
// offset in their cache lines, and also if each is a source.
TEST_P(EachDType, SeveralOutsHoldTheSame) {
  dispatch(dtype(), [&]<typename T>() {
    for_ops([&](ReduceOp op) {
      for (const int n : {1, 2, 3, 5}) {
        for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
          for (const bool in_place : {false, true}) {
            for (const std::size_t skew : {0, 8, 13}) {
              check_outs<T>(op, n, stores, in_place, skew);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    });
  });
}

TEST_P(EachDType, WidenAddNarrowEqualsReduce) {
  dispatch(dtype(), [&]<typename T>() {
    constexpr std::size_t kCount = 101;
    Unaligned<T> a(kCount, 3), b(kCount, 9), direct(kCount, 1), by_steps(kCount, 2);
    for (std::size_t i = 0; i < kCount; ++i) {
      a.set(i, make_value<T>(random_, false));
      b.set(i, make_value<T>(random_, false));
    }
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
      if (!is_defined(op, dtype())) continue;
      const DType wide = accumulation_type(dtype(), op);
      std::vector<std::byte> x(kCount * size_of(wide)), y(kCount * size_of(wide));
      widen(x.data(), a.data(), kCount, dtype(), op);
      widen(y.data(), b.data(), kCount, dtype(), op);
      add(x.data(), x.data(), y.data(), kCount, wide);
      narrow(by_steps.data(), x.data(), kCount, dtype(), op, 2);
      const void* const sources[] = {a.data(), b.data()};
      reduce(direct.data(), sources, 2, kCount, dtype(), op, 2, Stores::kCached);
      ASSERT_EQ(std::memcmp(direct.data(), by_steps.data(), kCount * sizeof(T)), 0) << name_of(op);
      ASSERT_TRUE(by_steps.fence_holds());
    }
  });
}

TEST_P(EachDType, MeaninglessOpsAreRefused) {
  for (int i = 0; i < kReduceOpCount; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
      if (is_defined(op, dtype())) {
        EXPECT_NE(reduce_kernel(dtype(), op, stores), nullptr);
        continue;
      }
      try {
        reduce_kernel(dtype(), op, stores);
        ADD_FAILURE() << name_of(op) << " on " << name_of(dtype()) << " was taken";
      } catch (const InvalidArgument& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find(name_of(op)), std::string::npos) << message;
        EXPECT_NE(message.find(name_of(dtype())), std::string::npos) << message;
      }
    }
  }
}

// One rounding at the end, not one after each addition.
TEST(Reduce, HalfTypesAccumulateInFloat32) {
  const float16 big(2048.0f);
  const float16 one(1.0f);
  float16 out;
  const void* const sources[] = {&big, &one, &one};
  reduce(&out, sources, 3, 1, DType::kFloat16, ReduceOp::kSum, 1, Stores::kCached);
  EXPECT_EQ(static_cast<float>(out), 2050.0f);  // 2048 + 1 rounds to 2048 in float16
  const bfloat16 wide(256.0f);
  const bfloat16 unit(1.0f);
  bfloat16 sum;
  const void* const brains[] = {&wide, &unit, &unit};
  reduce(&sum, brains, 3, 1, DType::kBFloat16, ReduceOp::kSum, 1, Stores::kCached);
  EXPECT_EQ(static_cast<float>(sum), 258.0f);
}

TEST(Reduce, AnyByteButZeroIsTrue) {
  const std::uint8_t a[] = {0, 2, 255, 1, 4};
  const std::uint8_t b[] = {0, 1, 0, 128, 4};
  std::uint8_t out[5];
  const void* const sources[] = {a, b};
  const auto run = [&](ReduceOp op) {
    reduce(out, sources, 2, 5, DType::kBool, op, 1, Stores::kCached);
    return std::vector<int>(out, out + 5);
  };
  EXPECT_EQ(run(ReduceOp::kSum), (std::vector<int>{0, 1, 1, 1, 1}));
  EXPECT_EQ(run(ReduceOp::kProduct), (std::vector<int>{0, 1, 0, 1, 1}));
  EXPECT_EQ(run(ReduceOp::kBitXor), (std::vector<int>{0, 0, 1, 0, 0}));
}

TEST(Copy, AnySizeAndAlignment) {
  std::mt19937_64 random(7);
  for (const Stores stores : {Stores::kCached, Stores::kStreaming}) {
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 200, 4097, 70001}) {
      for (const std::size_t offset : {0, 1, 17, 63}) {
        Unaligned<std::uint8_t> in(bytes, (offset * 5) % 64), out(bytes, offset);
        for (std::size_t i = 0; i < bytes; ++i) in.set(i, static_cast<std::uint8_t>(random()));
        copy(out.data(), in.data(), bytes, stores);
        ASSERT_EQ(std::memcmp(out.data(), in.data(), bytes), 0) << bytes << " at " << offset;
        ASSERT_TRUE(out.fence_holds()) << bytes << " at " << offset;
      }
    }
  }
  copy(nullptr, nullptr, 0, Stores::kCached);
}

}  // namespace
}  // namespace hocket::core
