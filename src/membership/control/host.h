// The shared state of a job's ranks on one host, beneath every engine: which ranks live, how to
// wake them, and memory for groups.
//
// Layout of the segment, version 14 (all offsets are multiples of the page size):
//
//   HostHeader | RankLine[places] | SharedEndReason[places] | RobustWord[ranks][ranks] |
//   GroupEntry[kGroups] | KeptFacts[2] | GoneGroups | stripe 0 | ...
//
// The ranks of this host have the first places, and ranks of other hosts the places behind them.
// Facts about those arrive through the network (network.h), and so does the state of listed groups.
// Jobs of one host have neither. Each rank allocates from its own stripe, with bookkeeping in its
// own memory. So a rank that dies in the middle leaves nothing inconsistent behind.
#pragma once

#include <sched.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/atomic.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/os/futex.h"
#include "foundation/os/segment.h"

namespace hocket::control {

inline constexpr std::size_t kCacheLine = 64;
// Two lines: neighbours are fetched in pairs.
inline constexpr std::size_t kApart = 128;

enum class RankState : std::uint32_t {
  kAbsent,  // has not joined yet
  kAlive,
  kLeft,  // ended in good order
  kDied,
  kSilent,  // its host cannot be heard any more
  kCut,     // its connection has broken, though its host is there
};

// True of a rank that may still run and be heard of by the lanes. A rank that is cut off is.
constexpr bool may_live(RankState state) noexcept {
  return state <= RankState::kAlive || state == RankState::kCut;
}

// The line of one rank. The comments of HostControl's functions say which fields pair.
struct alignas(kApart) RankLine {
  base::Atomic<std::uint32_t> parked{0};  // threads of the rank that sleep, or are about to
  os::FutexWord doorbell{0};              // its threads sleep on this
  alignas(kApart) base::Atomic<RankState> state{RankState::kAbsent};
  base::Atomic<std::int32_t> pid{0};
  base::Atomic<std::int32_t> world_rank{-1};
  base::Atomic<std::int32_t> end{0};          // how it ended; see host.cc
  base::Atomic<std::int32_t> thread{0};       // thread that took the place, by its number in /proc
  base::Atomic<std::uint64_t> start{0};       // os::process_start
  base::Atomic<std::int64_t> death_seen{0};   // ns of the steady clock; 0: not yet
  base::Atomic<std::int32_t> running_on{-1};  // the processor that it last waited on
  base::Atomic<std::int32_t> cut_from{-1};    // of kCut: the rank of this host that found it so
  base::Atomic<std::uint32_t> fenced{0};      // others' heavy fences cover it
  base::Atomic<std::int32_t> host{-1};        // the number of its host, where there are several
  base::Atomic<std::uint64_t> pid_space{0};   // os::process_space
  // In ns of the steady clock; 0: not yet. For a rank of this host, the last turn of its network
  // thread. For the first rank of another host, the last time any rank here heard that host.
  base::Atomic<std::int64_t> seen_at{0};
  base::Atomic<std::int32_t> awaits{-1};      // place of the rank that it has long waited for
  base::Atomic<std::int32_t> spoken_for{-1};  // place of the rank that warns of waits for this one
  base::Atomic<std::uint32_t> task{0};        // 2 n: in task n; 2 n + 1: has ended it; 0: has none
  // For single copy, see agree_on_single_copy. `access` is the rank's wish after its test, 1 more
  // than base::SingleCopy, and kMayWrite if it can write, too. `proof` is a random number.
  // `proof_at` is the address in the rank's memory of the same number and of a word to write to.
  static constexpr std::uint32_t kMayWrite = 4;
  base::Atomic<std::uint32_t> access{0};
  base::Atomic<std::uint64_t> proof{0};
  base::Atomic<std::uint64_t> proof_at{0};
};
static_assert(sizeof(RankLine) == 2 * kApart);

// A group with members on several hosts, for the network. `id` is written last, and cleared by the
// network alone.
struct alignas(kCacheLine) GroupEntry {
  enum News : std::uint32_t { kFailed = 1, kRefused = 2, kAsked = 4, kCome = 8 };
  base::Atomic<std::uint64_t> id{0};
  base::Atomic<std::uint32_t> taken{0};
  base::Atomic<std::uint32_t> news{0};  // for the other hosts
  base::Atomic<std::uint32_t> size{0};
  base::Atomic<std::uint64_t> block{0};
};
inline constexpr std::size_t kGroups = 1024;

class GoneGroups;
class KeptFacts;
struct SharedEndReason;

// The reason why a rank ends, or has ended its task, other than in good order. A value.
struct EndReason {
  // The rank had seen another's loss before, which may be why it ends.
  bool follows_loss = false;
  std::string text;  // such as "raised RuntimeError: ..."; at most kTextBytes
  static constexpr std::size_t kTextBytes = 200;
};

// The shape of a segment. A value.
struct HostShape {
  int ranks = 1;                 // on this host
  int remote = 0;                // on others
  std::size_t stripe_bytes = 0;  // a multiple of the page size
};

// A resource: one rank's end of the segment. All parts of that rank share it. Functions are safe
// from any thread unless noted.
class HostControl {
 public:
  static constexpr int kMostRanks = 31 * 64 - 1;  // of a host: as many as a block can have holders
  // Throws InvalidArgument if there are too many ranks.
  static std::size_t segment_bytes(const HostShape& shape);
  // Writes the header. The maker of the segment calls it once.
  static void format(os::Segment& segment, const HostShape& shape);

