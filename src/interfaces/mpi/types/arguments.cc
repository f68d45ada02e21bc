#include "interfaces/mpi/types/arguments.h"

#include <limits>
#include <string>
#include <utility>

namespace hocket::mpi {
namespace {

std::string named(std::string_view name, std::int64_t index) {
  std::string text(name);
  if (index >= 0) text += "[" + std::to_string(index) + "]";
  return text;
}

}  // namespace

std::optional<Refusal> check_type(const DatatypePtr& type, std::string_view name, int index) {
  if (type) return {};
  return Refusal{ErrorClass::kType, named(name, index) + " is no datatype"};
}

std::optional<Refusal> check_count(std::int64_t count, std::string_view name) {
  if (count >= 0) return {};
  return Refusal{ErrorClass::kCount,
                 std::string(name) + " is " + std::to_string(count) + ", but must be 0 or more"};
}

std::optional<Refusal> check_not_negative(std::int64_t value,
                                          std::string_view name,
                                          std::int64_t index) {
  if (value >= 0) return {};
  return Refusal{ErrorClass::kArg,
                 named(name, index) + " is " + std::to_string(value) + ", but must be 0 or more"};
}

std::optional<Refusal> check_not_negative(Numbers values, std::string_view name) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (auto refusal = check_not_negative(values[i], name, static_cast<std::int64_t>(i))) {
      return refusal;
    }
  }
  return {};
}

std::optional<Refusal> check_as_many(std::size_t count, std::size_t other, std::string_view name) {
  if (count == other) return {};
  return Refusal{ErrorClass::kArg,
                 std::string(name) + " has " + std::to_string(other) + " entries, but must have " +
                     std::to_string(count)};
}

EnvelopeWriter& EnvelopeWriter::integers(Numbers values) {
  for (const std::int64_t value : values) {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
      misfit_ = value;
    }
    made_.integers.push_back(static_cast<int>(value));
  }
  return *this;
}

EnvelopeWriter& EnvelopeWriter::numbers(Numbers values) {
  if (form_ == Form::kInt) return integers(values);
  made_.counts.insert(made_.counts.end(), values.begin(), values.end());
  return *this;
}

EnvelopeWriter& EnvelopeWriter::addresses(Numbers values) {
  auto& kept = form_ == Form::kInt ? made_.addresses : made_.counts;
  kept.insert(kept.end(), values.begin(), values.end());
  return *this;
}

EnvelopeWriter& EnvelopeWriter::type(DatatypePtr type) {
  made_.types.push_back(std::move(type));
  return *this;
}

Result<DatatypePtr> EnvelopeWriter::make(const Result<TypeMap>& map) {
  if (!map.ok()) return map.refusal();
  if (misfit_) {
    return Refusal{ErrorClass::kArg,
                   std::to_string(*misfit_) + " does not fit into an int: use the call's _c form"};
  }
  return DatatypePtr(std::make_shared<const Datatype>(map.value(), std::move(made_)));
}

}  // namespace hocket::mpi
