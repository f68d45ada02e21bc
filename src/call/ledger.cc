#include "call/ledger.h"

namespace hocket::call {

using control::Failure;

std::optional<Failure> Ledger::compare_ended(std::uint64_t sequence) {
  for (; compared_ < sequence; ++compared_) {
    for (int i = 0; i < group_.size(); ++i) {
      if (group_.last_sequence(i) <= compared_) return std::nullopt;
    }
    if (auto different = failure::find_difference(group_, compared_ + 1)) return different;
  }
  return std::nullopt;
}

std::variant<std::monostate, failure::Refusal, Failure> Ledger::confirm(int peer,
                                                                        std::uint64_t sequence) {
  const std::uint64_t first = sequence > control::kRecords ? sequence - control::kRecords + 1 : 1;
  std::optional<std::uint64_t> anew;
  for (std::uint64_t at = first; at <= sequence; ++at) {
    const auto own = group_.find(group_.rank(), at);
    const auto theirs = group_.find(peer, at);
    if (group_.refused(at)) {
      // A rank that refused this call goes on to later ones, whose data are not to be taken for
      // its.
      if (at == sequence) {
        if (auto refusal = failure::find_refusal(group_, at)) {
          begin_anew_after(at);
          return std::move(*refusal);
        }
        return failure::difference(group_, peer, at);
      }
      anew = fingerprint_after(at);
    } else if (own && theirs && !(own->signature == theirs->signature)) {
      return failure::difference(group_, peer, at);
    } else if (own && anew) {
      anew = base::mix(*anew, hash_of(own->signature));
    }
  }
  // This rank may have given its part before it could hear of a refusal: it begins anew now.
  if (anew) fingerprint_ = *anew;
  // A refusal may lie further back than records do.
  if (!group_.any_refusal()) return failure::difference(group_, peer, sequence);
  return {};
}

}  // namespace hocket::call
