// The control data of one group, which its ranks share: each rank's current call, the cause of the
// group's end, and refusals.
//
// Lives in a block of the host's segment. Everything a peer writes is copied once and then checked.
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
#include "membership/control/host.h"

namespace hocket::control {

// A call as its rank announced it. A value.
struct Record {
  std::uint64_t sequence = 0;
  std::uint64_t fingerprint = 0;
  engine::Signature signature;
  bool refused = false;
};

// The failure that ended a group: the first one, the same for every rank. A value.
struct Failure {
  Cause cause = Cause::kUnknown;
  int reporter = -1;            // group rank
  int culprit = -1;             // group rank that died, aborted, differs
  std::uint64_t sequence = 0;   // the call it happened in
  std::uint64_t missing = 0;    // kLate: bit i: rank i (of the first 64) had not come
  engine::Signature signature;  // the reporter's call
  engine::Signature other;      // kDifferent, kPartsDiffer: the culprit's call
  // Text for people beside the cause, by which no code decides: the reason of an abort or a
  // refusal, or how long a rank waited. At most kTextBytes.
  std::string text;
  static constexpr std::size_t kTextBytes = 200;

  ErrorCode code() const noexcept { return code_of(cause); }
};

// A call of rebuild whose arguments a rank has refused. A value.
struct RebuildRefusal {
  std::uint64_t count = 0;  // which of its refused calls, from 1; see rebuild_turns.h
  std::uint64_t after = 0;  // the number of the rank's last call before it
  std::string reason;
};

// A blocking call of a rank, which starts nothing else on the communicator before it ends. A value.
struct BlockingCall {
  static constexpr std::size_t kPeers = 4;
  std::uint64_t sequence = 0;  // of a collective; 0: messages
  // Messages: each of these members (or any member, engine::kAnyPeer) has to do something.
  std::array<std::int32_t, kPeers> peers{};
  std::uint32_t peer_count = 0;
};

inline constexpr std::size_t kRecords = 32;
inline constexpr std::size_t kDeviceCalls = 256;
// A call of GPUs: its number, and the fingerprint of all calls up to it. A value.
struct DeviceCall {
  std::uint64_t sequence = 0, fingerprint = 0;
  bool operator==(const DeviceCall&) const = default;
};
// Between two questions to the other hosts.
inline constexpr std::chrono::milliseconds kAskPause{20};

struct GroupHeader;
struct GroupMember;
class Succession;

// One rank's view of its group's block. A resource. It does not own the block, which its maker
// releases. For one thread at a time, except for `fail` and `failed`.
class GroupControl {
 public:
  static std::size_t bytes(int size);
  // Writes an empty group into zeroed memory. `places` has each member's place.
  static void format(std::byte* memory, std::span<const int> places);
  // `host_ranks` has the place of each member, and outlives this. `entry` is set for a group with
  // members on several hosts.
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
  // True if a member of this host was last seen on this rank's processor: HostControl::was_beside.
  bool was_beside(int member) const noexcept { return host_->was_beside(host_rank(member)); }
  // True if there are members on other hosts. Their announcements arrive here with a delay, or soon
  // after a request.
  bool spans() const noexcept { return entry_ != nullptr; }
  // Requests their announcements. Cheap if that was done within `pause`.
  void ask(std::chrono::milliseconds pause = kAskPause) const noexcept;
  void ring(int member) noexcept { host_->ring(host_rank(member)); }
  // Wakes all members but this rank.
  void ring_peers() noexcept {
    os::light_fence();
    for (int i = 0; i < size_; ++i) {
      if (i != rank_) host_->ring(host_rank(i));
    }
  }

  // --- Records --------------------------------------------------------------------------------
  // Announces this rank's next call.
  void record(std::uint64_t sequence,
              std::uint64_t fingerprint,
              const engine::Signature& signature,
              bool refused = false) noexcept;
  // Returns the record of `member` with this number. Absent: the member has not come so far, or is
  // so far ahead that it has overwritten the record.
  std::optional<Record> find(int member, std::uint64_t sequence) const noexcept;
  // The number of the last call that `member` has announced.
  std::uint64_t last_sequence(int member) const noexcept;
  std::optional<Record> last(int member) const noexcept;

