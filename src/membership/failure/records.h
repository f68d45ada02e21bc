// Compares the records that the ranks of a group have announced under one number.
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

// The event that ends a call: none so far; a refusal, which ends this call alone; or a failure,
// which ends the group. A value.
using Verdict = std::variant<std::monostate, Refusal, control::Failure>;

// The first rank, other than this one, that has refused call `sequence`.
std::optional<Refusal> find_refusal(const control::GroupControl& group, std::uint64_t sequence);

// The first rank that has announced a different call under this number. The check within the data
// misses some differences, as ranks in different calls may wait for data in different places.
std::optional<control::Failure> find_difference(const control::GroupControl& group,
                                                std::uint64_t sequence);

// The failure if `peer` has made a different call.
control::Failure difference(const control::GroupControl& group, int peer, std::uint64_t sequence);

// The failure if a rank, perhaps this one, has refused a call that another has put on its GPU, or
// is about to. If no record shows the refusing rank, it is `peer`.
control::Failure refused_on_gpu(const control::GroupControl& group,
                                int peer,
                                std::uint64_t sequence);

}  // namespace hocket::failure
