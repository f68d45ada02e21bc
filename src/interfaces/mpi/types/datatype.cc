#include "interfaces/mpi/types/datatype.h"

#include <utility>

#include "interfaces/mpi/types/arguments.h"

namespace hocket::mpi {
namespace {

// Blocks of `old`. Displacements count units of `unit` bytes.
struct Blocks {
  Numbers displacements;
  std::int64_t unit = 1;
};

template <typename BlocklengthAt>
Result<TypeMap> join_blocks(const Blocks& blocks,
                            const TypeMap& old,
                            const BlocklengthAt& blocklength_at) {
  TypeMapJoin join;
  for (std::size_t i = 0; i < blocks.displacements.size(); ++i) {
    const auto offset = checked_multiply(blocks.displacements[i], blocks.unit);
    if (!offset) {
      return Refusal{ErrorClass::kValueTooLarge,
                     "array_of_displacements[" + std::to_string(i) +
                         "] times the extent of "
                         "oldtype does not fit into 64 bits"};
    }
    if (auto refusal = join.add(old, blocklength_at(i), *offset)) return *refusal;
  }
  return join.take();
}

Result<TypeMap> strided(std::int64_t count,
                        std::int64_t blocklength,
                        std::int64_t stride,
                        const TypeMap& old) {
  Result<TypeMap> block = old.repeated(blocklength, old.extent());
  if (!block.ok()) return block;
  return block.value().repeated(count, stride);
}

std::optional<Refusal> check_strided(std::int64_t count,
                                     std::int64_t blocklength,
                                     const DatatypePtr& old) {
  if (auto refusal = check_count(count, "count")) return refusal;
  if (auto refusal = check_not_negative(blocklength, "blocklength")) return refusal;
  return check_type(old, "oldtype");
}

std::optional<Refusal> check_indexed(Numbers blocklengths,
                                     Numbers displacements,
                                     const DatatypePtr& old) {
  if (auto refusal =
          check_as_many(blocklengths.size(), displacements.size(), "array_of_displacements")) {
    return refusal;
  }
  if (auto refusal = check_not_negative(blocklengths, "array_of_blocklengths")) return refusal;
  return check_type(old, "oldtype");
}

std::int64_t length_of(Numbers values) { return static_cast<std::int64_t>(values.size()); }

}  // namespace

Datatype::Datatype(TypeMap map, Envelope envelope)
    : map_(std::move(map)), envelope_(std::move(envelope)), lb_(map_.lb()), extent_(map_.extent()) {
  const Layout::Shape shape = map_.bytes().shape;
  is_contiguous_ =
      shape == Layout::Shape::kEmpty || (shape == Layout::Shape::kRun && extent_ == map_.size());
}

bool Datatype::is_predefined() const noexcept {
  switch (envelope_.combiner) {
    case Combiner::kNamed:
    case Combiner::kF90Real:
    case Combiner::kF90Complex:
    case Combiner::kF90Integer:
      return true;
    default:
      return false;
  }
}

Result<std::int64_t> Datatype::packed_size(std::int64_t count) const {
  if (auto refusal = check_count(count, "count")) return *refusal;
  const auto bytes = checked_multiply(count, size());
  if (bytes) return *bytes;
  return Refusal{ErrorClass::kValueTooLarge,
                 "count is " + std::to_string(count) + ", so many elements of " +
                     std::to_string(size()) + " bytes have more than 2**63 bytes"};
}

DatatypePtr predefined(Kind kind) {
  return std::make_shared<const Datatype>(TypeMap::of(kind), Envelope{});
}

Result<DatatypePtr> dup(const DatatypePtr& old) {
  if (auto refusal = check_type(old, "oldtype")) return *refusal;
  return EnvelopeWriter(Combiner::kDup, Form::kInt).type(old).make(old->map());
}

Result<DatatypePtr> contiguous(std::int64_t count, const DatatypePtr& old, Form form) {
  if (auto refusal = check_strided(count, 0, old)) return *refusal;
  return EnvelopeWriter(Combiner::kContiguous, form)
      .number(count)
      .type(old)
      .make(old->map().repeated(count, old->extent()));
}

Result<DatatypePtr> vector(std::int64_t count,
                           std::int64_t blocklength,
                           std::int64_t stride,
                           const DatatypePtr& old,
                           Form form) {
  if (auto refusal = check_strided(count, blocklength, old)) return *refusal;
  const auto bytes = checked_multiply(stride, old->extent());
  if (!bytes) {
    return Refusal{ErrorClass::kValueTooLarge,
                   "stride times the extent of oldtype does not fit into 64 bits"};
  }
  return EnvelopeWriter(Combiner::kVector, form)
      .number(count)
      .number(blocklength)
      .number(stride)
      .type(old)
      .make(strided(count, blocklength, *bytes, old->map()));
}

Result<DatatypePtr> hvector(std::int64_t count,
                            std::int64_t blocklength,
                            std::int64_t stride_in_bytes,
                            const DatatypePtr& old,
                            Form form) {
  if (auto refusal = check_strided(count, blocklength, old)) return *refusal;
  return EnvelopeWriter(Combiner::kHvector, form)
      .number(count)
      .number(blocklength)
      .address(stride_in_bytes)
      .type(old)
      .make(strided(count, blocklength, stride_in_bytes, old->map()));
}

Result<DatatypePtr> indexed(Numbers blocklengths,
                            Numbers displacements,
                            const DatatypePtr& old,
                            Form form) {
  if (auto refusal = check_indexed(blocklengths, displacements, old)) return *refusal;
  return EnvelopeWriter(Combiner::kIndexed, form)
      .number(length_of(blocklengths))
      .numbers(blocklengths)
      .numbers(displacements)
      .type(old)
      .make(join_blocks({displacements, old->extent()}, old->map(), [&](std::size_t i) {
        return blocklengths[i];
      }));
}

Result<DatatypePtr> hindexed(Numbers blocklengths,
                             Numbers displacements_in_bytes,
                             const DatatypePtr& old,
                             Form form) {
  if (auto refusal = check_indexed(blocklengths, displacements_in_bytes, old)) return *refusal;
  return EnvelopeWriter(Combiner::kHindexed, form)
      .number(length_of(blocklengths))
      .numbers(blocklengths)
      .addresses(displacements_in_bytes)
      .type(old)
      .make(join_blocks(
          {displacements_in_bytes}, old->map(), [&](std::size_t i) { return blocklengths[i]; }));
}

Result<DatatypePtr> indexed_block(std::int64_t blocklength,
                                  Numbers displacements,
                                  const DatatypePtr& old,
                                  Form form) {
  if (auto refusal = check_strided(0, blocklength, old)) return *refusal;
  return EnvelopeWriter(Combiner::kIndexedBlock, form)
      .number(length_of(displacements))
      .number(blocklength)
      .numbers(displacements)
      .type(old)
      .make(join_blocks(
          {displacements, old->extent()}, old->map(), [&](std::size_t) { return blocklength; }));
}

Result<DatatypePtr> hindexed_block(std::int64_t blocklength,
                                   Numbers displacements_in_bytes,
                                   const DatatypePtr& old,
                                   Form form) {
  if (auto refusal = check_strided(0, blocklength, old)) return *refusal;
  return EnvelopeWriter(Combiner::kHindexedBlock, form)
      .number(length_of(displacements_in_bytes))
      .number(blocklength)
      .addresses(displacements_in_bytes)
      .type(old)
      .make(join_blocks(
          {displacements_in_bytes}, old->map(), [&](std::size_t) { return blocklength; }));
}

Result<DatatypePtr> structure(Numbers blocklengths,
                              Numbers displacements_in_bytes,
                              std::span<const DatatypePtr> types,
                              Form form) {
  const std::size_t count = blocklengths.size();
  if (auto refusal =
          check_as_many(count, displacements_in_bytes.size(), "array_of_displacements")) {
    return *refusal;
  }
  if (auto refusal = check_as_many(count, types.size(), "array_of_types")) return *refusal;
  if (auto refusal = check_not_negative(blocklengths, "array_of_blocklengths")) return *refusal;
  TypeMapJoin join;
  EnvelopeWriter envelope(Combiner::kStruct, form);
  envelope.number(length_of(blocklengths)).numbers(blocklengths).addresses(displacements_in_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (auto refusal = check_type(types[i], "array_of_types", static_cast<int>(i))) return *refusal;
    const TypeMap& map = types[i]->map();
    if (auto refusal = join.add(map, blocklengths[i], displacements_in_bytes[i])) return *refusal;
    envelope.type(types[i]);
  }
  return envelope.make(join.take());
}

Result<DatatypePtr> resized(const DatatypePtr& old,
                            std::int64_t lb,
                            std::int64_t extent,
                            Form form) {
  if (auto refusal = check_type(old, "oldtype")) return *refusal;
  return EnvelopeWriter(Combiner::kResized, form)
      .address(lb)
      .address(extent)
      .type(old)
      .make(old->map().bounded(lb, extent));
}

}  // namespace hocket::mpi
