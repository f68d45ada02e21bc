// Tables of datatypes' properties: envelopes, refusals, sizes, external32.
#include "interfaces/mpi/types/datatype.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace hocket::mpi {
namespace {

using Values = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct EnvelopeCase {
  const char* name;
  Result<DatatypePtr> made;
  Combiner combiner;
  std::vector<int> integers;
  Values addresses, counts;
  std::size_t types = 1;
};

TEST(MpiDatatype, EnvelopesHaveTheArguments) {
  const DatatypePtr old = predefined(Kind::kInt);
  const Values two = {2, 1}, places = {0, 16}, sizes = {4, 6}, starts = {1, 2};
  const std::vector<DatatypePtr> types = {old, predefined(Kind::kDouble)};
  const std::vector<Distribution> distribs = {Distribution::kBlock, Distribution::kCyclic};
  const Values dargs = {kDefaultDarg, 2}, psizes = {2, 1};
  const Subarray part{sizes, two, starts, Order::kFortran};
  const Darray share{2, 1, sizes, distribs, dargs, psizes, Order::kC};
  using enum Combiner;
  using enum Form;
  const EnvelopeCase cases[] = {
      {"named", old, kNamed, {}, {}, {}, 0},
      {"dup", dup(old), kDup, {}, {}, {}},
      {"contiguous", contiguous(3, old), kContiguous, {3}, {}, {}},
      {"contiguous_c", contiguous(3, old, Form::kCount), kContiguous, {}, {}, {3}},
      {"vector", vector(3, 2, -5, old), kVector, {3, 2, -5}, {}, {}},
      {"vector_c", vector(3, 2, -5, old, Form::kCount), kVector, {}, {}, {3, 2, -5}},
      {"hvector", hvector(3, 2, 50, old), kHvector, {3, 2}, {50}, {}},
      {"hvector_c", hvector(3, 2, 50, old, Form::kCount), kHvector, {}, {}, {3, 2, 50}},
      {"indexed", indexed(two, places, old), kIndexed, {2, 2, 1, 0, 16}, {}, {}},
      {"indexed_c", indexed(two, places, old, Form::kCount), kIndexed, {}, {}, {2, 2, 1, 0, 16}},
      {"hindexed", hindexed(two, places, old), kHindexed, {2, 2, 1}, {0, 16}, {}},
      {"hindexed_c", hindexed(two, places, old, Form::kCount), kHindexed, {}, {}, {2, 2, 1, 0, 16}},
      {"indexed_block", indexed_block(7, places, old), kIndexedBlock, {2, 7, 0, 16}, {}, {}},
      {"indexed_block_c",
       indexed_block(7, places, old, Form::kCount),
       kIndexedBlock,
       {},
       {},
       {2, 7, 0, 16}},
      {"hindexed_block", hindexed_block(7, places, old), kHindexedBlock, {2, 7}, {0, 16}, {}},
      {"hindexed_block_c",
       hindexed_block(7, places, old, Form::kCount),
       kHindexedBlock,
       {},
       {},
       {2, 7, 0, 16}},
      {"struct", structure(two, places, types), kStruct, {2, 2, 1}, {0, 16}, {}, 2},
      {"struct_c",
       structure(two, places, types, Form::kCount),
       kStruct,
       {},
       {},
       {2, 2, 1, 0, 16},
       2},
      {"subarray", subarray(part, old), kSubarray, {2, 4, 6, 2, 1, 1, 2, 15}, {}, {}},
      {"subarray_c", subarray(part, old, Form::kCount), kSubarray, {2, 15}, {}, {4, 6, 2, 1, 1, 2}},
      {"darray", darray(share, old), kDarray, {2, 1, 2, 4, 6, 17, 18, -1, 2, 2, 1, 12}, {}, {}},
      {"darray_c",
       darray(share, old, Form::kCount),
       kDarray,
       {2, 1, 2, 17, 18, -1, 2, 2, 1, 12},
       {},
       {4, 6}},
      {"resized", resized(old, -4, 12), kResized, {}, {-4, 12}, {}},
      {"resized_c", resized(old, -4, 12, Form::kCount), kResized, {}, {}, {-4, 12}},
      {"f90_real", f90_real(10, {}), kF90Real, {10, -32766}, {}, {}, 0},
      {"f90_complex", f90_complex({}, 30), kF90Complex, {-32766, 30}, {}, {}, 0},
      {"f90_integer", f90_integer(9), kF90Integer, {9}, {}, {}, 0},
  };
  for (const EnvelopeCase& c : cases) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(c.made.ok()) << c.made.refusal().text;
    const Datatype& type = *c.made.value();
    EXPECT_EQ(type.envelope().combiner, c.combiner);
    EXPECT_EQ(type.envelope().integers, c.integers);
    EXPECT_EQ(type.envelope().addresses, c.addresses);
    EXPECT_EQ(type.envelope().counts, c.counts);
    EXPECT_EQ(type.envelope().types.size(), c.types);
    EXPECT_EQ(type.is_predefined(), c.types == 0);
    if (c.types == 1) {
      EXPECT_EQ(type.envelope().types[0], old);
    }
  }
}

