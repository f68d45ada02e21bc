// Digests find each single bit that differs, in its block. They are the same with every instruction
// set. Numbers that are not finite are found anywhere.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "foundation/core/digest.h"
#include "hwy/targets.h"

namespace hocket::core {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

std::vector<Digest> digests_of(const std::uint8_t* data, std::size_t bytes, std::size_t block) {
  std::vector<Digest> digests(block_count(bytes, block));
  digest_blocks(data, bytes, block, DType::kUInt8, digests.data());
  return digests;
}
std::vector<Digest> digests_of(const Bytes& bytes, std::size_t block) {
  return digests_of(bytes.data(), bytes.size(), block);
}

TEST(CoreDigest, EachSingleBitOfAShortArrayIsFound) {
  for (std::size_t size = 1; size <= 200; ++size) {
    Bytes bytes = random_bytes(size, size);
    const Digest before = digests_of(bytes, 4096).front();
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      EXPECT_NE(digests_of(bytes, 4096).front().sums, before.sums) << size << " " << bit;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    }
  }
}

TEST(CoreDigest, TenThousandSingleBitsAreFoundInTheirBlocks) {
  constexpr std::size_t kSize = 50'021;
  constexpr std::size_t kBlock = 1024;
  std::mt19937_64 random(7);
  Bytes bytes = random_bytes(kSize, 8);
  const auto before = digests_of(bytes, kBlock);
  std::size_t found = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bit = random() % (8 * kSize);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto after = digests_of(bytes, kBlock);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    for (std::size_t block = 0; block < before.size(); ++block) {
      const bool differs = before[block] != after[block];
      ASSERT_EQ(differs, block == bit / 8 / kBlock) << "bit " << bit;
      found += differs ? 1 : 0;
    }
  }
  EXPECT_EQ(found, 10'000U);
}

TEST(CoreDigest, OtherDifferencesAreFound) {
  std::mt19937_64 random(9);
  std::vector<double> values(512);
  for (double& value : values) value = static_cast<double>(random() % 1000) + 1;
  const auto digest = [](const std::vector<double>& of) {
    Digest made;
    digest_blocks(of.data(), of.size() * sizeof(double), 1 << 20, DType::kFloat64, &made);
    return made;
  };
  const Digest before = digest(values);
  auto negated = values;
  for (double& value : negated) value = -value;
  EXPECT_NE(digest(negated), before);
  for (std::size_t apart = 1; apart < values.size(); ++apart) {
    auto swapped = values;
    std::swap(swapped[0], swapped[apart]);
    if (swapped != values) {
      EXPECT_NE(digest(swapped), before) << apart;
    }
    auto two_signs = values;
    two_signs[0] = -two_signs[0];
    two_signs[apart] = -two_signs[apart];
    EXPECT_NE(digest(two_signs), before) << apart;
  }
}

// Digests from one machine are compared on another.
TEST(CoreDigest, AllInstructionSetsAndAddressesAgree) {
  const Bytes bytes = random_bytes(3000, 11);
  for (const std::size_t size : {1U, 7U, 8U, 9U, 63U, 64U, 65U, 127U, 128U, 1000U, 2900U}) {
    const auto expected = digests_of(bytes.data(), size, 256);
    for (std::size_t shift = 0; shift < 9; ++shift) {
      Bytes moved(size + shift);
      std::memcpy(moved.data() + shift, bytes.data(), size);
      EXPECT_EQ(digests_of(moved.data() + shift, size, 256), expected) << size << " at " << shift;
    }
    for (const std::int64_t set : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if (set != HWY_SCALAR && (hwy::SupportedTargets() & set) == 0) continue;
      hwy::SetSupportedTargetsForTest(set);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      EXPECT_EQ(digests_of(bytes.data(), size, 256), expected) << hwy::TargetName(set);
      hwy::SetSupportedTargetsForTest(0);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
  }
  // Fixed forever: files of other versions are compared.
  const Bytes known = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Digest digest = digests_of(known, 64).front();
  EXPECT_EQ(digest.sums, 0x0807060504030201 * 0x9e3779b97f4a7c15 + 9 * 0xbf58476d1ce4e5b9);
}

template <typename T>
void look_everywhere(DType dtype, T finite, const std::vector<T>& others) {
  std::vector<T> values(300, finite);
  std::vector<Digest> digests(block_count(values.size() * sizeof(T), 64));
  const auto found = [&](std::size_t count) {
    return digest_blocks(values.data(), count * sizeof(T), 64, dtype, digests.data());
  };
  for (std::size_t count = 1; count <= values.size(); ++count) {
    EXPECT_EQ(found(count), std::nullopt) << name_of(dtype) << count;
  }
  EXPECT_EQ(first_non_finite(values.data(), values.size(), dtype), std::nullopt);
  for (const T other : others) {
    for (std::size_t at = 0; at < values.size(); ++at) {
      values[at] = other;
      for (const std::size_t count : {at + 1, values.size()}) {
        EXPECT_EQ(found(count), at * sizeof(T) / 64) << name_of(dtype) << " " << at;
        EXPECT_EQ(first_non_finite(values.data(), count, dtype), at) << name_of(dtype);
      }
      values[at] = finite;
    }
  }
}

TEST(CoreDigest, WhatIsNotFiniteIsFound) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  look_everywhere<double>(DType::kFloat64, std::numeric_limits<double>::max(), {kInf, -kInf, kNan});
  look_everywhere<float>(DType::kFloat32,
                         std::numeric_limits<float>::lowest(),
                         {static_cast<float>(kInf), static_cast<float>(kNan)});
  look_everywhere<std::complex<float>>(
      DType::kComplex64, {1, 2}, {{static_cast<float>(kInf), 0}, {0, static_cast<float>(kNan)}});
  look_everywhere<std::complex<double>>(DType::kComplex128, {1, 2}, {{kNan, 0}, {0, kInf}});
  look_everywhere<std::uint16_t>(DType::kFloat16, 0xfbff, {0x7c00, 0xfc00, 0x7e01});
  look_everywhere<std::uint16_t>(DType::kBFloat16, 0xff7f, {0x7f80, 0xff80, 0x7fc0});
  look_everywhere<std::uint8_t>(DType::kFloat8E4M3, 0xfe, {0x7f, 0xff});
  look_everywhere<std::uint8_t>(DType::kFloat8E5M2, 0xfb, {0x7c, 0xfd});
  look_everywhere<std::uint64_t>(DType::kUInt64, ~std::uint64_t{0}, {});
  look_everywhere<std::uint8_t>(DType::kBool, 1, {});
}

TEST(CoreDigest, NothingHasNoDigest) {
  EXPECT_EQ(digest_blocks(nullptr, 0, 64, DType::kFloat32, nullptr), std::nullopt);
  EXPECT_EQ(block_count(0, 64), 0U);
}

}  // namespace
}  // namespace hocket::core
