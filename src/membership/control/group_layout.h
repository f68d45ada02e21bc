// The layout of a group's block:
//
//   GroupHeader | GroupMember[0] | GroupMember[1] | ...
//
// Each member on this host writes its own GroupMember. The network writes those of members on other
// hosts. Only files of this folder include this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/atomic.h"
#include "foundation/base/short_text.h"
#include "membership/control/group.h"

namespace hocket::control {

inline constexpr std::size_t kRefusals = 4;
inline constexpr std::size_t kWaitTextBytes = 120;

enum FailureState : std::uint32_t { kNoFailure, kFailureBeingWritten, kFailureWritten };

using FailureText = base::ShortSentence<Failure::kTextBytes>;

struct GroupHeader {
  alignas(kApart) base::Atomic<std::uint32_t> failure{kNoFailure};
  base::NonAtomic<Cause> cause{};
  base::NonAtomic<std::int32_t> reporter = 0;
  base::NonAtomic<std::int32_t> culprit = 0;
  base::NonAtomic<std::uint64_t> sequence = 0;
  base::NonAtomic<std::uint64_t> missing = 0;
  base::NonAtomic<engine::Signature> signature;
  base::NonAtomic<engine::Signature> other;
  FailureText text;
  std::uint32_t size = 0;  // members
  // The agreement on the members that go on; see succession.h.
  alignas(kApart) base::Atomic<std::uint64_t> successor{0};  // offset of the next epoch's block
  base::Atomic<std::uint32_t> entry{0};  // the block's entry, from 1; see ListedGroups::enlist_once
  base::Atomic<std::uint32_t> guard{0};  // its holder's place plus 1; 0: free
  base::Atomic<std::uint32_t> decided{0};  // 1: `chosen[2]` has the decision of the hosts
  base::Atomic<std::uint64_t> promised{0};
  base::Atomic<std::uint64_t> accepted{0};  // ballot * 2 + index in `chosen`: 0 or 1

  // Returns the failure. May only be called once `failure` is kFailureWritten.
  Failure what_failed() const {
    return {.cause = cause,
            .reporter = reporter,
            .culprit = culprit,
            .sequence = sequence,
            .missing = missing,
            .signature = signature,
            .other = other,
            .text = std::string(text.view())};
  }
};

// The number of data that is being written.
inline constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};

// The record of a call. Its rank writes it. For a rank of another host, a process of this host
// writes it after claiming it. It is a sequence lock of one word: `sequence` is kBeingWritten while
// the rest changes. 0: never written.
struct alignas(kCacheLine) SharedRecord {
  base::Atomic<std::uint64_t> sequence{0};
  base::Torn<std::uint64_t> fingerprint = 0;
  base::Torn<engine::Signature> signature;
  base::Torn<std::uint8_t> refused = 0;  // no bool: a process outside the job may read any byte

  void write(std::uint64_t number,
             std::uint64_t its_fingerprint,
             const engine::Signature& its_signature,
             bool is_refused) noexcept {
    sequence.store(kBeingWritten, std::memory_order_relaxed);
    base::thread_fence(std::memory_order_release);
    fingerprint = its_fingerprint;
    signature = its_signature;
    refused = is_refused ? 1 : 0;
    sequence.store(number, std::memory_order_release);
  }
  // Returns the record of call `number`. Absent if it is the record of another call, or if it
  // changes during the read.
  std::optional<Record> read(std::uint64_t number) const noexcept {
    if (sequence.load(std::memory_order_acquire) != number) return std::nullopt;
    const Record record{.sequence = number,
                        .fingerprint = fingerprint,
                        .signature = signature,
                        .refused = refused != 0};
    base::thread_fence(std::memory_order_acquire);
    if (sequence.load(std::memory_order_relaxed) != number) return std::nullopt;
    return record;
  }
};
static_assert(sizeof(SharedRecord) == kCacheLine);

// A call that its rank has refused. It is written and read like SharedRecord.
struct alignas(kApart) SharedRefusal {
  base::Atomic<std::uint64_t> sequence{0};
  base::Torn<engine::Kind> kind = engine::Kind::kNone;
  base::Torn<FailureText> text;

  void write(std::uint64_t number, engine::Kind its_kind, std::string_view reason) noexcept {
    sequence.store(kBeingWritten, std::memory_order_relaxed);
    base::thread_fence(std::memory_order_release);
    kind = its_kind;
    text = reason;
    sequence.store(number, std::memory_order_release);
  }
  std::optional<CallRefusal> read(std::uint64_t number) const {
    if (number == 0 || number == kBeingWritten) return std::nullopt;
    if (sequence.load(std::memory_order_acquire) != number) return std::nullopt;
    CallRefusal refusal{.kind = kind, .reason = std::string(text.view())};
    base::thread_fence(std::memory_order_acquire);
    if (sequence.load(std::memory_order_relaxed) != number) return std::nullopt;
    return refusal;
  }
};