struct RefusalCase {
  ErrorClass error_class;
  const char* named;  // in the text
  Result<DatatypePtr> made;
};

TEST(MpiDatatype, BadArgumentsAreRefusedByName) {
  const DatatypePtr old = predefined(Kind::kInt);
  const DatatypePtr wide = contiguous(std::int64_t{1} << 40, old, Form::kCount).take();
  const Values two = {2, 1}, one = {1}, bad = {1, -1}, zero = {1, 0}, far = {0, kMost / 2};
  const Values sizes = {4, 6}, beyond = {2, 5}, much = {kMost / 4, 8};
  const std::vector<DatatypePtr> types = {old, nullptr};
  const std::vector<Distribution> blocks = {Distribution::kBlock, Distribution::kBlock};
  const std::vector<Distribution> none = {Distribution::kNone, Distribution::kBlock};
  const std::vector<Distribution> odd = {Distribution::kBlock, static_cast<Distribution>(3)};
  const Values dargs = {kDefaultDarg, kDefaultDarg}, short_dargs = {1, 6};
  const auto part = [&](Numbers subsizes, Numbers starts, Order order = Order::kC) {
    return subarray({sizes, subsizes, starts, order}, old);
  };
  using enum ErrorClass;
  const RefusalCase cases[] = {
      {kType, "oldtype", dup(nullptr)},
      {ErrorClass::kCount, "count", contiguous(-1, old)},
      {kType, "oldtype", contiguous(1, nullptr)},
      {kValueTooLarge, "64 bits", contiguous(std::int64_t{1} << 62, old, Form::kCount)},
      {kArg, "int", contiguous(std::int64_t{1} << 31, old)},
      {ErrorClass::kCount, "count", vector(-1, 1, 1, old)},
      {kArg, "blocklength", vector(1, -1, 1, old)},
      {kType, "oldtype", vector(1, 1, 1, nullptr)},
      {kValueTooLarge, "stride", vector(2, 1, kMost / 2, wide, Form::kCount)},
      {kValueTooLarge, "64 bits", hvector(4, 1, kMost / 2, old, Form::kCount)},
      {kArg, "array_of_blocklengths[1]", indexed(bad, two, old)},
      {kArg, "array_of_displacements", indexed(two, one, old)},
      {kValueTooLarge, "array_of_displacements[1]", indexed(two, far, wide, Form::kCount)},
      {kType, "oldtype", indexed(two, two, nullptr)},
      {kArg, "array_of_blocklengths[1]", hindexed(bad, two, old)},
      {kArg, "blocklength", indexed_block(-2, two, old)},
      {kArg, "blocklength", hindexed_block(-2, two, old)},
      {kType, "array_of_types[1]", structure(two, two, types)},
      {kArg, "array_of_blocklengths[1]", structure(bad, two, types)},
      {kArg, "array_of_types", structure(two, two, {&old, 1})},
      {kType, "oldtype", resized(nullptr, 0, 4)},
      {kValueTooLarge, "64 bits", resized(old, kMost, 4)},
      {kDims, "ndims", subarray({}, old)},
      {kArg, "array_of_subsizes[1]", part(zero, two)},
      {kArg, "array_of_starts[1]", part(two, bad)},
      {kArg, "array_of_sizes[1]", part(beyond, beyond)},
      {kArg, "array_of_sizes[1]", part(two, far)},
      {kArg, "order", part(two, two, static_cast<Order>(0))},
      {kValueTooLarge, "whole array", subarray({much, two, two}, old, Form::kCount)},
      {kArg, "rank", darray({2, 2, sizes, blocks, dargs, two, Order::kC}, old)},
      {kArg, "size", darray({3, 0, sizes, blocks, dargs, two, Order::kC}, old)},
      {kArg, "array_of_psizes[0]", darray({2, 0, sizes, none, dargs, two, Order::kC}, old)},
      {kArg, "array_of_dargs[0]", darray({2, 0, sizes, blocks, short_dargs, two, Order::kC}, old)},
      {kArg, "array_of_distribs[1]", darray({2, 0, sizes, odd, dargs, two, Order::kC}, old)},
      {kArg, "MPI_UNDEFINED", f90_real({}, {})},
      {kArg, "p is 40", f90_real(40, {})},
      {kArg, "r is 39", f90_integer(39)},
  };
  for (const RefusalCase& c : cases) {
    const auto line = &c - cases;
    ASSERT_FALSE(c.made.ok()) << "case " << line << ", " << c.named;
    EXPECT_EQ(c.made.refusal().error_class, c.error_class) << c.made.refusal().text;
    EXPECT_NE(c.made.refusal().text.find(c.named), std::string::npos) << c.made.refusal().text;
  }
  EXPECT_EQ(old->packed_size(-1).refusal().error_class, ErrorClass::kCount);
  EXPECT_EQ(old->packed_size(kMost / 3).refusal().error_class, kValueTooLarge);
  EXPECT_EQ(old->external32_size(kMost / 3).refusal().error_class, kValueTooLarge);
}

