#include "membership/failure/records.h"

#include <utility>

namespace hocket::failure {

using control::Failure;

std::optional<Refusal> find_refusal(const control::GroupControl& group, std::uint64_t sequence) {
  for (int i = 0; i < group.size(); ++i) {
    if (i == group.rank()) continue;
    auto refusal = group.refusal(i, sequence);
    if (!refusal) continue;
    return Refusal{.rank = i,
                   .sequence = sequence,
                   .kind = refusal->kind,
                   .reason = std::move(refusal->reason)};
  }
  return std::nullopt;
}

std::optional<Failure> find_difference(const control::GroupControl& group, std::uint64_t sequence) {
  const auto own = group.find(group.rank(), sequence);
  if (!own || own->refused) return std::nullopt;
  for (int i = 0; i < group.size(); ++i) {
    if (i == group.rank()) continue;
    const auto theirs = group.find(i, sequence);
    if (theirs && !theirs->refused && !(theirs->signature == own->signature)) {
      return difference(group, i, sequence);
    }
  }
  return std::nullopt;
}

Failure refused_on_gpu(const control::GroupControl& group, int peer, std::uint64_t sequence) {
  Failure failure = difference(group, peer, sequence);
  failure.cause = control::Cause::kRefused;
  for (int i = 0; i < group.size(); ++i) {
    auto refusal = group.refusal(i, sequence);
    if (!refusal) continue;
    failure.culprit = i;
    failure.text = std::move(refusal->reason);
    break;
  }
  return failure;
}

Failure difference(const control::GroupControl& group, int peer, std::uint64_t sequence) {
  const auto own = group.find(group.rank(), sequence);
  const auto theirs = group.find(peer, sequence);
  return {.cause = control::Cause::kDifferent,
          .reporter = group.rank(),
          .culprit = peer,
          .sequence = sequence,
          .signature = own ? own->signature : engine::Signature{},
          .other = theirs ? theirs->signature : engine::Signature{}};
}

}  // namespace hocket::failure