// A call of `rebuild` that its rank has refused. It is written and read like SharedRecord, with
// `count` as its number. `after` is the number of the rank's last other call before it.
struct alignas(kApart) SharedRebuildRefusal {
  base::Atomic<std::uint64_t> count{0};
  base::Torn<std::uint64_t> after = 0;
  base::Torn<FailureText> text;

  void write(std::uint64_t number, std::uint64_t last_call, std::string_view reason) noexcept {
    count.store(kBeingWritten, std::memory_order_relaxed);
    base::thread_fence(std::memory_order_release);
    after = last_call;
    text = reason;
    count.store(number, std::memory_order_release);
  }
  std::optional<RebuildRefusal> read() const {
    const std::uint64_t number = count.load(std::memory_order_acquire);
    if (number == 0 || number == kBeingWritten) return std::nullopt;
    RebuildRefusal refusal{.count = number, .after = after, .reason = std::string(text.view())};
    base::thread_fence(std::memory_order_acquire);
    if (count.load(std::memory_order_relaxed) != number) return std::nullopt;
    return refusal;
  }
};

// The message that a rank waits for. It is a sequence lock: `version` is odd while the text
// changes.
struct alignas(kApart) SharedWait {
  base::Atomic<std::uint32_t> version{0};
  base::ShortSentence<kWaitTextBytes> text;

  void write(std::string_view what) noexcept {
    const std::uint32_t before = version.load(std::memory_order_relaxed);
    version.store(before + 1, std::memory_order_relaxed);
    base::thread_fence(std::memory_order_release);
    text = what;
    version.store(before + 2, std::memory_order_release);
  }
  // Returns the text. Empty if there is none, or if it changes during the read.
  std::string read() const {
    const std::uint32_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) return {};
    std::string what(text.view());
    base::thread_fence(std::memory_order_acquire);
    return version.load(std::memory_order_relaxed) == before ? what : std::string();
  }
};

// The call in which a rank is blocked. It is a sequence lock: `number` is odd while a call is
// shown, and even while none is shown or the call changes. A vote may belong to an earlier call;
// its hash contains the numbers of the calls.
struct alignas(kApart) SharedBlockingCall {
  base::Atomic<std::uint64_t> number{0};
  base::Torn<BlockingCall> call;
  base::Atomic<std::uint64_t> vote{0};

  void show(const BlockingCall& its) noexcept {
    hide();
    base::thread_fence(std::memory_order_release);
    call = its;
    number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void hide() noexcept {
    const std::uint64_t before = number.load(std::memory_order_relaxed);
    if (before % 2 != 0) number.store(before + 1, std::memory_order_release);
  }
  std::optional<GroupControl::ShownCall> read() const noexcept {
    const std::uint64_t before = number.load(std::memory_order_acquire);
    if (before % 2 == 0) return std::nullopt;
    const GroupControl::ShownCall shown{.number = before, .call = call};
    base::thread_fence(std::memory_order_acquire);
    if (number.load(std::memory_order_relaxed) != before) return std::nullopt;
    return shown;
  }
};

// Combines the number of a finished call and its success into one number, which only grows.
constexpr std::uint64_t finished_mark(std::uint64_t sequence, bool well) noexcept {
  return sequence << 1 | (well ? 1 : 0);
}

struct SharedDeviceCall {
  base::Atomic<std::uint64_t> sequence{0}, fingerprint{0};
};

struct alignas(kApart) GroupMember {
  base::Atomic<std::uint64_t> last{0};        // the newest number in `records`
  base::Atomic<std::uint64_t> finished{0};    // as finished_mark
  std::int32_t place = 0;                     // the member's line on this host; see HostView
  base::Atomic<std::uint32_t> come{0};        // bits of Come, see succession.h
  base::Atomic<std::uint64_t> come_turn{0};   // the turn of its last call of `rebuild`
  base::Atomic<std::uint8_t> chosen[3] = {};  // see GroupHeader::accepted and GroupHeader::decided
  alignas(kCacheLine) SharedRecord records[kRecords];
  SharedRefusal refusals[kRefusals];
  SharedRebuildRefusal rebuild_refusal;
  SharedWait wait;
  SharedBlockingCall blocking;
  // Stored after the records, with release order.
  alignas(kApart) base::Atomic<std::uint64_t> device_calls{0};
  SharedDeviceCall device_records[kDeviceCalls];
  alignas(kApart) base::Atomic<std::uint64_t> device_step{0};  // see GroupControl::come_to
};

// Returns a member of the group whose block is at `block`.
inline GroupMember& member_at(std::byte* block, int index) noexcept {
  return reinterpret_cast<GroupMember*>(block + sizeof(GroupHeader))[index];
}

}  // namespace hocket::control
