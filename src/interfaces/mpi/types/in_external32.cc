// Datatypes of files that are in the data representation "external32".
#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {
namespace {

// Reads an envelope in the order in which it was written. A value; refers to the envelope.
class EnvelopeReader {
 public:
  explicit EnvelopeReader(const Envelope& of)
      : of_(of), form_(of.counts.empty() ? Form::kInt : Form::kCount) {}

  Form form() const noexcept { return form_; }
  std::int64_t integer() { return of_.integers[next_integer_++]; }
  std::int64_t number() { return form_ == Form::kInt ? integer() : of_.counts[next_count_++]; }
  std::int64_t address() {
    return form_ == Form::kInt ? of_.addresses[next_address_++] : of_.counts[next_count_++];
  }
  std::vector<std::int64_t> integers(std::int64_t count) {
    return list(count, &EnvelopeReader::integer);
  }
  std::vector<std::int64_t> numbers(std::int64_t count) {
    return list(count, &EnvelopeReader::number);
  }
  std::vector<std::int64_t> addresses(std::int64_t count) {
    return list(count, &EnvelopeReader::address);
  }

 private:
  std::vector<std::int64_t> list(std::int64_t count, std::int64_t (EnvelopeReader::*next)()) {
    std::vector<std::int64_t> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back((this->*next)());
    return made;
  }

  const Envelope& of_;
  Form form_;
  std::size_t next_integer_ = 0, next_address_ = 0, next_count_ = 0;
};

std::int64_t external_bytes(Kind kind) {
  const KindFacts& facts = facts_of(kind);
  if (facts.is_pair()) return external_bytes(facts.first) + external_bytes(facts.second);
  return std::int64_t{facts.numbers} * facts.external_bytes;
}

Result<DatatypePtr> of_blocks(Combiner combiner, EnvelopeReader& from, const DatatypePtr& old) {
  const std::int64_t count = from.number();
  switch (combiner) {
    case Combiner::kIndexed: {
      const auto lengths = from.numbers(count);
      return indexed(lengths, from.numbers(count), old, from.form());
    }
    case Combiner::kHindexed: {
      const auto lengths = from.numbers(count);
      return hindexed(lengths, from.addresses(count), old, from.form());
    }
    case Combiner::kIndexedBlock: {
      const std::int64_t length = from.number();
      return indexed_block(length, from.numbers(count), old, from.form());
    }
    default: {
      const std::int64_t length = from.number();
      return hindexed_block(length, from.addresses(count), old, from.form());
    }
  }
}

Result<DatatypePtr> of_strides(Combiner combiner, EnvelopeReader& from, const DatatypePtr& old) {
  const std::int64_t count = from.number();
  if (combiner == Combiner::kContiguous) return contiguous(count, old, from.form());
  const std::int64_t length = from.number();
  if (combiner == Combiner::kVector) return vector(count, length, from.number(), old, from.form());
  return hvector(count, length, from.address(), old, from.form());
}

Result<DatatypePtr> of_struct(EnvelopeReader& from, const std::vector<DatatypePtr>& types) {
  const std::int64_t count = from.number();
  const auto lengths = from.numbers(count);
  return structure(lengths, from.addresses(count), types, from.form());
}

Result<DatatypePtr> of_subarray(EnvelopeReader& from, const DatatypePtr& old) {
  const std::int64_t dimensions = from.integer();
  const auto sizes = from.numbers(dimensions), subsizes = from.numbers(dimensions);
  const auto starts = from.numbers(dimensions);
  return subarray({.sizes = sizes,
                   .subsizes = subsizes,
                   .starts = starts,
                   .order = static_cast<Order>(from.integer())},
                  old,
                  from.form());
}

Result<DatatypePtr> of_darray(EnvelopeReader& from, const DatatypePtr& old) {
  Darray made;
  made.size = from.integer();
  made.rank = from.integer();
  const std::int64_t dimensions = from.integer();
  const auto gsizes = from.numbers(dimensions);
  std::vector<Distribution> distribs;
  for (const std::int64_t each : from.integers(dimensions)) {
    distribs.push_back(static_cast<Distribution>(each));
  }
  const auto dargs = from.integers(dimensions), psizes = from.integers(dimensions);
  made.gsizes = gsizes;
  made.distribs = distribs;
  made.dargs = dargs;
  made.psizes = psizes;
  made.order = static_cast<Order>(from.integer());
  return darray(made, old, from.form());
}

}  // namespace

Result<DatatypePtr> in_external32(const DatatypePtr& type) {
  if (type->is_predefined()) {
    return contiguous(external_bytes(*type->element_kind()), predefined(Kind::kByte));
  }
  const Envelope& envelope = type->envelope();
  std::vector<DatatypePtr> parts;
  for (const DatatypePtr& part : envelope.types) {
    Result<DatatypePtr> made = in_external32(part);
    if (!made.ok()) return made;
    parts.push_back(made.take());
  }
  EnvelopeReader from(envelope);
  switch (envelope.combiner) {
    case Combiner::kDup:
      return parts[0];
    case Combiner::kContiguous:
    case Combiner::kVector:
    case Combiner::kHvector:
      return of_strides(envelope.combiner, from, parts[0]);
    case Combiner::kIndexed:
    case Combiner::kHindexed:
    case Combiner::kIndexedBlock:
    case Combiner::kHindexedBlock:
      return of_blocks(envelope.combiner, from, parts[0]);
    case Combiner::kStruct:
      return of_struct(from, parts);
    case Combiner::kSubarray:
      return of_subarray(from, parts[0]);
    case Combiner::kDarray:
      return of_darray(from, parts[0]);
    case Combiner::kResized: {
      const std::int64_t lb = from.address();
      return resized(parts[0], lb, from.address(), from.form());
    }
    case Combiner::kNamed:
    case Combiner::kF90Real:
    case Combiner::kF90Complex:
    case Combiner::kF90Integer:
    case Combiner::kValueIndex:
      break;
  }
  return type;
}

}  // namespace hocket::mpi