  // Announces that this rank has finished the call, well or not.
  void finish(std::uint64_t sequence, bool well) noexcept;
  // The number of the last call that `member` has finished.
  std::uint64_t finished_sequence(int member) const noexcept;
  // True if `member` has finished the call without an error.
  bool finished_well(int member, std::uint64_t sequence) const noexcept;

  // --- Messages -------------------------------------------------------------------------------
  // Shows the other ranks of this host which message this rank waits for; empty: none.
  void show_wait(std::string_view what) noexcept;
  // The message that `member` waits for; empty: none, or it is on another host.
  std::string shown_wait(int member) const;

  // --- Deadlocks: see membership/failure/deadlock.h
  // ----------------------------------------------------------- Shows the other ranks of this host
  // the call in which this rank blocks, and gives it a new number. The number stays the same until
  // a call is shown again or hidden.
  void show_blocking(const BlockingCall& call) noexcept;
  void hide_blocking() noexcept;
  struct ShownCall {
    std::uint64_t number = 0;
    BlockingCall call;
  };
  // Absent: `member` shows none.
  std::optional<ShownCall> blocking(int member) const noexcept;
  // A rank votes for a set of members and the numbers of their calls, by a hash of both.
  void vote(std::uint64_t hash) noexcept;
  std::uint64_t vote_of(int member) const noexcept;

  // --- Calls of GPUs ----------------------------------------------------------------------------
  // They continue after their rank has announced them, and ranks run ahead of each other. So the
  // `index`th calls of GPUs, from 1, are compared; each rank keeps the last kDeviceCalls. If two
  // ranks announce calls of the same index and then look, at least one sees the other's.
  void announce_device(std::uint64_t index, const DeviceCall& call) noexcept;
  std::uint64_t device_calls(int member) const noexcept;
  DeviceCall device_call(int member, std::uint64_t index) const noexcept;
  // Members that share a GPU wait for each other around their work on it. Announces that this rank
  // has reached `step`, a number that only rises, and wakes the waiters.
  void come_to(std::uint64_t step) noexcept;
  // True if all members have reached that step.
  bool all_at(std::uint64_t step) const noexcept;

  // --- Refusals -------------------------------------------------------------------------------
  // True if this rank may refuse call `sequence` now. False: it has to wait, or it would overwrite
  // a reason that others have not read yet.
  bool may_refuse(std::uint64_t sequence) const noexcept;
  // True if any member has refused the call, as far back as records go.
  bool refused(std::uint64_t sequence) const noexcept;
  // True if any member has ever refused a call.
  bool any_refusal() const noexcept;
  // Announces call `sequence` as refused by this rank, with the reason.
  void refuse(std::uint64_t sequence, engine::Kind kind, std::string_view reason) noexcept;
  // The reason for which `member` refused call `sequence`; absent if it did not.
  std::optional<std::string> refusal(int member, std::uint64_t sequence) const;

  // Announces that this rank refuses a call of rebuild.
  void refuse_rebuild(std::uint64_t count, std::string_view reason) noexcept;
  // The last call of rebuild that `member` has refused, if any.
  std::optional<RebuildRefusal> rebuild_refusal(int member) const;

  // --- The first failure ------------------------------------------------------------------------
  bool failed() const noexcept { return failure_word_->load(std::memory_order_acquire) != 0; }
  // Makes `failure` the group's, unless it has one; wakes all waiters. Any thread.
  void fail(const Failure& failure) noexcept;
  // The failure that ended the group. Call it only once `failed` is true.
  Failure failure() const;

  // The group's block, for code that reads its other words. `entry` is null for a group on one
  // host.
  std::byte* block() const noexcept { return block_; }
  GroupEntry* entry() const noexcept { return entry_; }

 private:
  GroupMember& member(int rank) const noexcept;

  HostControl* host_;
  int rank_;
  int size_;
  std::span<const int> host_ranks_;
  GroupHeader* header_;
  const base::Atomic<std::uint32_t>* failure_word_;  // of the header
  std::byte* block_;
  GroupEntry* entry_;
  mutable base::Atomic<std::int64_t> asked_{0};  // when, ns of the steady clock
};

}  // namespace hocket::control
