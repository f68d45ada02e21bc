// The control data of one group, which its members share: the current call of each member,
// refusals, and the cause of the group's end.
//
// It lies in a block of the host's segment. Everything that a peer writes is copied once and then
// checked.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/call.h"
#include "foundation/base/atomic.h"
#include "hocket/error.h"
#include "membership/control/cause.h"
#include "membership/control/host/host.h"

namespace hocket::control {

// A call that a rank has announced. A value.
struct Record {
  std::uint64_t sequence = 0;
  std::uint64_t fingerprint = 0;
  engine::Signature signature;
  bool refused = false;
};

// The failure that ended a group. It is the first one in the group, and the same for every member.
// A value.
struct Failure {
  Cause cause = Cause::kUnknown;
  int reporter = -1;           // the member that found the failure
  int culprit = -1;            // the member that died, aborted, differs, ...
  std::uint64_t sequence = 0;  // the call that failed
  // kLate: the members that had not come to the call; kDeadlock: the members that wait for each
  // other. Bit i is member i, for i < 64.
  std::uint64_t missing = 0;
  engine::Signature signature;  // the reporter's call
  engine::Signature other;      // kDifferent, kPartsDiffer: the culprit's call
  // A text for people, which no code depends on: the reason of an abort or a refusal, or how long a
  // rank waited. At most kTextBytes.
  std::string text;
  static constexpr std::size_t kTextBytes = 200;

  ErrorCode code() const noexcept { return code_of(cause); }
};

// A call that a rank has refused. A value.
struct CallRefusal {
  engine::Kind kind = engine::Kind::kNone;
  std::string reason;
};

// A call of `rebuild` that a rank has refused because of its arguments. A value.
struct RebuildRefusal {
  std::uint64_t count = 0;  // the number of the refused call, from 1; see rebuild_turns.h
  std::uint64_t after = 0;  // the number of the rank's last other call before it
  std::string reason;
};

// A call in which a rank is blocked: the rank starts nothing else on the communicator before this
// call ends. A value.
struct BlockingCall {
  static constexpr std::size_t kPeers = 4;
  std::uint64_t sequence = 0;  // the number of a collective; 0: messages
  // For messages: the call ends only after each of these members has done something.
  // engine::kAnyPeer stands for any member.
  std::array<std::int32_t, kPeers> peers{};
  std::uint32_t peer_count = 0;
};

inline constexpr std::size_t kRecords = 32;
inline constexpr std::size_t kDeviceCalls = 256;
// A call on GPUs: its number, and the fingerprint of all calls up to it. A value.
struct DeviceCall {
  std::uint64_t sequence = 0, fingerprint = 0;
  bool operator==(const DeviceCall&) const = default;
};
// The least time between two questions to the other hosts.
inline constexpr std::chrono::milliseconds kAskPause{20};

struct GroupHeader;
struct GroupMember;
class Succession;

// One rank's view of its group's block. A resource, but it does not own the block. One thread at a
// time uses it, but any thread may call `fail` and `failed`.
class GroupControl {
 public:
  static std::size_t bytes(int size);
  // Writes an empty group into zeroed memory. `places` has the place of each member on this host.
  static void format(std::byte* memory, std::span<const int> places);
  // `host_ranks` has the place of each member, and must outlive this object. `entry` is not null
  // for a group with members on several hosts.
  GroupControl(HostControl& host,
               std::byte* memory,
               int rank,
               std::span<const int> host_ranks,
               GroupEntry* entry = nullptr);

  HostControl& host() const noexcept { return *host_; }
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  int host_rank(int member) const noexcept { return host_ranks_[static_cast<std::size_t>(member)]; }
  bool is_here(int member) const noexcept { return host_->is_here(host_rank(member)); }
  // See ProcessorSharing.
  bool may_spin(int member) const noexcept { return host_->processors.may_spin(host_rank(member)); }
  // Returns whether `member`, on this host, was last seen on this rank's processor. See
  // ProcessorSharing::was_beside.
  bool was_beside(int member) const noexcept {
    return host_->processors.was_beside(host_rank(member));
  }
  // Returns whether the group has members on other hosts. Their announcements arrive here with a
  // delay, or soon after `ask`.
  bool spans() const noexcept { return entry_ != nullptr; }
  // Asks the other hosts for the announcements of their members. Does nothing if this rank has
  // asked within the last `pause`.
  void ask(std::chrono::milliseconds pause = kAskPause) const noexcept;
  void ring(int member) noexcept { host_->doorbells.ring(host_rank(member)); }
  // Wakes all members but this rank.
  void ring_peers() noexcept {
    os::light_fence();
    for (int i = 0; i < size_; ++i) {
      if (i != rank_) host_->doorbells.ring(host_rank(i));
    }
  }

  // --- Records --------------------------------------------------------------------------------

