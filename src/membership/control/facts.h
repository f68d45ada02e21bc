// Facts that hosts exchange about their ranks, and about groups with members on several hosts; and
// their encoding. A fact stays true, so it may arrive twice or late. Received bytes are not
// trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hocket/store.h"
#include "membership/control/group.h"
#include "membership/control/host/remote_hosts.h"

namespace hocket::control {

inline constexpr std::size_t kMaxFactFrame = 64 * 1024;

// The states of ranks on the sending host. All structures in this file are values.
struct RanksFact {
  std::vector<RankFact> ranks;
};
// The calls that one member has announced most recently.
struct MemberFact {
  std::uint64_t group = 0;
  int member = 0;
  std::uint64_t last = 0;      // number of the last call that it has announced
  std::uint64_t finished = 0;  // its last finished call, as finished_mark
  std::vector<Record> records;
};
struct RefusalFact {
  std::uint64_t group = 0;
  int member = 0;
  std::uint64_t sequence = 0;
  engine::Kind kind = engine::Kind::kNone;
  std::string text;
};
struct FailureFact {
  std::uint64_t group = 0;
  Failure failure;
};
// Asks the receiving host for the announcements of its members of the group.
struct Question {
  std::uint64_t group = 0;
};
// The sending host's rank `own` can no longer exchange messages with `other`.
struct CutFact {
  int own = -1;    // world rank on the sending host
  int other = -1;  // world rank on the receiving host
};
// A member has called `rebuild`, or has closed the group; see succession.h.
struct ComeFact {
  std::uint64_t group = 0;
  int member = 0;
  std::uint32_t how = 0;
  std::uint64_t turn = 0;
};
// A member has refused a call of `rebuild`.
struct RebuildRefusalFact {
  std::uint64_t group = 0;
  int member = 0;
  RebuildRefusal refusal;
};
// A message of the agreement on the members that go on; see agreement.h.
struct VoteFact {
  enum class Kind : std::uint8_t {
    kPrepare,
    kPromise,
    kAccept,
    kAccepted,
    kRefused,
    kDecided,
    kThrough  // the host has left the group, and does not need the outcome
  };
  std::uint64_t group = 0;
  Kind kind = Kind::kPrepare;
  std::uint64_t ballot = 0;
  // In a promise: the ballot of the accepted vote. In a refusal: the ballot that was promised
  // before.
  std::uint64_t other = 0;
  std::vector<bool> members = {};  // proposed, accepted or decided
  std::vector<bool> lost = {};     // in a promise: members that the sender cannot hear
};
struct Beat {};  // no news, but the host is alive
using Fact = std::variant<Beat,
                          Question,
                          RanksFact,
                          MemberFact,
                          RefusalFact,
                          FailureFact,
                          CutFact,
                          ComeFact,
                          VoteFact,
                          RebuildRefusalFact>;

// Returns the group that a fact is about, if a receiver stores the fact in the group's block.
// Absent for all other facts.
std::optional<std::uint64_t> told_group(const Fact& fact) noexcept;
// Encodes a fact as a complete frame, with its header.
Bytes encode(const Fact& fact);
// Decodes the payload of a frame. Absent if it is not valid.
std::optional<Fact> parse(std::span<const std::byte> payload);

}  // namespace hocket::control
