// What the ranks of a group have announced under one number, compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "membership/control/group.h"

namespace hocket::failure {

// A rank has refused a call, which ends that call and nothing else. A value.
struct Refusal {
  int rank = -1;
  std::uint64_t sequence = 0;
  engine::Kind kind = engine::Kind::kNone;  // as it announced it
  std::string reason;
};

// What ends a call: nothing so far; a refusal, which ends it alone; a failure, which ends the group.
// A value.
using Verdict = std::variant<std::monostate, Refusal, control::Failure>;

// The first rank that has refused call `sequence`, this one apart.
std::optional<Refusal> find_refusal(const control::GroupControl& group, std::uint64_t sequence);

// The first rank that has announced another call under this number. Catches what the data's own
// check does not, as ranks in different calls may wait for each other's data in different places.
std::optional<control::Failure> find_difference(const control::GroupControl& group,
                                                std::uint64_t sequence);

// That `peer` has called something else.
control::Failure difference(const control::GroupControl& group, int peer, std::uint64_t sequence);

// That a rank, this one too, has refused a call that another has put on its GPU, or is about to.
// Who refused it is `peer` where nobody is known to have.
control::Failure refused_on_gpu(const control::GroupControl& group,
                                int peer,
                                std::uint64_t sequence);

}  // namespace hocket::failure