  // Announces this rank's next call.
  void record(std::uint64_t sequence,
              std::uint64_t fingerprint,
              const engine::Signature& signature,
              bool refused = false) noexcept;
  // Returns the record of call `sequence` of `member`. Absent: the member has not come to this call
  // yet, or has overwritten the record because it is far ahead.
  std::optional<Record> find(int member, std::uint64_t sequence) const noexcept;
  // Returns the number of the last call that `member` has announced.
  std::uint64_t last_sequence(int member) const noexcept;
  std::optional<Record> last(int member) const noexcept;

  // Announces that this rank has finished the call: `well`, or with an error.
  void finish(std::uint64_t sequence, bool well) noexcept;
  // Returns the number of the last call that `member` has finished.
  std::uint64_t finished_sequence(int member) const noexcept;
  // Returns whether `member` has finished the call without an error.
  bool finished_well(int member, std::uint64_t sequence) const noexcept;

  // --- Messages -------------------------------------------------------------------------------

  // Shows the other ranks of this host the message that this rank waits for. Empty: it waits for
  // none.
  void show_wait(std::string_view what) noexcept;
  // Returns the message that `member` waits for. Empty: it waits for none, or it is on another
  // host.
  std::string shown_wait(int member) const;

  // --- Deadlocks ------------------------------------------------------------------------------

  // For the search for deadlocks; see membership/failure/deadlock.h.
  //
  // Shows the other ranks of this host the call in which this rank is blocked, under a new number.
  // The number changes only when a call is shown or hidden.
  void show_blocking(const BlockingCall& call) noexcept;
  void hide_blocking() noexcept;
  struct ShownCall {
    std::uint64_t number = 0;
    BlockingCall call;
  };
  // Returns the call that `member` shows. Absent: it shows none.
  std::optional<ShownCall> blocking(int member) const noexcept;
  // Votes that a set of members is deadlocked. `hash` identifies the members and the numbers of
  // their calls.
  void vote(std::uint64_t hash) noexcept;
  std::uint64_t vote_of(int member) const noexcept;

  // --- Calls of GPUs ----------------------------------------------------------------------------

  // A call on GPUs goes on after its rank has announced it, and ranks run ahead of each other. So
  // calls are compared by their `index`: the number among a rank's calls on GPUs, from 1. Each rank
  // keeps its last kDeviceCalls. If two ranks announce calls with the same index and then look, at
  // least one of them sees the other's call.
  void announce_device(std::uint64_t index, const DeviceCall& call) noexcept;
  std::uint64_t device_calls(int member) const noexcept;
  DeviceCall device_call(int member, std::uint64_t index) const noexcept;
  // Announces that this rank has reached `step`, a number that only grows, and wakes the waiting
  // members. Members that share a GPU wait by this for each other, before and after their work on
  // the GPU.
  void come_to(std::uint64_t step) noexcept;
  // Returns whether all members have reached `step`.
  bool all_at(std::uint64_t step) const noexcept;

  // --- Refusals -------------------------------------------------------------------------------

  // Returns whether this rank may refuse call `sequence` now. If not, it has to wait: it would
  // overwrite a reason that other members have not read yet.
  bool may_refuse(std::uint64_t sequence) const noexcept;
  // Returns whether any member has refused the call. Records of old calls are overwritten, so it is
  // false for them.
  bool refused(std::uint64_t sequence) const noexcept;
  // Returns whether any member has ever refused a call.
  bool any_refusal() const noexcept;
  // Announces that this rank refuses call `sequence`, and why.
  void refuse(std::uint64_t sequence, engine::Kind kind, std::string_view reason) noexcept;
  // Returns the refusal of call `sequence` by `member`. Absent: it did not refuse it. A refusal is
  // heard before the call's record, so this has the call's kind while `find` has nothing.
  std::optional<CallRefusal> refusal(int member, std::uint64_t sequence) const;

  // Announces that this rank refuses its call of `rebuild` number `count`, and why.
  void refuse_rebuild(std::uint64_t count, std::string_view reason) noexcept;
  // Returns the last call of `rebuild` that `member` has refused. Absent: none.
  std::optional<RebuildRefusal> rebuild_refusal(int member) const;

  // --- The first failure ------------------------------------------------------------------------

  bool failed() const noexcept { return failure_word_->load(std::memory_order_acquire) != 0; }
  // Ends the group with `failure`, unless the group has a failure already. Wakes all waiting ranks.
  // Any thread.
  void fail(const Failure& failure) noexcept;
  // Returns the failure that ended the group. May only be called once `failed` is true. Waits for a
  // moment if a rank is still writing it.
  Failure failure() const;

  // Returns the group's block, for code that reads its other words. `entry` is null for a group on
  // one host.
  std::byte* block() const noexcept { return block_; }
  GroupEntry* entry() const noexcept { return entry_; }

 private:
  GroupMember& member(int rank) const noexcept;

  HostControl* host_;
  int rank_;
  int size_;
  std::span<const int> host_ranks_;
  GroupHeader* header_;
  const base::Atomic<std::uint32_t>* failure_word_;  // GroupHeader::failure
  std::byte* block_;
  GroupEntry* entry_;
  // Time of the last `ask`, in ns of the steady clock.
  mutable base::Atomic<std::int64_t> asked_{0};
};

}  // namespace hocket::control
