// Choosing a predefined type: Fortran's by precision and range, others by size or as a pair.
#include <array>
#include <limits>
#include <string>

#include "interfaces/mpi/types/arguments.h"
#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {
namespace {

inline constexpr int kUndefined = -32766;  // MPI_UNDEFINED

// The kinds that selected_real_kind and selected_int_kind choose among: decimal digits and
// exponents.
struct RealKind {
  int precision, range;
  Kind real, complex;
};
// If the compiler's long double differs from REAL8 and REAL16, it stands between them.
constexpr std::array kRealKinds = {
    RealKind{6, 37, Kind::kReal4, Kind::kComplex8},
    RealKind{15, 307, Kind::kReal8, Kind::kComplex16},
    RealKind{std::numeric_limits<long double>::digits10,
             std::numeric_limits<long double>::max_exponent10 - 1,
             Kind::kLongDouble,
             Kind::kCLongDoubleComplex},
    RealKind{33, 4931, Kind::kReal16, Kind::kComplex32},
};
struct IntegerKind {
  int range;
  Kind kind;
};
constexpr std::array kIntegerKinds = {IntegerKind{2, Kind::kInteger1},
                                      IntegerKind{4, Kind::kInteger2},
                                      IntegerKind{9, Kind::kInteger4},
                                      IntegerKind{18, Kind::kInteger8},
                                      IntegerKind{38, Kind::kInteger16}};

Result<DatatypePtr> f90(Combiner combiner, std::optional<int> precision, std::optional<int> range) {
  if (!precision && !range) {
    return Refusal{ErrorClass::kArg, "p and r are both MPI_UNDEFINED, but one must be given"};
  }
  for (const RealKind& known : kRealKinds) {
    if (precision.value_or(0) > known.precision || range.value_or(0) > known.range) continue;
    const Kind kind = combiner == Combiner::kF90Real ? known.real : known.complex;
    return EnvelopeWriter(combiner, Form::kInt)
        .integer(precision.value_or(kUndefined))
        .integer(range.value_or(kUndefined))
        .make(TypeMap::of(kind));
  }
  return Refusal{ErrorClass::kArg,
                 "p is " + std::to_string(precision.value_or(kUndefined)) + " and r is " +
                     std::to_string(range.value_or(kUndefined)) +
                     ", but there is none beyond p = 33 and r = 4931"};
}

struct ClassMember {
  TypeClass type_class;
  std::int64_t bytes;
  Kind kind;
};
constexpr std::array kMembers = {
    ClassMember{TypeClass::kInteger, 1, Kind::kInteger1},
    ClassMember{TypeClass::kInteger, 2, Kind::kInteger2},
    ClassMember{TypeClass::kInteger, 4, Kind::kInteger4},
    ClassMember{TypeClass::kInteger, 8, Kind::kInteger8},
    ClassMember{TypeClass::kInteger, 16, Kind::kInteger16},
    ClassMember{TypeClass::kReal, 2, Kind::kReal2},
    ClassMember{TypeClass::kReal, 4, Kind::kReal4},
    ClassMember{TypeClass::kReal, 8, Kind::kReal8},
    ClassMember{TypeClass::kReal, 16, Kind::kReal16},
    ClassMember{TypeClass::kComplex, 4, Kind::kComplex4},
    ClassMember{TypeClass::kComplex, 8, Kind::kComplex8},
    ClassMember{TypeClass::kComplex, 16, Kind::kComplex16},
    ClassMember{TypeClass::kComplex, 32, Kind::kComplex32},
};

}  // namespace

Result<DatatypePtr> f90_real(std::optional<int> precision, std::optional<int> range) {
  return f90(Combiner::kF90Real, precision, range);
}

Result<DatatypePtr> f90_complex(std::optional<int> precision, std::optional<int> range) {
  return f90(Combiner::kF90Complex, precision, range);
}

Result<DatatypePtr> f90_integer(int range) {
  for (const IntegerKind& known : kIntegerKinds) {
    if (range > known.range) continue;
    return EnvelopeWriter(Combiner::kF90Integer, Form::kInt)
        .integer(range)
        .make(TypeMap::of(known.kind));
  }
  return Refusal{ErrorClass::kArg,
                 "r is " + std::to_string(range) + ", but there is no integer beyond r = 38"};
}

Result<Kind> match_size(TypeClass type_class, std::int64_t bytes) {
  bool is_class = false;
  for (const ClassMember& member : kMembers) {
    is_class = is_class || member.type_class == type_class;
    if (member.type_class == type_class && member.bytes == bytes) return member.kind;
  }
  if (!is_class) {
    return Refusal{ErrorClass::kArg,
                   "typeclass is " + std::to_string(static_cast<int>(type_class)) +
                       ", but must be MPI_TYPECLASS_REAL, _INTEGER or _COMPLEX"};
  }
  return Refusal{ErrorClass::kArg,
                 "size is " + std::to_string(bytes) + ", but the typeclass has no such type"};
}

std::optional<Kind> value_index(Kind value, Kind index) noexcept {
  for (int i = 0; i < kKindCount; ++i) {
    const KindFacts& facts = facts_of(static_cast<Kind>(i));
    if (facts.is_pair() && facts.first == value && facts.second == index) return facts.kind;
  }
  return {};
}

}  // namespace hocket::mpi