template <typename First, typename Second>
struct CPair {
  First first;
  Second second;
};

struct KindCase {
  Kind kind;
  std::size_t size, extent, external;
};

TEST(MpiDatatype, PredefinedTypesAreAsCAndTheStandardHaveThem) {
  using LD = long double;
  const KindCase cases[] = {
      {Kind::kByte, 1, 1, 1},
      {Kind::kWchar, sizeof(wchar_t), sizeof(wchar_t), 2},
      {Kind::kShort, sizeof(short), sizeof(short), 2},
      {Kind::kInt, sizeof(int), sizeof(int), 4},
      {Kind::kLong, sizeof(long), sizeof(long), 4},
      {Kind::kUnsignedLong, sizeof(long), sizeof(long), 4},
      {Kind::kLongLong, sizeof(long long), sizeof(long long), 8},
      {Kind::kInt64, 8, 8, 8},
      {Kind::kLongDouble, sizeof(LD), sizeof(LD), 16},
      {Kind::kCLongDoubleComplex, 2 * sizeof(LD), 2 * sizeof(LD), 32},
      {Kind::kCBool, sizeof(bool), sizeof(bool), 1},
      {Kind::kComplex4, 4, 4, 4},
      {Kind::kComplex32, 32, 32, 32},
      {Kind::kFloatInt, 8, sizeof(CPair<float, int>), 8},
      {Kind::kDoubleInt, 12, sizeof(CPair<double, int>), 12},
      {Kind::kLongInt, sizeof(long) + 4, sizeof(CPair<long, int>), 8},
      {Kind::k2Int, 8, 8, 8},
      {Kind::kShortInt, 6, sizeof(CPair<short, int>), 6},
      {Kind::kLongDoubleInt, sizeof(LD) + 4, sizeof(CPair<LD, int>), 20},
      {Kind::k2DoublePrecision, 16, 16, 16},
  };
  for (const KindCase& c : cases) {
    SCOPED_TRACE(facts_of(c.kind).name);
    const DatatypePtr type = predefined(c.kind);
    EXPECT_EQ(type->size(), static_cast<std::int64_t>(c.size));
    EXPECT_EQ(type->extent(), static_cast<std::int64_t>(c.extent));
    EXPECT_EQ(type->external32_size(3).value(), static_cast<std::int64_t>(3 * c.external));
    EXPECT_EQ(type->is_contiguous(), c.size == c.extent);
    EXPECT_EQ(type->element_kind(), c.kind);
    EXPECT_EQ(kind_named(facts_of(c.kind).name), c.kind);
  }
  EXPECT_EQ(kind_named("MPI_LONG_LONG_INT"), Kind::kLongLong);
  EXPECT_EQ(kind_named("MPI_UB"), std::nullopt);
}

// Makes the external form of one value, as hexadecimal digits.
template <typename T>
std::string external_of(Kind kind, T value) {
  const DatatypePtr type = predefined(kind);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(type->external32_size(1).value()));
  if (const auto refusal = type->pack_external32(&value, 1, bytes.data())) {
    EXPECT_EQ(refusal->error_class, ErrorClass::kConversion);
    return "refused";
  }
  std::string digits;
  for (const unsigned char byte : bytes) {
    digits += "0123456789abcdef"[byte / 16];
    digits += "0123456789abcdef"[byte % 16];
  }
  T back = {};
  type->unpack_external32(bytes.data(), 1, &back);
  EXPECT_TRUE(back == value) << digits;
  return digits;
}

