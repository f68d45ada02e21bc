// Checks of the arguments that make datatypes, and their form in an envelope.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "interfaces/mpi/types/datatype.h"

namespace hocket::mpi {

// Each returns the refusal, if there is one. `name` is the standard's name of the argument. An
// `index` that is not negative is the position in an array argument.
std::optional<Refusal> check_type(const DatatypePtr& type, std::string_view name, int index = -1);
std::optional<Refusal> check_count(std::int64_t count, std::string_view name);
std::optional<Refusal> check_not_negative(std::int64_t value,
                                          std::string_view name,
                                          std::int64_t index = -1);
std::optional<Refusal> check_not_negative(Numbers values, std::string_view name);
std::optional<Refusal> check_as_many(std::size_t count, std::size_t other, std::string_view name);

// Writes an envelope. In the int form, int arguments become integers, and addresses stay addresses.
// In the `_c` form, both become counts. A value.
class EnvelopeWriter {
 public:
  EnvelopeWriter(Combiner combiner, Form form) : form_(form) { made_.combiner = combiner; }

  EnvelopeWriter& numbers(Numbers values);
  EnvelopeWriter& number(std::int64_t value) { return numbers({&value, 1}); }
  EnvelopeWriter& addresses(Numbers values);
  EnvelopeWriter& address(std::int64_t value) { return addresses({&value, 1}); }
  EnvelopeWriter& integers(Numbers values);  // int in both forms
  EnvelopeWriter& integer(std::int64_t value) { return integers({&value, 1}); }
  EnvelopeWriter& type(DatatypePtr type);

  // Makes the type of this map. Returns a refusal if an integer does not fit into an int.
  Result<DatatypePtr> make(const Result<TypeMap>& map);

 private:
  Envelope made_ = {};
  Form form_;
  std::optional<std::int64_t> misfit_ = {};
};

}  // namespace hocket::mpi