  // Takes the place of rank `self` of the host; `arrive` then announces it. Throws RendezvousError
  // if the segment has another version.
  HostControl(std::shared_ptr<os::Segment> segment, int self);
  ~HostControl();
  HostControl(const HostControl&) = delete;
  HostControl& operator=(const HostControl&) = delete;

  int self() const noexcept { return self_; }
  int ranks() const noexcept { return ranks_; }
  // Number of places for ranks of this host and of others.
  int places() const noexcept { return places_; }
  bool is_here(int place) const noexcept { return place < ranks_; }
  // True if waiting may burn processor time; see os::paces_of. Set it before other threads use
  // this.
  bool may_spin() const noexcept { return may_spin_; }
  void set_may_spin(bool may) noexcept { may_spin_ = may; }
  // True if other processes want this rank's processor: two losses of it took half of the time
  // since the first began, while the rank spun or yielded. The rank then sleeps early. A sleeper is
  // woken soon, but a rank that has used up its share waits a scheduling round. A single loss does
  // not count, as a hypervisor takes a processor away for moments.
  bool is_busy() const noexcept {
    const std::int64_t until = busy_until_.load(std::memory_order_relaxed);
    return until != 0 && steady_ns() < until;
  }
  // Notes that the processor was lost from `from` to `to`, in ns of the steady clock.
  void note_lost_turn(std::int64_t from, std::int64_t to) noexcept {
    const std::int64_t last_from = lost_from_.exchange(from, std::memory_order_relaxed);
    const std::int64_t last_to = lost_to_.exchange(to, std::memory_order_relaxed);
    const std::int64_t lost = (last_to - last_from) + (to - from);
    if (last_to == 0 || 2 * lost < to - last_from) return;
    busy_until_.store(to + kBusyFor.count(), std::memory_order_relaxed);
  }
  // True if a waiting rank of this host was last seen on this thread's processor, so that spinning
  // keeps out the awaited rank. A caller announces its processor, and reads the others'
  // announcements once each. If the ranks have a processor each, it moves to one where no rank was
  // seen. A background thread also checks its own rank's caller.
  enum class Asks : std::uint8_t { kCaller, kBackground };
  bool shares_processor(Asks who) noexcept;
  // Used if there are more ranks than processors. A caller that continues after a yield announces
  // its processor, and finds out which ranks were last seen there. To spin while waiting for those
  // would keep the processor from them.
  void tell_processor() noexcept {
    const int here = sched_getcpu();
    auto& own = lines_[self_].running_on;
    if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
  }
  bool was_beside(int rank) const noexcept {
    return lines_[rank].running_on.load(std::memory_order_relaxed) ==
           lines_[self_].running_on.load(std::memory_order_relaxed);
  }
  // True if os::heavy_fence works in this process.
  bool fenced() const noexcept { return fenced_; }
  // Announces that this rank is there. Throws RendezvousError if its place is taken.
  void arrive(int world_rank);
  // Waits until every rank of the job has arrived. Throws RendezvousError naming the world ranks
  // that have not. `world_ranks` has the rank of each place.
  void wait_for_all(std::span<const int> world_ranks, base::Deadline deadline);

