// How a group comes to an agreed end: which of its members go on, as the group of the next epoch.
//
// Within a host. Each member that calls `rebuild` says so by a word of its own in the group's block
// (`come`), which it never takes back. Where a call of `rebuild` is refused all come anew, and say in
// which turn (rebuild_turns.h): only who has come in the latest one is there. When every member has come or is known to be gone, somebody
// (the first who is there, or any other after a moment) writes down the group of those who are
// there in a block of memory of its own, complete, and puts the block's place into one word of the
// old group by compare-and-swap (`appoint`). Who comes first wins, for all, whatever ends then or
// before: there is no state between undecided and decided. Who is not in that group learns so from
// the same word, however late it comes.
//
// Between hosts. The same facts are copied to the other hosts' blocks over the lanes, and the hosts
// agree on the members before each appoints its block: see agreement.h. What a host has promised
// and accepted there lies in the block too, so that it outlives the rank that speaks for the host.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "membership/control/group.h"

namespace hocket::control {

// For each member: whether it is meant.
using Members = std::vector<bool>;

// What a member says when it comes.
enum Come : std::uint32_t {
  kCame = 1,
  kImpatient = 2,  // does not wait any longer for those who have not come
  kAlone = 4,      // goes on though others, out of reach, may do so too
  kInformed = 8,   // said of it by its host, not by itself: the outcome is known there
  kClosed = 16,    // has closed the group, and has not come before
};

struct VoteFact;

// A value: what a host has accepted last; see agreement.h.
struct Vote {
  std::uint64_t ballot = 0;
  Members members = {};
};

// A view of a group's block; copies nothing and holds nothing. Functions are safe from any thread,
// but for those that want the guard.
class Succession {
 public:
  explicit Succession(GroupControl& group);
  // As the network sees it. `memory`: a group's block.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry);
  // The same, of a block that may go to others meanwhile.
  Succession(HostControl& host, std::byte* memory, GroupEntry* entry, int size);

  int size() const noexcept { return size_; }
  int place(int member) const noexcept;

  // --- Who is there ---------------------------------------------------------------------------
  // Announces this rank; wakes those who may wait for it in a call.
  void come(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  // The same, of a member on another host. False where that is not news.
  bool note(int member, std::uint32_t how, std::uint64_t turn = 1) noexcept;
  std::uint32_t how(int member) const noexcept;
  // In which it has come last.
  std::uint64_t turn(int member) const noexcept;
  // In which any that is not lost has come.
  std::uint64_t latest_turn() const noexcept;
  bool has_come(int member) const noexcept { return (how(member) & kCame) != 0; }
  // Announces that this rank has closed the group; wakes those who may wait for it in a call.
  void close(int member) noexcept;
  bool has_closed(int member) const noexcept {
    return (how(member) & (kCame | kClosed)) == kClosed;
  }
  // Has ended, or closed the group, or cannot be heard any more.
  bool is_lost(int member) const noexcept;
  // Has ended, or closed the group, for certain.
  bool has_ended(int member) const noexcept;
  bool is_there(int member) const noexcept { return is_there(member, latest_turn()); }
  bool anybody_came() const noexcept;
  // Whether there is anything that a ComeFact tells.
  bool anybody_said() const noexcept;
  // Whether nobody is waited for any longer: all others have come or are lost, or one who is there
  // is impatient.
  bool is_ready() const noexcept;
  Members there() const;

  // --- Between hosts. `hosts`: the number of each member's host ---------------------------------
  // Hosts with a member that is there, in the order of members.
  std::vector<int> hosts_there(std::span<const int> hosts) const;
  // Whether these hosts may decide for all: they hold more than half of the members that have not
  // ended, or half of them and the first. So no two parts that cannot see each other both may.
  // While anybody is silent, a host that has ended as a whole counts as before: it may have voted
  // there.
  bool outweighs(std::span<const int> hosts, const std::set<int>& with) const;
  // Whether all who are there said that they go on alone.
  bool may_go_alone() const noexcept;

  // --- A host's part in the agreement ------------------------------------------------------------
  // Excludes other processes of this host; goes over to the next when its holder has died. Gives
  // way at once where it is held: whoever asked will ask again.
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
  // Under the guard, all four. Ballots only grow.
  std::uint64_t promised() const noexcept;
  void promise(std::uint64_t ballot) noexcept;
  std::optional<Vote> accepted() const;
  void accept(const Vote& vote) noexcept;
  // What the hosts have agreed on; absent: nothing so far.
  std::optional<Members> decided() const;
  bool is_decided() const noexcept;
  // Under the guard. Wakes this host's ranks.
  void decide(const Members& members) noexcept;
  // A member's host knows what was decided, or has no use for it.
  void inform(int member) noexcept;
  // Whether another host may yet have to hear from this one what was decided.
  bool owes_outcome() const noexcept;

  // --- The next group on this host ---------------------------------------------------------------
  // Where its block lies; 0: nowhere so far.
  std::uint64_t successor() const noexcept;
  // True: `block` is it. False: another one was before.
  bool appoint(std::uint64_t block) noexcept;
  // Of a new group's block: its entry for the network, made by whichever member comes first.
  // What other hosts have said of it before goes into the block. Absent where there are too many
  // groups.
  GroupEntry* enlist(std::uint64_t id);

  HostControl& host() const noexcept { return *host_; }

 private:
  static constexpr int kDecidedSlot = 2;
  bool is_there(int member, std::uint64_t latest) const noexcept {
    return has_come(member) && turn(member) == latest && !is_lost(member);
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
