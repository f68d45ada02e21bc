// Compares the calls that the ranks of a group have announced with the same number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "membership/control/group.h"

namespace hocket::failure {

// The refusal of a call by one rank. It ends this call, but not the group. A value.
struct Refusal {
  int rank = -1;
  std::uint64_t sequence = 0;
  engine::Kind kind = engine::Kind::kNone;  // as the rank has announced it
  std::string reason;
};

// The result of a check on a wait: nothing so far, a refusal that ends the call alone, or a failure
// that ends the group. A value.
using Verdict = std::variant<std::monostate, Refusal, control::Failure>;

// Returns the refusal of call `sequence` by the first other rank that has refused it. Absent: none
// has.
std::optional<Refusal> find_refusal(const control::GroupControl& group, std::uint64_t sequence);

// Returns the failure for the first rank that has announced a different call with this number.
// Absent: there is none. The fingerprints that engines send with the data do not show every
// difference, because different calls may wait for data in different places.
std::optional<control::Failure> find_difference(const control::GroupControl& group,
                                                std::uint64_t sequence);

// Makes the failure for a `peer` that has made a different call.
control::Failure difference(const control::GroupControl& group, int peer, std::uint64_t sequence);

// Makes the failure for a call that one rank has refused, perhaps this one, while another has
// enqueued it on its GPU or is about to. If no record shows the rank that refused it, the failure
// names `peer`.
control::Failure refused_on_gpu(const control::GroupControl& group,
                                int peer,
                                std::uint64_t sequence);

}  // namespace hocket::failure