  // Decides whether the ranks of this host read each other's arrays in place, by the kernel. Each
  // tries to read a word of every other's memory, and announces the result. The lowest wish or
  // ability decides. All ranks of the host call it after wait_for_all. Returns the reason if this
  // rank cannot do what the setting asks for.
  std::string agree_on_single_copy(base::SingleCopy wanted, base::Deadline deadline);
  // The decision; kNever before.
  base::SingleCopy single_copy() const noexcept { return single_copy_; }
  // Returns whether the ranks of this host can also write to each other's memory.
  bool may_write() const noexcept { return may_write_; }
  // Copies `bytes` at `from` in the process of `rank`, if arrays are read in place. Returns 0 or an
  // error number, see os::read_process_memory. Returns ESRCH, too, if the rank has ended by now, as
  // another process may have its pid.
  int read_array(int rank, void* to, const void* from, std::size_t bytes) noexcept;
  // Copies `bytes` bytes of this process to `to` in `rank`'s process, if `ticket` is `valid` when
  // the kernel begins; see os::write_process_memory. Returns 0; ESRCH if it is not, or the rank has
  // ended; else the kernel's error number.
  int write_array(int rank,
                  void* to,
                  const void* from,
                  std::size_t bytes,
                  const base::Atomic<std::uint64_t>& ticket,
                  std::uint64_t valid) noexcept;
  // Returns whether a rank of this host may still be copying from or to another rank's memory,
  // given that it says so. A rank that has ended has copied all when its last thread is gone. A
  // rank that stands still begins no copy before it looks at its permit again.
  bool may_be_copying(int rank) const noexcept;

  // Announces the offset of the world's group; host rank 0 alone calls it, once.
  void publish_world(std::uint64_t offset) noexcept;
  // The offset of the world's group. Call it after wait_for_all.
  std::uint64_t published_world() const noexcept;

  // --- Waking and sleeping --------------------------------------------------------------------
  // Call it after a store that rank `peer` may be waiting for. Costs one load if no thread of it
  // sleeps: the sleeper's heavy fence orders the store and this load.
  void ring(int peer) noexcept {
    os::light_fence();
    if (lines_[peer].parked.load(std::memory_order_relaxed) != 0) ring_parked(peer);
  }
  void ring_all() noexcept;
  // Wakes this rank's own sleeping threads.
  void wake_self() noexcept { ring_parked(self_); }
  // Announces that this thread is about to sleep. Then check the condition once more, and call
  // `sleep` with the returned ticket.
  std::uint32_t before_sleep() noexcept;
  // Sleeps until a wake-up, `deadline`, or a signal. Also on `more` words, if any.
  void sleep(std::uint32_t ticket,
             base::Deadline deadline,
             std::span<const os::FutexWait> more = {}) noexcept;
  void after_sleep() noexcept;

