// The calls of one rank in one group, in their order. Each call gets a number and a fingerprint,
// and is announced. The announcement is compared with those of other ranks.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/call.h"
#include "engine/engine.h"
#include "foundation/base/hash.h"
#include "membership/control/group.h"
#include "membership/failure/records.h"

namespace hocket::call {

// A resource, used in the communicator's turn. The group's memory must outlive it.
class Ledger {
 public:
  explicit Ledger(control::GroupControl& group)
      : group_(group), compared_(static_cast<std::size_t>(group.size())) {}

  // A hash of the signature. The fingerprint mixes the hashes of all calls so far.
  static std::uint64_t hash_of(const engine::Signature& s) noexcept {
    std::uint64_t hash;
    static_assert(offsetof(engine::Signature, count) == sizeof(hash));
    std::memcpy(&hash, &s, sizeof(hash));
    hash = base::mix(hash, s.count);
    return base::mix(hash, s.digest ^ (s.symmetric << 1));
  }

  // The number of the last call.
  std::uint64_t last() const noexcept { return newest_; }
  // Takes the next call's number.
  std::uint64_t next() noexcept { return ++newest_; }
  // Gives the last number back, because its call will not begin.
  void take_back_last() noexcept { --newest_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

  // Sets the fingerprint of the call, which already has its number, and announces it. All earlier
  // calls have ended or been refused. `hash` is the hash of `shown`, which the other ranks read.
  void announce(engine::Call& call, std::uint64_t hash, const engine::Signature& shown) noexcept {
    fingerprint_ = base::mix(fingerprint_, hash);
    call.fingerprint = fingerprint_;
    group_.record(call.sequence, call.fingerprint, shown);
  }
  // Announces that the call has ended.
  void finish(std::uint64_t sequence, bool well) noexcept { group_.finish(sequence, well); }

  // --- Refusals -------------------------------------------------------------------------------

  // Announces that this rank does not begin the call. `GroupControl::may_refuse` says when it may.
  void refuse(std::uint64_t sequence, engine::Kind kind, std::string_view reason) noexcept {
    begin_anew_after(sequence);
    group_.refuse(sequence, kind, reason);
  }
  // All calls before a refused call are settled. So each rank that sees the refusal restarts its
  // fingerprint.
  void begin_anew_after(std::uint64_t refused) noexcept {
    fingerprint_ = fingerprint_after(refused);
  }

  // --- Comparing ------------------------------------------------------------------------------

  // Called if a peer's fingerprint differs. Finds out whether both ranks made the same calls up to
  // `sequence`. Returns no verdict if they did, because a refusal explains the difference. See
  // engine::Consistency.
  failure::Verdict confirm(int peer, std::uint64_t sequence);
  // For engines that do not compare fingerprints: finds out whether another rank made a different
  // call under the number of a call that has ended here.
  failure::Verdict compare_ended(std::uint64_t sequence);

 private:
  static std::uint64_t fingerprint_after(std::uint64_t refused) noexcept {
    return base::mix(refused, hash_of({}));
  }

  control::GroupControl& group_;
  std::uint64_t newest_ = 0;
  std::uint64_t fingerprint_ = 0;  // fingerprint of all calls so far
  // by member: number of the last compared call; see compare_ended
  std::vector<std::uint64_t> compared_;
};

}  // namespace hocket::call