TEST(MpiDatatype, External32IsBigEndian) {
  EXPECT_EQ(external_of<int>(Kind::kInt, 0x01020304), "01020304");
  EXPECT_EQ(external_of<short>(Kind::kShort, -2), "fffe");
  EXPECT_EQ(external_of<long>(Kind::kLong, -3), "fffffffd");
  EXPECT_EQ(external_of<long>(Kind::kLong, 0x7fffffff), "7fffffff");
  EXPECT_EQ(external_of<long>(Kind::kLong, 0x80000000), "refused");
  EXPECT_EQ(external_of<long>(Kind::kLong, -0x80000001L), "refused");
  EXPECT_EQ(external_of<unsigned long>(Kind::kUnsignedLong, 0xfffffffful), "ffffffff");
  EXPECT_EQ(external_of<unsigned long>(Kind::kUnsignedLong, 0x100000000ul), "refused");
  EXPECT_EQ(external_of<wchar_t>(Kind::kWchar, L'\x20ac'), "20ac");
  EXPECT_EQ(external_of<double>(Kind::kDouble, -1.5), "bff8000000000000");
  EXPECT_EQ(external_of<std::complex<float>>(Kind::kCFloatComplex, {1.0f, -2.0f}),
            "3f800000c0000000");
  EXPECT_EQ(external_of<long double>(Kind::kLongDouble, 1.0L), "3fff0000000000000000000000000000");
  EXPECT_EQ(external_of<long double>(Kind::kLongDouble, -2.5L), "c0004000000000000000000000000000");
  EXPECT_EQ(
      external_of<long double>(Kind::kLongDouble, std::numeric_limits<long double>::infinity()),
      "7fff0000000000000000000000000000");
}

TEST(MpiDatatype, RegularTypesAreLoops) {
  const DatatypePtr d = predefined(Kind::kDouble);
  // Many places that are evenly spaced are a loop; those of others are two words each.
  Values even(100'000), odd(100'000);
  for (std::size_t i = 0; i < even.size(); ++i) {
    even[i] = static_cast<std::int64_t>(3 * i);
    odd[i] = static_cast<std::int64_t>(4 * i + i % 2);
  }
  const auto loop = indexed_block(2, even, d).take();
  EXPECT_EQ(loop->map().bytes().shape, Layout::Shape::kLoop);
  EXPECT_EQ(loop->map().bytes().count, 100'000);
  EXPECT_EQ(loop->map().bytes().body->size, 16);
  EXPECT_EQ(indexed_block(2, odd, d).value()->map().bytes().shape, Layout::Shape::kList);
  // Neighbours are one run.
  Values all(1000);
  std::iota(all.begin(), all.end(), 0);
  const auto run = indexed_block(1, all, d).take();
  EXPECT_TRUE(run->is_contiguous());
  EXPECT_EQ(run->size(), 8000);
  EXPECT_TRUE(vector(10, 4, 4, d).value()->is_contiguous());
  EXPECT_FALSE(vector(10, 4, 5, d).value()->is_contiguous());
  EXPECT_FALSE(resized(d, 0, 16).value()->is_contiguous());
  // The types of a struct differ, but its bytes are one run.
  const Values lengths = {2, 1}, places = {0, 8};
  const std::vector<DatatypePtr> types = {predefined(Kind::kFloat), d};
  const auto mixed = structure(lengths, places, types).take();
  EXPECT_TRUE(mixed->is_contiguous());
  EXPECT_EQ(mixed->element_kind(), std::nullopt);
  EXPECT_EQ(mixed->elements_in(8), 2);
  EXPECT_EQ(mixed->elements_in(12), std::nullopt);
  EXPECT_EQ(mixed->elements_in(16 + 4), 4);
}

TEST(MpiDatatype, FortransTypesHoldWhatTheyMust) {
  EXPECT_EQ(f90_real(6, 37).value()->element_kind(), Kind::kReal4);
  EXPECT_EQ(f90_real(7, {}).value()->element_kind(), Kind::kReal8);
  EXPECT_EQ(f90_real({}, 308).value()->size(), 16);
  EXPECT_EQ(f90_real(33, 4931).value()->element_kind(), Kind::kReal16);
  EXPECT_EQ(f90_complex(15, 307).value()->element_kind(), Kind::kComplex16);
  EXPECT_EQ(f90_integer(4).value()->element_kind(), Kind::kInteger2);
  EXPECT_EQ(f90_integer(5).value()->element_kind(), Kind::kInteger4);
  EXPECT_EQ(f90_integer(19).value()->element_kind(), Kind::kInteger16);
  EXPECT_EQ(match_size(TypeClass::kInteger, 8).value(), Kind::kInteger8);
  EXPECT_EQ(match_size(TypeClass::kReal, 8).value(), Kind::kReal8);
  EXPECT_EQ(match_size(TypeClass::kComplex, 8).value(), Kind::kComplex8);
  EXPECT_NE(match_size(TypeClass::kReal, 3).refusal().text.find("size is 3"), std::string::npos);
  EXPECT_NE(match_size(static_cast<TypeClass>(0), 8).refusal().text.find("typeclass"),
            std::string::npos);
  EXPECT_EQ(value_index(Kind::kDouble, Kind::kInt), Kind::kDoubleInt);
  EXPECT_EQ(value_index(Kind::kReal, Kind::kReal), Kind::k2Real);
  EXPECT_EQ(value_index(Kind::kDouble, Kind::kLong), std::nullopt);
}

}  // namespace
}  // namespace hocket::mpi
