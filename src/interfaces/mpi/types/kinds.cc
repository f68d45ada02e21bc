#include "interfaces/mpi/types/kinds.h"

#include <algorithm>
#include <array>
#include <cwchar>

namespace hocket::mpi {
namespace {

template <typename T>
constexpr Number integer_of() {
  constexpr bool kSigned = static_cast<T>(-1) < static_cast<T>(1);
  switch (sizeof(T)) {
    case 1:
      return kSigned ? Number::kInt8 : Number::kUInt8;
    case 2:
      return kSigned ? Number::kInt16 : Number::kUInt16;
    case 4:
      return kSigned ? Number::kInt32 : Number::kUInt32;
    default:
      return kSigned ? Number::kInt64 : Number::kUInt64;
  }
}

constexpr KindFacts pair(Kind kind, std::string_view name, Kind first, Kind second) {
  return {
      .kind = kind, .name = name, .operand = OperandClass::kPair, .first = first, .second = second};
}

using enum OperandClass;
using N = Number;
using K = Kind;

// The facts of all kinds, in the order of Kind. Sizes in external32 come from the standard's table:
// MPI_LONG has 4 bytes.
constexpr std::array<KindFacts, kKindCount> kFacts = {{
    {K::kPacked, "MPI_PACKED", kNone, N::kBytes, 1, 1},
    {K::kByte, "MPI_BYTE", OperandClass::kByte, N::kUInt8, 1, 1},
    {K::kChar, "MPI_CHAR", kInteger, integer_of<char>(), 1, 1},
    {K::kSignedChar, "MPI_SIGNED_CHAR", kInteger, N::kInt8, 1, 1},
    {K::kUnsignedChar, "MPI_UNSIGNED_CHAR", kInteger, N::kUInt8, 1, 1},
    {K::kWchar, "MPI_WCHAR", kNone, integer_of<wchar_t>(), 1, 2},
    {K::kShort, "MPI_SHORT", kInteger, integer_of<short>(), 1, 2},
    {K::kUnsignedShort, "MPI_UNSIGNED_SHORT", kInteger, integer_of<unsigned short>(), 1, 2},
    {K::kInt, "MPI_INT", kInteger, integer_of<int>(), 1, 4},
    {K::kUnsigned, "MPI_UNSIGNED", kInteger, integer_of<unsigned>(), 1, 4},
    {K::kLong, "MPI_LONG", kInteger, integer_of<long>(), 1, 4},
    {K::kUnsignedLong, "MPI_UNSIGNED_LONG", kInteger, integer_of<unsigned long>(), 1, 4},
    {K::kLongLong, "MPI_LONG_LONG", kInteger, integer_of<long long>(), 1, 8},
    {K::kUnsignedLongLong,
     "MPI_UNSIGNED_LONG_LONG",
     kInteger,
     integer_of<unsigned long long>(),
     1,
     8},
    {K::kInt8, "MPI_INT8_T", kInteger, N::kInt8, 1, 1},
    {K::kInt16, "MPI_INT16_T", kInteger, N::kInt16, 1, 2},
    {K::kInt32, "MPI_INT32_T", kInteger, N::kInt32, 1, 4},
    {K::kInt64, "MPI_INT64_T", kInteger, N::kInt64, 1, 8},
    {K::kUint8, "MPI_UINT8_T", kInteger, N::kUInt8, 1, 1},
    {K::kUint16, "MPI_UINT16_T", kInteger, N::kUInt16, 1, 2},
    {K::kUint32, "MPI_UINT32_T", kInteger, N::kUInt32, 1, 4},
    {K::kUint64, "MPI_UINT64_T", kInteger, N::kUInt64, 1, 8},
    {K::kAint, "MPI_AINT", kInteger, N::kInt64, 1, 8},
    {K::kCount, "MPI_COUNT", kInteger, N::kInt64, 1, 8},
    {K::kOffset, "MPI_OFFSET", kInteger, N::kInt64, 1, 8},
    {K::kFloat, "MPI_FLOAT", kFloat, N::kFloat32, 1, 4},
    {K::kDouble, "MPI_DOUBLE", kFloat, N::kFloat64, 1, 8},
    {K::kLongDouble, "MPI_LONG_DOUBLE", kFloat, N::kLongDouble, 1, 16},
    {K::kCBool, "MPI_C_BOOL", kLogical, N::kUInt8, 1, 1},
    {K::kCxxBool, "MPI_CXX_BOOL", kLogical, N::kUInt8, 1, 1},
    {K::kCFloatComplex, "MPI_C_FLOAT_COMPLEX", kComplex, N::kFloat32, 2, 4},
    {K::kCDoubleComplex, "MPI_C_DOUBLE_COMPLEX", kComplex, N::kFloat64, 2, 8},
    {K::kCLongDoubleComplex, "MPI_C_LONG_DOUBLE_COMPLEX", kComplex, N::kLongDouble, 2, 16},
    {K::kCxxFloatComplex, "MPI_CXX_FLOAT_COMPLEX", kComplex, N::kFloat32, 2, 4},
    {K::kCxxDoubleComplex, "MPI_CXX_DOUBLE_COMPLEX", kComplex, N::kFloat64, 2, 8},
    {K::kCxxLongDoubleComplex, "MPI_CXX_LONG_DOUBLE_COMPLEX", kComplex, N::kLongDouble, 2, 16},
    {K::kCharacter, "MPI_CHARACTER", kNone, N::kBytes, 1, 1},
    {K::kLogical, "MPI_LOGICAL", kLogical, N::kInt32, 1, 4},
    {K::kInteger, "MPI_INTEGER", kInteger, N::kInt32, 1, 4},
    {K::kReal, "MPI_REAL", kFloat, N::kFloat32, 1, 4},
    {K::kDoublePrecision, "MPI_DOUBLE_PRECISION", kFloat, N::kFloat64, 1, 8},
    {K::kComplex, "MPI_COMPLEX", kComplex, N::kFloat32, 2, 4},
    {K::kDoubleComplex, "MPI_DOUBLE_COMPLEX", kComplex, N::kFloat64, 2, 8},
    {K::kLogical1, "MPI_LOGICAL1", kLogical, N::kInt8, 1, 1},
    {K::kLogical2, "MPI_LOGICAL2", kLogical, N::kInt16, 1, 2},
    {K::kLogical4, "MPI_LOGICAL4", kLogical, N::kInt32, 1, 4},
    {K::kLogical8, "MPI_LOGICAL8", kLogical, N::kInt64, 1, 8},
    {K::kLogical16, "MPI_LOGICAL16", kLogical, N::kInt128, 1, 16},
    {K::kInteger1, "MPI_INTEGER1", kInteger, N::kInt8, 1, 1},
    {K::kInteger2, "MPI_INTEGER2", kInteger, N::kInt16, 1, 2},
    {K::kInteger4, "MPI_INTEGER4", kInteger, N::kInt32, 1, 4},
    {K::kInteger8, "MPI_INTEGER8", kInteger, N::kInt64, 1, 8},
    {K::kInteger16, "MPI_INTEGER16", kInteger, N::kInt128, 1, 16},
    {K::kReal2, "MPI_REAL2", kFloat, N::kFloat16, 1, 2},
    {K::kReal4, "MPI_REAL4", kFloat, N::kFloat32, 1, 4},
    {K::kReal8, "MPI_REAL8", kFloat, N::kFloat64, 1, 8},
    {K::kReal16, "MPI_REAL16", kFloat, N::kQuad, 1, 16},
    {K::kComplex4, "MPI_COMPLEX4", kComplex, N::kFloat16, 2, 2},
    {K::kComplex8, "MPI_COMPLEX8", kComplex, N::kFloat32, 2, 4},
    {K::kComplex16, "MPI_COMPLEX16", kComplex, N::kFloat64, 2, 8},
    {K::kComplex32, "MPI_COMPLEX32", kComplex, N::kQuad, 2, 16},
    {K::kCFloat16, "MPIX_C_FLOAT16", kFloat, N::kFloat16, 1, 2},
    {K::kBfloat16, "MPIX_BFLOAT16", kFloat, N::kBfloat16, 1, 2},
    pair(K::kFloatInt, "MPI_FLOAT_INT", K::kFloat, K::kInt),
    pair(K::kDoubleInt, "MPI_DOUBLE_INT", K::kDouble, K::kInt),
    pair(K::kLongInt, "MPI_LONG_INT", K::kLong, K::kInt),
    pair(K::k2Int, "MPI_2INT", K::kInt, K::kInt),
    pair(K::kShortInt, "MPI_SHORT_INT", K::kShort, K::kInt),
    pair(K::kLongDoubleInt, "MPI_LONG_DOUBLE_INT", K::kLongDouble, K::kInt),
    pair(K::k2Real, "MPI_2REAL", K::kReal, K::kReal),
    pair(K::k2DoublePrecision, "MPI_2DOUBLE_PRECISION", K::kDoublePrecision, K::kDoublePrecision),
    pair(K::k2Integer, "MPI_2INTEGER", K::kInteger, K::kInteger),
}};

constexpr bool is_in_order() {
  for (int i = 0; i < kKindCount; ++i) {
    if (kFacts[static_cast<std::size_t>(i)].kind != static_cast<Kind>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

const KindFacts& facts_of(Kind kind) noexcept { return kFacts[static_cast<std::size_t>(kind)]; }

std::optional<Kind> kind_named(std::string_view name) noexcept {
  // The standard has two names for some types.
  if (name == "MPI_LONG_LONG_INT") return Kind::kLongLong;
  if (name == "MPI_C_COMPLEX") return Kind::kCFloatComplex;
  const auto found = std::ranges::find(kFacts, name, &KindFacts::name);
  if (found == kFacts.end()) return {};
  return found->kind;
}

std::int64_t size_of(Number number) noexcept {
  switch (number) {
    case Number::kBytes:
    case Number::kInt8:
    case Number::kUInt8:
      return 1;
    case Number::kInt16:
    case Number::kUInt16:
    case Number::kFloat16:
    case Number::kBfloat16:
      return 2;
    case Number::kInt32:
    case Number::kUInt32:
    case Number::kFloat32:
      return 4;
    case Number::kInt64:
    case Number::kUInt64:
    case Number::kFloat64:
      return 8;
    case Number::kLongDouble:
      return sizeof(long double);
    case Number::kInt128:
    case Number::kQuad:
      return 16;
  }
  return 0;
}

std::int64_t size_of(Kind kind) noexcept {
  const KindFacts& facts = facts_of(kind);
  if (facts.is_pair()) return size_of(facts.first) + size_of(facts.second);
  return facts.numbers * size_of(facts.number);
}

std::int64_t alignment_of(Kind kind) noexcept {
  const KindFacts& facts = facts_of(kind);
  if (facts.is_pair()) return std::max(alignment_of(facts.first), alignment_of(facts.second));
  if (facts.number == Number::kLongDouble) return alignof(long double);
  return size_of(facts.number);
}

std::int64_t second_offset_of(Kind pair) noexcept {
  const KindFacts& facts = facts_of(pair);
  const std::int64_t alignment = alignment_of(facts.second);
  return (size_of(facts.first) + alignment - 1) / alignment * alignment;
}

}  // namespace hocket::mpi
