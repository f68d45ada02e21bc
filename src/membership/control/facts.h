// Facts that hosts exchange about their ranks and about groups with members on several hosts, and
// their encoding. All facts stay true, so they may arrive twice. Input is untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hocket/store.h"
#include "membership/control/group.h"
#include "membership/control/host.h"

namespace hocket::control {

inline constexpr std::size_t kMaxFactFrame = 64 * 1024;

// All of these are values.
struct RankFact {
  int world_rank = -1;
  RankState state = RankState::kAbsent;
  int pid = 0;
  std::optional<int> end = {};  // as waitpid says
  std::optional<EndReason> reason = {};
};
struct RanksFact {
  std::vector<RankFact> ranks;
};
// The recent announcements of one member.
struct MemberFact {
  std::uint64_t group = 0;
  int member = 0;
  std::uint64_t last = 0;
  std::uint64_t finished = 0;  // as finished_mark
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
// Asks for the announcements of the other host's members of the group.
struct Question {
  std::uint64_t group = 0;
};
// The connection for messages between two ranks has broken, as the first one's host has found.
struct CutFact {
  int own = -1;    // world rank, of the host that says so
  int other = -1;  // world rank, on the host that gets the fact
};
// A member asks for the next epoch, or has closed the group; see succession.h.
struct ComeFact {
  std::uint64_t group = 0;
  int member = 0;
  std::uint32_t how = 0;
  std::uint64_t turn = 0;
};
// A member has refused a call of rebuild.
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
    kThrough  // has no member left in the group, and no use for the outcome
  };
  std::uint64_t group = 0;
  Kind kind = Kind::kPrepare;
  std::uint64_t ballot = 0;
  // of a promise: ballot of the accepted vote; of a refusal: the ballot that stands
  std::uint64_t other = 0;
  std::vector<bool> members = {};  // proposed, accepted or decided
  std::vector<bool> lost = {};     // of a promise: members that cannot be heard from there
};
struct Beat {};  // no news: this host is alive
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

// The group whose members' blocks hold the fact; absent for other facts.
std::optional<std::uint64_t> told_group(const Fact& fact) noexcept;
// A whole frame, including its header.
Bytes encode(const Fact& fact);
// Decodes a frame's payload; absent if `encode` cannot have made it.
std::optional<Fact> parse(std::span<const std::byte> payload);

}  // namespace hocket::control
