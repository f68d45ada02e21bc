// MPI's predefined types, and the numbers that each consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hocket::mpi {

// A predefined type, by the standard's name.
enum class Kind : std::uint8_t {
  kPacked,
  kByte,
  kChar,
  kSignedChar,
  kUnsignedChar,
  kWchar,
  kShort,
  kUnsignedShort,
  kInt,
  kUnsigned,
  kLong,
  kUnsignedLong,
  kLongLong,
  kUnsignedLongLong,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kAint,
  kCount,
  kOffset,
  kFloat,
  kDouble,
  kLongDouble,
  kCBool,
  kCxxBool,
  kCFloatComplex,
  kCDoubleComplex,
  kCLongDoubleComplex,
  kCxxFloatComplex,
  kCxxDoubleComplex,
  kCxxLongDoubleComplex,
  kCharacter,
  kLogical,
  kInteger,
  kReal,
  kDoublePrecision,
  kComplex,
  kDoubleComplex,
  kLogical1,
  kLogical2,
  kLogical4,
  kLogical8,
  kLogical16,
  kInteger1,
  kInteger2,
  kInteger4,
  kInteger8,
  kInteger16,
  kReal2,
  kReal4,
  kReal8,
  kReal16,
  kComplex4,
  kComplex8,
  kComplex16,
  kComplex32,
  kCFloat16,  // kCFloat16 and kBfloat16 are extensions of MPICH
  kBfloat16,
  kFloatInt,
  kDoubleInt,
  kLongInt,
  k2Int,
  kShortInt,
  kLongDoubleInt,
  k2Real,
  k2DoublePrecision,
  k2Integer,
};
inline constexpr int kKindCount = static_cast<int>(Kind::k2Integer) + 1;

// The form of one number in memory.
enum class Number : std::uint8_t {
  kBytes,  // bytes that are not a number
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kInt128,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kLongDouble,  // the compiler's
  kQuad,        // IEEE 754 binary128
};

// The standard's groups of types. Its rules say which operators each group allows.
enum class OperandClass : std::uint8_t {
  kNone,  // characters and packed bytes: no operator but REPLACE and NO_OP
  kByte,
  kInteger,  // C's, Fortran's and the multi-language types
  kFloat,
  kLogical,
  kComplex,
  kPair,
};

// The facts about a predefined type. A value.
struct KindFacts {
  Kind kind = Kind::kByte;
  std::string_view name = {};  // "MPI_INT"
  OperandClass operand = OperandClass::kNone;
  Number number = Number::kBytes;
  int numbers = 1;         // 2: real and imaginary part
  int external_bytes = 1;  // bytes of one number in the data representation "external32"
  // The two parts of a pair, laid out as in a C struct. Of other kinds: the kind itself, twice.
  Kind first = kind;
  Kind second = kind;

  bool is_pair() const noexcept { return operand == OperandClass::kPair; }
};

const KindFacts& facts_of(Kind kind) noexcept;
std::optional<Kind> kind_named(std::string_view name) noexcept;

std::int64_t size_of(Number number) noexcept;
// Bytes of an element without padding: 12 for MPI_DOUBLE_INT.
std::int64_t size_of(Kind kind) noexcept;
std::int64_t alignment_of(Kind kind) noexcept;
// Returns the offset of a pair's second part, in bytes.
std::int64_t second_offset_of(Kind pair) noexcept;

}  // namespace hocket::mpi