  // --- Life and death -------------------------------------------------------------------------
  RankState state(int rank) const noexcept {
    return lines_[rank].state.load(std::memory_order_acquire);
  }
  int pid(int rank) const noexcept { return lines_[rank].pid.load(std::memory_order_relaxed); }
  // Counts deaths and departures; changes when a state does.
  std::uint32_t losses() const noexcept { return losses_->load(std::memory_order_acquire); }
  // Makes all waits check again which ranks are there.
  void count_loss() noexcept { losses_->fetch_add(1, std::memory_order_acq_rel); }
  // Announces a clean end. No peer waits for this rank any longer.
  void leave() noexcept;
  // Announces why this rank is about to leave, to die or to end its task. The reason counts once
  // the rank has done so.
  enum class Ending : std::uint32_t { kInOrder, kByItself, kAfterALoss };
  void tell_end_reason(Ending ending, std::string_view text) noexcept;
  // Withdraws it: the rank goes on, or ends in good order.
  void withdraw_end_reason() noexcept;
  // Returns how the rank at `place` ends, as far as it has announced that. Reads one word.
  Ending ending(int place) const noexcept;
  // Returns the reason that it has announced. Absent: none.
  std::optional<EndReason> end_reason(int place) const;
  // The time at which the rank's death or departure was recorded, in ns of this host's steady
  // clock.
  std::int64_t ended_at(int place) const noexcept {
    return lines_[place].death_seen.load(std::memory_order_relaxed);
  }
  // The word of `owner` that `watcher` watches.
  os::RobustWord& robust_word(int owner, int watcher) noexcept {
    return robust_[static_cast<std::size_t>(owner) * static_cast<std::size_t>(ranks_) +
                   static_cast<std::size_t>(watcher)];
  }
  // Records that `rank` has ended, as its word shows, and wakes all ranks. Any rank may call it,
  // also more than once.
  void record_death(int rank) noexcept;
  // Looks at the words of all ranks and records the deaths it finds. The kernel wakes the progress
  // thread for that, but a waiting thread that is running sees a death sooner.
  void look_for_deaths() noexcept;
  // Records the death of `rank` while the kernel writes its memory to a core file, because the
  // kernel marks its words only afterwards. Takes a few system calls.
  void look_for_core_dump(int rank) noexcept;
  // Returns os::process_start of the rank's process; 0 if this process cannot see it.
  std::uint64_t start(int rank) const noexcept;
  // Returns the thread in which the rank joined. If ranks are threads, it is the rank's own.
  int thread(int rank) const noexcept {
    return lines_[rank].thread.load(std::memory_order_relaxed);
  }
  // Publishes how `rank` ended: waitpid's status.
  void record_end(int rank, int status) noexcept;
  bool has_end(int rank) const noexcept {
    return lines_[rank].end.load(std::memory_order_acquire) != 0;
  }
  // The recorded end; absent: none yet.
  std::optional<int> end(int rank) const noexcept;
  // The time since its death was first recorded.
  std::chrono::nanoseconds since_death(int rank) const noexcept;

  // --- Other hosts ----------------------------------------------------------------------------
  // Sets the number of each place's host, as all ranks of the job count them. Every rank of this
  // host sets the same numbers, before it hears of other hosts.
  void set_hosts(std::span<const int> hosts) noexcept;
  int host_of(int place) const noexcept {
    return lines_[place].host.load(std::memory_order_relaxed);
  }
  // The machine and the address of the rank at each place, for people: "on node3 (10.0.0.3:29501)".
  // This process's own copy. Empty for this host's ranks, and in jobs of one host.
  void set_whereabouts(std::vector<std::string> whereabouts) {
    whereabouts_ = std::move(whereabouts);
  }
  std::string_view whereabouts(int place) const noexcept {
    const auto at = static_cast<std::size_t>(place);
    return at < whereabouts_.size() ? std::string_view(whereabouts_[at]) : std::string_view();
  }
  // Records another host's report about the rank at `place`; wakes all ranks if it is news. `end`:
  // as waitpid says, if known. Only the network calls it.
  struct Remote {
    RankState state = RankState::kAbsent;
    int pid = 0;
    int world_rank = -1;
    std::optional<int> end = {};
    std::optional<EndReason> reason = {};
  };
  void record_remote(int place, const Remote& remote) noexcept;
  // Records that world rank `from`, of this host, can no longer exchange messages with the rank at
  // `place`. The rank that speaks for this host tells the other host.
  void record_cut(int place, int from) noexcept;
  // Absent: no rank of this host has found the rank at `place` to be cut off.
  std::optional<int> cut_from(int place) const noexcept;
  Remote describe(int place) const noexcept;
  // note_seen sets RankLine::seen_at, and since_seen reads it; absent: not yet seen.
  void note_seen(int place) noexcept;
  std::optional<std::chrono::nanoseconds> since_seen(int place) const noexcept;
  struct Listing {
    std::uint64_t id = 0;
    std::uint64_t block = 0;
    int size = 0;
  };
  // Lists a group. Null: there are too many, and none is removed within `patience`. The rank
  // that speaks for this host removes groups that all have closed.
  GroupEntry* enlist(const Listing& group, Duration patience = {}) noexcept;
  // Lists a group once, even if several members do so at the same time. `listed` is a word of the
  // group's block that records this. Requests the other hosts' facts about it.
  GroupEntry* enlist_once(base::Atomic<std::uint32_t>& listed, const Listing& group) noexcept;
  // Finds a listed group.
  GroupEntry* find_group(std::uint64_t id) const noexcept;
  std::span<GroupEntry> groups() const noexcept {
    return {groups_, groups_ == nullptr ? 0 : kGroups};
  }
  // These three exist only if there are other hosts. This one has facts about this host's ranks, in
  // groups that were removed from the list.
  KeptFacts& farewells() const noexcept { return *farewells_; }
  // Facts about other hosts' ranks, in groups that are not listed yet.
  KeptFacts& forerunners() const noexcept { return *forerunners_; }
  GoneGroups& gone_groups() const noexcept { return *gone_groups_; }
  // Leaves news for the other hosts, and wakes the rank that speaks for this one.
  void tell_network(GroupEntry& entry, GroupEntry::News news) noexcept;
  // Does the same for news about this host's ranks themselves.
  void ring_network() noexcept;
  // Changes when there is news.
  os::FutexWord& network_bell() const noexcept { return *network_bell_; }
  // `sleep` first calls this function, and does not sleep if it returns false, as something has
  // already come. Set it before the rank arrives; the function outlives this.
  void set_arming(std::function<bool()> arming) { arming_ = std::move(arming); }

