#include "calls/call/ledger.h"

#include <algorithm>
#include <chrono>

namespace hocket::call {

using control::Failure;
using failure::Verdict;

namespace {

// Shortest interval between requests of a rank that does not wait, because the answers are not
// urgent.
constexpr auto kAskInPassing = std::chrono::milliseconds(100);

}  // namespace

// A fingerprint covers all calls so far. So it is enough to compare the newest call that both ranks
// have announced.
// Other hosts send their announcements only on request, and otherwise only a waiting rank requests
// them. So this function requests them if some rank's newest announcement is older than `sequence`.
Verdict Ledger::compare_ended(std::uint64_t sequence) {
  bool is_ahead = false;
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.rank()) continue;
    const std::uint64_t last = group_.last_sequence(i);
    is_ahead = is_ahead || last < sequence;
    const std::uint64_t common = std::min(last, sequence);
    auto& compared = compared_[static_cast<std::size_t>(i)];
    if (common <= compared) continue;
    compared = common;
    const auto own = group_.find(group_.rank(), common);
    const auto theirs = group_.find(i, common);
    if (!own || !theirs || own->fingerprint == theirs->fingerprint) continue;
    // The fingerprints of a refused call may differ: a rank that had ended the call before restarts
    // its fingerprint with the next call.
    if (group_.refused(common)) continue;
    auto verdict = confirm(i, common);
    if (!std::holds_alternative<std::monostate>(verdict)) return verdict;
  }
  if (is_ahead) group_.ask(kAskInPassing);
  return {};
}

Verdict Ledger::confirm(int peer, std::uint64_t sequence) {
  const std::uint64_t first = sequence > control::kRecords ? sequence - control::kRecords + 1 : 1;
  std::optional<std::uint64_t> anew;
  for (std::uint64_t at = first; at <= sequence; ++at) {
    const auto own = group_.find(group_.rank(), at);
    const auto theirs = group_.find(peer, at);
    if (group_.refused(at)) {
      // A rank that refused this call has gone on to later calls. The data of later calls must not
      // be taken for this call's data.
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
  // The refusal may be older than the records that are kept.
  if (!anew && !group_.any_refusal()) {
    Failure differed = failure::difference(group_, peer, sequence);
    if (differed.signature == differed.other) differed.cause = control::Cause::kDifferedBefore;
    return differed;
  }
  if (!anew) return {};
  // This rank may have sent its part before it heard of the refusal. Then its fingerprint restarts
  // here, and covers the calls that it has announced since.
  for (std::uint64_t at = sequence + 1; at <= group_.last_sequence(group_.rank()); ++at) {
    const auto own = group_.find(group_.rank(), at);
    if (own) anew = base::mix(*anew, hash_of(own->signature));
  }
  fingerprint_ = *anew;
  return {};
}

}  // namespace hocket::call
