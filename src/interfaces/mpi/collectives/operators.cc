#include "interfaces/mpi/collectives/operators.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "interfaces/mpi/collectives/combine.h"
#include "interfaces/mpi/failure.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

std::string_view name_of_op(const Op& op) {
  return kNamedOps[static_cast<std::size_t>(op.predefined)].name;
}

std::optional<DType> dtype_of_number(Number number, int numbers) {
  if (numbers == 2) {
    if (number == Number::kFloat32) return DType::kComplex64;
    if (number == Number::kFloat64) return DType::kComplex128;
    return std::nullopt;
  }
  switch (number) {
    case Number::kInt8:
      return DType::kInt8;
    case Number::kInt16:
      return DType::kInt16;
    case Number::kInt32:
      return DType::kInt32;
    case Number::kInt64:
      return DType::kInt64;
    case Number::kUInt8:
      return DType::kUInt8;
    case Number::kUInt16:
      return DType::kUInt16;
    case Number::kUInt32:
      return DType::kUInt32;
    case Number::kUInt64:
      return DType::kUInt64;
    case Number::kFloat16:
      return DType::kFloat16;
    case Number::kBfloat16:
      return DType::kBFloat16;
    case Number::kFloat32:
      return DType::kFloat32;
    case Number::kFloat64:
      return DType::kFloat64;
    case Number::kBytes:
    case Number::kInt128:
    case Number::kLongDouble:
    case Number::kQuad:
      return std::nullopt;
  }
  return std::nullopt;
}

// A row of the standard's table: an operator, the classes of types it allows, and hocket's
// operator.
struct Allowed {
  std::string_view op;
  bool integer, floating, logical, complex, byte, pair;
  std::optional<ReduceOp> own;
};
constexpr Allowed kAllowed[] = {
    {"MPI_MAX", true, true, false, false, false, false, ReduceOp::kMax},
    {"MPI_MIN", true, true, false, false, false, false, ReduceOp::kMin},
    {"MPI_SUM", true, true, false, true, false, false, ReduceOp::kSum},
    {"MPI_PROD", true, true, false, true, false, false, ReduceOp::kProduct},
    {"MPI_LAND", true, false, true, false, false, false, {}},
    {"MPI_LOR", true, false, true, false, false, false, {}},
    {"MPI_LXOR", true, false, true, false, false, false, {}},
    {"MPI_BAND", true, false, false, false, true, false, ReduceOp::kBitAnd},
    {"MPI_BOR", true, false, false, false, true, false, ReduceOp::kBitOr},
    {"MPI_BXOR", true, false, false, false, true, false, ReduceOp::kBitXor},
    {"MPI_MINLOC", false, false, false, false, false, true, {}},
    {"MPI_MAXLOC", false, false, false, false, false, true, {}},
};

const Allowed* allowed(const Op& op, const Datatype& type) {
  const auto* row = std::find_if(std::begin(kAllowed), std::end(kAllowed), [&](const Allowed& one) {
    return one.op == name_of_op(op);
  });
  const auto kind = type.element_kind();
  bool fits = row != std::end(kAllowed) && kind.has_value();
  if (fits) {
    switch (facts_of(*kind).operand) {
      case OperandClass::kNone:
        fits = false;
        break;
      case OperandClass::kByte:
        fits = row->byte;
        break;
      case OperandClass::kInteger:
        fits = row->integer;
        break;
      case OperandClass::kFloat:
        fits = row->floating;
        break;
      case OperandClass::kLogical:
        fits = row->logical;
        break;
      case OperandClass::kComplex:
        fits = row->complex;
        break;
      case OperandClass::kPair:
        fits = row->pair;
        break;
    }
  }
  if (!fits) {
    fail(MPI_ERR_OP,
         std::string(name_of_op(op)) + " has no meaning on " +
             (kind ? std::string(facts_of(*kind).name) : "a type of several kinds"));
  }
  return row;
}

void combine_predefined(const Op& op,
                        const Datatype& type,
                        const std::byte* left,
                        std::byte* right,
                        std::int64_t elements) {
  const KindFacts& kind = facts_of(*type.element_kind());
  const std::int64_t count = elements * type.size() / size_of(*type.element_kind());
  const bool known = combine_elements(name_of_op(op), kind, left, right, count);
  if (!known) {
    fail(MPI_ERR_UNSUPPORTED_OPERATION, "hocket reduces no elements of " + std::string(kind.name));
  }
}

void call_function(
    const Op& op, MPI_Datatype type, const void* in, void* inout, std::int64_t count) {
  if (op.wide != nullptr) {
    MPI_Count length = count;
    op.wide(const_cast<void*>(in), inout, &length, &type);
  } else {
    int length = static_cast<int>(count);
    op.narrow(const_cast<void*>(in), inout, &length, &type);
  }
}

// Memory for unpacked elements. If a type has a negative lower bound, some of its bytes lie before
// the address of an element.
class Unpacked {
 public:
  Unpacked(const Datatype& type, const std::byte* packed, std::int64_t count)
      : bytes_(static_cast<std::size_t>(
            std::max<std::int64_t>(count - 1, 0) * std::abs(type.extent()) + type.true_extent())) {
    lowest_ = type.true_lb() + (type.extent() < 0 ? (count - 1) * type.extent() : 0);
    type.unpack(packed, count, data());
  }
  std::byte* data() noexcept { return at(bytes_.data(), -lowest_); }