  // --- Long waits; see monitoring/live/long_wait.h
  // -------------------------------------------------------
  int world_rank(int place) const noexcept {
    return lines_[place].world_rank.load(std::memory_order_relaxed);
  }
  // The number of its host, where there are several.
  int host_number(int place) const noexcept {
    return lines_[place].host.load(std::memory_order_relaxed);
  }
  // Shows the others the rank that this one waits for; -1: none.
  void show_awaited(int place) noexcept {
    lines_[self_].awaits.store(place, std::memory_order_relaxed);
  }
  // Returns the place of the rank for which the one at `place` waits. -1: none, or no valid place.
  int awaited_by(int place) const noexcept { return checked_place(lines_[place].awaits); }
  // The rank that warns of waits for the rank at `place`, one rank of this host at a time; -1:
  // none.
  int speaker_about(int place) const noexcept { return checked_place(lines_[place].spoken_for); }
  // Makes this rank replace `before`. Returns false if another rank was quicker.
  bool speak_about(int place, int before) noexcept {
    std::int32_t expected = before;
    return lines_[place].spoken_for.compare_exchange_strong(
        expected, self_, std::memory_order_relaxed);
  }
  void speak_no_more_about(int place) noexcept {
    std::int32_t expected = self_;
    lines_[place].spoken_for.compare_exchange_strong(expected, -1, std::memory_order_relaxed);
  }

  // --- Tasks; see Communicator::begin_task ----------------------------------------------------
  // Begin task `number`, which is not 0, and end it.
  void begin_task(std::uint32_t number) noexcept {
    withdraw_end_reason();
    write_task(2 * number);
  }
  void end_task() noexcept { write_task(lines_[self_].task.load(std::memory_order_relaxed) | 1); }
  bool is_in_task() const noexcept {
    const std::uint32_t own = lines_[self_].task.load(std::memory_order_relaxed);
    return own != 0 && (own & 1) == 0;
  }
  // True if this rank is in a task, and the rank at `place` has ended the same task. Calls that the
  // latter began are then visible: pairs with write_task.
  bool has_ended_task(int place) const noexcept {
    return is_in_task() && lines_[place].task.load(std::memory_order_acquire) ==
                               lines_[self_].task.load(std::memory_order_relaxed) + 1;
  }

