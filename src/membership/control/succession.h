// The agreed end of a group: its members agree on the members that go on, as the group of the next
// epoch.
//
// Within a host. Each member that calls `rebuild` sets a word in the group's block (`come`), which
// is never cleared. If a call of `rebuild` is refused, all members come again, in the next turn
// (rebuild_turns.h). A member is *there* if it has come in the latest turn and can be reached.
//
// One member makes the next group when every member has come or is known to be lost. It is the
// first member that is there, or another one after a moment. It writes the complete group of the
// members that are there into a new block. Then it stores the block's offset in one word of the old
// group, by compare-and-swap (`appoint`). The first swap decides for all, whichever ranks end
// before or after it: there is no state between undecided and decided. A member that is left out
// learns this from the same word, however late it comes.
//
//   old block: successor = 0  --appoint-->  successor = offset of the new block
//
// Between hosts. The words of each host's members are copied to the other hosts' blocks over the
// lanes. The hosts agree on the members before each of them appoints its block: see agreement.h. A
// host's promises and accepted votes are in the block too, so that they outlive the rank that
// speaks for the host.
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
  kImpatient = 2,  // waits no longer for missing members
  kAlone = 4,      // goes on even if ranks that it cannot reach may do the same
  kInformed = 8,   // the member's host knows the outcome; set by the receiving host
  kClosed = 16,    // has closed the group before it has come
};

struct VoteFact;

// The vote that a host has accepted last; see agreement.h. A value.
struct Vote {
  std::uint64_t ballot = 0;
  Members members = {};
};

// A view of a group's block. It owns nothing. Any thread may call its functions, except those that
// need the guard.
class Succession {
 public:
  explicit Succession(GroupControl& group);
  // The view of the network's thread. `memory` is a group's block.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry);
  // The view of a block that may be reused meanwhile. `size` is the group's size, which was read
  // before.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry, int size);

  int size() const noexcept { return size_; }
  int place(int member) const noexcept;

  // --- The members that are there -------------------------------------------------------------

  // Announces that this rank has called `rebuild`, and wakes the ranks that may wait for it in a
  // call. `how` has bits of Come.
  void come(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  // Records that a member of another host has called `rebuild` or closed the group. Returns false
  // if this was known.
  bool note(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  std::uint32_t how(int member) const noexcept;
  // Returns the last turn in which the member has come.
  std::uint64_t turn(int member) const noexcept;
  // Returns the latest turn in which any reachable member has come.
  std::uint64_t latest_turn() const noexcept;
  bool has_come(int member) const noexcept { return (how(member) & kCame) != 0; }
  // Announces that this rank has closed the group, and wakes the ranks that may wait for it.
  void close(int member) noexcept;
  bool has_closed(int member) const noexcept {
    return (how(member) & (kCame | kClosed)) == kClosed;
  }
  // Returns whether the member has ended, has closed the group, or cannot be reached.
  bool is_lost(int member) const noexcept;
  // Returns whether the member has certainly ended, or has closed the group.
  bool has_ended(int member) const noexcept;
  // Returns whether the member is lost, and no lane brings news of it either. A member whose
  // messages fail while a lane still brings news is not out of reach: it may go on with other
  // hosts. So `is_there` counts it when it has come.
  bool is_out_of_reach(int member) const noexcept;
  bool is_there(int member) const noexcept { return is_there(member, latest_turn()); }
  bool anybody_came() const noexcept;
  // Returns whether any member has come or has closed the group.
  bool anybody_said() const noexcept;
  // Returns whether no member is waited for any longer: every member is there or out of reach, or a
  // member that is there is impatient.
  bool is_ready() const noexcept;
  Members there() const;

  // --- Between hosts. `hosts`: the number of each member's host ---------------------------------

  // Returns the hosts that have a member that is there, in the order of the members.
  std::vector<int> hosts_there(std::span<const int> hosts) const;
  // Returns whether the hosts `with` may decide for all. They must have more than half of the
  // members that have not ended, or exactly half including the first one. So two sets of hosts that
  // cannot hear each other never both decide. While any member is silent, a host whose ranks have
  // all ended still counts, because it may have voted for the silent side.
  bool outweighs(std::span<const int> hosts, const std::set<int>& with) const;
  // Returns whether all members that are there have said that they may go on alone.
  bool may_go_alone() const noexcept;

  // --- A host's part in the agreement ------------------------------------------------------------

  // A lock between the processes of this host. When its holder has died, another process can take
  // it. The constructor does not wait: if another process holds the lock, this object is false, and
  // the caller relies on the question being repeated.
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
  // The next four functions need the guard. Ballots only grow.
  std::uint64_t promised() const noexcept;
  void promise(std::uint64_t ballot) noexcept;
  std::optional<Vote> accepted() const;
  void accept(const Vote& vote) noexcept;
  // Returns the decision of the hosts. Absent: there is none yet.
  std::optional<Members> decided() const;
  bool is_decided() const noexcept;
  // Records the decision and wakes this host's ranks. Needs the guard.
  void decide(const Members& members) noexcept;
  // Records that the member's host knows the decision, or does not need it.
  void inform(int member) noexcept;
  // Returns whether another host may still need to get the decision from this one.
  bool owes_outcome() const noexcept;

  // --- The next group on this host ---------------------------------------------------------------

  // Returns the offset of the next epoch's block; 0 if there is none yet.
  std::uint64_t successor() const noexcept;
  // Makes `block` the next group. Returns false if another block was appointed before.
  bool appoint(std::uint64_t block) noexcept;
  // Lists this group for the network. The first member that calls it makes the entry. Facts about
  // the group that other hosts have sent before are written into the block. Null: there are too
  // many groups.
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
