// The agreed end of a group: its members agree which of them go on, as the group of the next epoch.
//
// Within a host. Each member that calls `rebuild` sets its own word in the group's block (`come`),
// which it never clears. If a call of `rebuild` is refused, all come again, in the next turn
// (rebuild_turns.h). Only members that have come in the latest turn count as there.
//
// When every member has come or is known to be gone, one of them makes the next group: the first
// that is there, or another one after a moment. It writes the complete group of those that are
// there into a new block of its own. Then it puts the block's offset into one word of the old
// group, by compare-and-swap (`appoint`). The first swap wins, for all, whatever rank ends then or
// before: there is no state between undecided and decided. A member that is left out learns it from
// the same word, however late it comes.
//
//   old block: successor = 0  --appoint-->  successor = offset of the new block
//
// Between hosts. The same facts are copied to the other hosts' blocks over the lanes. The hosts
// agree on the members before each appoints its block: see agreement.h. A host's promises and
// accepted votes are in the block, too, so that they outlive the rank that speaks for the host.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "membership/control/group.h"

namespace hocket::control {

// One flag for each member: true if it belongs to the set.
using Members = std::vector<bool>;

// The bits of a member's word.
enum Come : std::uint32_t {
  kCame = 1,
  kImpatient = 2,  // does not wait any longer for missing members
  kAlone = 4,      // goes on even if ranks out of reach may do the same
  kInformed = 8,   // the member's host knows the outcome; the host sets this, not the member
  kClosed = 16,    // has closed the group, without having come before
};

struct VoteFact;

// A value: what a host has accepted last; see agreement.h.
struct Vote {
  std::uint64_t ballot = 0;
  Members members = {};
};

// A view of a group's block; copies nothing and owns nothing. Functions are safe from any thread,
// except those that need the guard.
class Succession {
 public:
  explicit Succession(GroupControl& group);
  // The network's view. `memory` is a group's block.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry);
  // The same for a block that may be reused meanwhile.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry, int size);

  int size() const noexcept { return size_; }
  int place(int member) const noexcept;

  // --- Who is there ---------------------------------------------------------------------------
  // Announces that this rank has come, and wakes the ranks that may wait for it in a call.
  void come(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  // Records the same for a member on another host. Returns false if it was known.
  bool note(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  std::uint32_t how(int member) const noexcept;
  // Returns the turn in which the member has come last.
  std::uint64_t turn(int member) const noexcept;
  // Returns the latest turn in which a member that is in reach has come.
  std::uint64_t latest_turn() const noexcept;
  bool has_come(int member) const noexcept { return (how(member) & kCame) != 0; }
  // Announces that this rank has closed the group, and wakes the ranks that may wait for it.
  void close(int member) noexcept;
  bool has_closed(int member) const noexcept {
    return (how(member) & (kCame | kClosed)) == kClosed;
  }
  // True if the member has ended, has closed the group, or is out of reach.
  bool is_lost(int member) const noexcept;
  // True if the member has certainly ended or closed the group.
  bool has_ended(int member) const noexcept;
  // True if the member is lost, and no lane hears of it either. A member that only its messages
  // cannot reach may go on with hosts that they do reach, so it counts as there once it has come.
  bool is_out_of_reach(int member) const noexcept;
  bool is_there(int member) const noexcept { return is_there(member, latest_turn()); }
  bool anybody_came() const noexcept;
  // True if a ComeFact would have anything to report.
  bool anybody_said() const noexcept;
  // True if no member is waited for any longer: all others have come or are out of reach, or a
  // member that is there is impatient.
  bool is_ready() const noexcept;
  Members there() const;

  // --- Between hosts. `hosts`: the number of each member's host ---------------------------------
  // Hosts with a member that is there, in the order of members.
  std::vector<int> hosts_there(std::span<const int> hosts) const;
  // True if these hosts may decide for all. They must hold more than half of the members that have
  // not ended, or half and the first. So two parts that cannot see each other never both may. While
  // any member is silent, a host that has ended as a whole still counts: it may have voted there.
  bool outweighs(std::span<const int> hosts, const std::set<int>& with) const;
  // True if all members that are there said that they go on alone.
  bool may_go_alone() const noexcept;

  // --- A host's part in the agreement ------------------------------------------------------------
  // A lock between processes of this host. It passes to the next process when its holder has died.
  // Does not wait if it is held: the question will be repeated.
  class Guard {
   public:
    explicit Guard(Succession& group) noexcept;
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    explicit operator bool() const noexcept { return held_; }

   private:
    Succession& group_;
    bool held_;
  };
  // The caller of these four holds the guard. Ballots only grow.
  std::uint64_t promised() const noexcept;
  void promise(std::uint64_t ballot) noexcept;
  std::optional<Vote> accepted() const;
  void accept(const Vote& vote) noexcept;
  // The hosts' decision; absent: none yet.
  std::optional<Members> decided() const;
  bool is_decided() const noexcept;
  // Records the decision and wakes this host's ranks. The caller holds the guard.
  void decide(const Members& members) noexcept;
  // Notes that the member's host knows the decision, or does not need it.
  void inform(int member) noexcept;
  // True if another host may still need this one to send the decision.
  bool owes_outcome() const noexcept;

  // --- The next group on this host ---------------------------------------------------------------
  // The offset of its block; 0: none yet.
  std::uint64_t successor() const noexcept;
  // Returns true if `block` becomes the next group, and false if another block was first.
  bool appoint(std::uint64_t block) noexcept;
  // Lists a new group's block for the network; the first member that comes makes the entry. Earlier
  // facts from other hosts go into the block. Absent if there are too many groups.
  GroupEntry* enlist(std::uint64_t id);

  HostControl& host() const noexcept { return *host_; }

 private:
  static constexpr int kDecidedSlot = 2;
  bool is_there(int member, std::uint64_t latest) const noexcept {
    return has_come(member) && turn(member) == latest && !is_out_of_reach(member);
  }
  void announce(int member, std::uint32_t how, std::uint64_t turn) noexcept;
  GroupMember& member(int rank) const noexcept;
  Members read(int slot) const;
  void learn(const VoteFact& vote) noexcept;
  void write(int slot, const Members& members) noexcept;

  HostControl* host_;
  GroupHeader* header_;
  std::byte* block_;
  int size_;
  GroupEntry* entry_;
};

}  // namespace hocket::control
