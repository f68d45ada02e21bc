// What hosts tell each other of their ranks and of groups that have members on several, and how it
// travels. All of it is facts that stay true, so that it may come twice. What comes in is
// untrusted.
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

// Values, all of them.
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
// What one member has announced of late.
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
// Wants to know what the other host's members of the group have announced.
struct Question {
  std::uint64_t group = 0;
};
// The way of messages between the two has broken, as the first one's host has seen.
struct CutFact {
  int own = -1;    // world rank, of the host that says so
  int other = -1;  // world rank, of the host that is told
};
// A member calls for the next epoch, or has closed the group; see succession.h.
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
// Of the agreement who goes on; see agreement.h.
struct VoteFact {
  enum class Kind : std::uint8_t {
    kPrepare,
    kPromise,
    kAccept,
    kAccepted,
    kRefused,
    kDecided,
    kThrough  // has nobody in the group any more, and no use for what was decided
  };
  std::uint64_t group = 0;
  Kind kind = Kind::kPrepare;
  std::uint64_t ballot = 0;
  std::uint64_t other = 0;         // a promise's: of what was accepted; a refusal's: what stands
  std::vector<bool> members = {};  // proposed, accepted or decided
  std::vector<bool> lost = {};     // a promise's: who cannot be heard from there
};
struct Beat {};  // nothing new: this host is there
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

// The group that it says something of which its members' blocks hold; absent where it says no such
// thing.
std::optional<std::uint64_t> told_group(const Fact& fact) noexcept;
// A whole frame, its header included.
Bytes encode(const Fact& fact);
// From a frame's payload; absent where it is nothing that `encode` makes.
std::optional<Fact> parse(std::span<const std::byte> payload);

}  // namespace hocket::control