 private:
  Bytes bytes_;
  std::int64_t lowest_;
};

}  // namespace

std::optional<OwnReduction> own_reduction(MPI_Op handle, MPI_Datatype datatype) {
  const Op& op = op_of(handle);
  const Datatype& type = type_of(datatype);
  if (op.predefined < 0) return std::nullopt;
  const Allowed* row = allowed(op, type);
  const KindFacts& kind = facts_of(*type.element_kind());
  if (!row->own || kind.is_pair()) return std::nullopt;
  const auto dtype = dtype_of_number(kind.number, kind.numbers);
  if (!dtype || !is_defined(*row->own, *dtype)) return std::nullopt;
  return OwnReduction{*row->own, *dtype};
}

void apply(MPI_Op handle, MPI_Datatype datatype, const void* in, void* inout, std::int64_t count) {
  const Op& op = op_of(handle);
  const Datatype& type = type_of(datatype);
  const std::int64_t bytes = bytes_of(type, count);
  if (bytes != 0) {
    require_buffer(in, !is_dense(type));
    require_buffer(inout, !is_dense(type));
  }
  if (op.predefined < 0) {
    if (count > 0) call_function(op, datatype, in, inout, count);
    return;
  }
  if (name_of_op(op) == "MPI_NO_OP") return;
  Bytes left(static_cast<std::size_t>(bytes)), right(left.size());
  if (name_of_op(op) == "MPI_REPLACE") {
    if (bytes == 0) return;
    type.pack(in, count, left.data());
    return type.unpack(left.data(), count, inout);
  }
  allowed(op, type);
  if (bytes == 0) return;
  type.pack(in, count, left.data());
  type.pack(inout, count, right.data());
  combine_predefined(op, type, left.data(), right.data(), count);
  type.unpack(right.data(), count, inout);
}

void require_defined(MPI_Op handle, const Datatype& type) {
  const Op& op = op_of(handle);
  require(op.predefined >= 0, MPI_ERR_OP, "op is the program's, and must be one of MPI's");
  if (handle != MPI_REPLACE && handle != MPI_NO_OP) allowed(op, type);
}
void combine_packed(
    MPI_Op op, const Datatype& type, const std::byte* left, std::byte* right, std::int64_t count) {
  if (op == MPI_NO_OP) return;
  if (op == MPI_REPLACE) {
    std::memcpy(right, left, static_cast<std::size_t>(count * type.size()));
  } else {
    combine_predefined(op_of(op), type, left, right, count);
  }
}

Called::Called(MPI_Op op, MPI_Datatype type)
    : op_(process().ops.share(op)), handle_(type), type_(type_object(type).type) {
  require(op_ != nullptr, MPI_ERR_OP, "op is no operator");
  if (op_->predefined >= 0) allowed(*op_, *type_);
}

Operator Called::as_operator() noexcept {
  const std::int64_t size = type_->size();
  return {.combine =
              [](void* left, const void* right, std::size_t bytes, void* context) {
                auto& self = *static_cast<Called*>(context);
                self.combine(static_cast<std::byte*>(left),
                             static_cast<const std::byte*>(right),
                             static_cast<std::int64_t>(bytes) / self.type_->size());
              },
          .context = this,
          .dtype = DType::kUInt8,
          .unit = static_cast<std::size_t>(std::max<std::int64_t>(size, 1))};
}

// Hocket wants left = left op right; MPI's functions write to their second argument.
void Called::combine(std::byte* left, const std::byte* right, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count * type_->size());
  const Op& op = *op_;
  if (op.predefined >= 0) {
    Bytes result(right, right + bytes);
    combine_predefined(op, *type_, left, result.data(), count);
    std::memcpy(left, result.data(), bytes);
    return;
  }
  if (is_dense(*type_) && type_->true_lb() == 0) {
    Bytes result(right, right + bytes);
    call_function(op, handle_, left, result.data(), count);
    std::memcpy(left, result.data(), bytes);
    return;
  }
  Unpacked first(*type_, left, count), second(*type_, right, count);
  call_function(op, handle_, first.data(), second.data(), count);
  type_->pack(second.data(), count, left);
}

Op& op_of(MPI_Op handle) {
  Op* found = process().ops.find(handle);
  require(found != nullptr, MPI_ERR_OP, "op is no operator");
  return *found;
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Op_create(OpFunction user_fn, int commute, MPI_Op* op) {
  auto made = std::make_shared<Op>();
  made->narrow = user_fn.narrow;
  made->wide = user_fn.wide;
  made->commutes = commute != 0;
  *op = process().ops.add(std::move(made));
}
void Op_free(MPI_Op* op) {
  require(op_of(*op).predefined < 0, MPI_ERR_OP, "op is predefined");
  process().ops.remove(*op);
  *op = MPI_OP_NULL;
}
void Op_commutative(MPI_Op op, int* commute) {
  const Op& found = op_of(op);
  *commute = found.predefined < 0 ? found.commutes : name_of_op(found) != "MPI_REPLACE";
}

}  // namespace hocket::mpi::call