  // --- Memory ---------------------------------------------------------------------------------
  std::byte* at(std::uint64_t offset) const noexcept { return segment_->data() + offset; }
  std::span<const std::byte> memory() const noexcept {
    return {segment_->data(), segment_->size()};
  }
  // Does the same for an offset that a peer wrote. Throws SystemError unless `bytes` lie there.
  std::byte* at(std::uint64_t offset, std::size_t bytes) const;
  // Allocates zeroed memory of this rank's stripe, which `holders` hold: ranks of this host, or
  // kNetwork. Returns its offset. If the stripe is full, waits for memory that comes back from dead
  // ranks, for seconds at most. Then throws SystemError.
  static constexpr int kNetwork = -1;
  std::uint64_t allocate(std::size_t bytes, std::span<const int> holders);
  // Releases this rank's hold; the owner takes the memory back at one of its next allocations. A
  // dead rank's hold counts as released once its process is gone.
  void release(std::uint64_t offset) noexcept { release(offset, self_); }
  void release(std::uint64_t offset, int holder) noexcept;
  // Releases the holds of all ranks of this host, if the block's group was never joined.
  void withdraw(std::uint64_t offset) noexcept;
  // True if some rank still holds the block.
  bool is_held(std::uint64_t offset) const noexcept;
  std::size_t stripe_bytes() const noexcept { return stripe_bytes_; }
  // `contains` is true for an address in the segment; offset_of returns its offset.
  bool contains(const void* address) const noexcept {
    const auto* at = static_cast<const std::byte*>(address);
    return at >= segment_->data() && at < segment_->data() + segment_->size();
  }
  std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - segment_->data());
  }

 private:
  struct Free {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  void ring_parked(int peer) noexcept;
  void write_task(std::uint32_t task) noexcept {
    lines_[self_].task.store(task, std::memory_order_release);
    ring_all();
  }
  void offer_proof();
  std::string try_to_read() const;
  std::string try_to_write();
  int checked_place(const base::Atomic<std::int32_t>& word) const noexcept {
    const std::int32_t place = word.load(std::memory_order_relaxed);
    return place >= 0 && place < places_ ? place : -1;
  }
  GroupEntry* take_entry(const Listing& group) noexcept;
  void collect();
  bool is_gone(int rank) const noexcept;
  bool awaits_the_dead() const noexcept;
  template <typename Gone>
  bool is_held(std::uint64_t offset, const Gone& gone) const noexcept;
  std::optional<std::uint64_t> take(std::size_t bytes);

  std::shared_ptr<os::Segment> segment_;
  int self_;
  int ranks_ = 0;
  int places_ = 0;
  static constexpr std::chrono::nanoseconds kBusyFor = std::chrono::seconds(1);
  static constexpr std::chrono::nanoseconds kMovePause = std::chrono::milliseconds(50);
  bool move_away(int here) noexcept;
  static std::int64_t steady_ns() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  bool may_spin_ = false;
  // This rank's own; ns of the steady clock.
  std::int64_t moves_again_at_ = 0;  // ns of the steady clock; of the calling thread
  base::Atomic<std::int64_t> busy_until_{0};
  base::Atomic<std::int64_t> lost_from_{0};  // the last time that it lost its processor
  base::Atomic<std::int64_t> lost_to_{0};
  base::SingleCopy single_copy_ = base::SingleCopy::kNever;
  bool may_write_ = false;
  // The others find the number at RankLine::proof_at, and write to the word behind it.
  struct Proof {
    std::uint64_t number = 0;
    std::uint64_t landing = 0;
  };
  Proof proof_;
  bool fenced_ = false;                   // heavy fences work here
  base::Atomic<bool> all_fenced_{false};  // and cover all ranks; learnt when all are present
  base::Atomic<std::uint32_t>* losses_ = nullptr;
  std::size_t stripe_bytes_ = 0;
  std::uint64_t stripe_offset_ = 0;
  RankLine* lines_ = nullptr;
  SharedEndReason* reasons_ = nullptr;
  os::RobustWord* robust_ = nullptr;
  GroupEntry* groups_ = nullptr;
  KeptFacts* farewells_ = nullptr;
  KeptFacts* forerunners_ = nullptr;
  GoneGroups* gone_groups_ = nullptr;
  os::FutexWord* network_bell_ = nullptr;
  std::function<bool()> arming_;
  std::vector<std::string> whereabouts_;  // by place

  // The stripe's books; see allocate.
  std::mutex books_;
  std::vector<Free> free_;           // by offset, neighbours merged
  std::vector<std::uint64_t> live_;  // blocks handed out
  std::size_t collect_at_ = 64;      // look for released ones when there are this many
};

}  // namespace hocket::control
