// The layout of a group's block. Its members on this host write it, and the network writes for
// members on other hosts. Included by control's own files only.
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
  base::Plain<Cause> cause{};
  base::Plain<std::int32_t> reporter = 0;
  base::Plain<std::int32_t> culprit = 0;
  base::Plain<std::uint64_t> sequence = 0;
  base::Plain<std::uint64_t> missing = 0;
  base::Plain<engine::Signature> signature;
  base::Plain<engine::Signature> other;
  FailureText text;
  std::uint32_t size = 0;  // members
  // The agreement on the members that go on; see succession.h.
  alignas(kApart) base::Atomic<std::uint64_t> successor{0};  // offset of the next epoch's block
  base::Atomic<std::uint32_t> entry{0};    // of this block, from 1; see HostControl::enlist_once
  base::Atomic<std::uint32_t> guard{0};    // the holder's place, from 1
  base::Atomic<std::uint32_t> decided{0};  // 1: `chosen[2]` holds the decision of the hosts
  base::Atomic<std::uint64_t> promised{0};
  base::Atomic<std::uint64_t> accepted{0};  // ballot * 2 + which of `chosen`

  // Once `failure` is kFailureWritten.
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

// Stands for a number while the numbered data changes.
inline constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};

// Written by its rank, or by a process that has claimed the record of another host's rank. A
// seqlock of one word: `sequence` is kBeingWritten while the rest changes; 0: never written.
struct alignas(kCacheLine) SharedRecord {
  base::Atomic<std::uint64_t> sequence{0};
  base::Torn<std::uint64_t> fingerprint = 0;
  base::Torn<engine::Signature> signature;
  base::Torn<std::uint8_t> refused = 0;  // no bool: an onlooker may read any byte here

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
  // Absent where it is another call's, or becomes another's meanwhile.
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

// The same.
struct alignas(kApart) SharedRefusal {
  struct Refusal {
    engine::Kind kind;
    std::string text;
  };
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
  std::optional<Refusal> read(std::uint64_t number) const {
    if (number == 0 || number == kBeingWritten) return std::nullopt;
    if (sequence.load(std::memory_order_acquire) != number) return std::nullopt;
    Refusal refusal{.kind = kind, .text = std::string(text.view())};
    base::thread_fence(std::memory_order_acquire);
    if (sequence.load(std::memory_order_relaxed) != number) return std::nullopt;
    return refusal;
  }
};

// A call of rebuild that its rank has refused; the same. `after`: the number of the rank's last
// call before it.
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

// The message that a rank waits for; the same. `version` is odd while the text changes.
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
  // Empty: no message, or it cannot be read just now.
  std::string read() const {
    const std::uint32_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) return {};
    std::string what(text.view());
    base::thread_fence(std::memory_order_acquire);
    return version.load(std::memory_order_relaxed) == before ? what : std::string();
  }
};

// The call that a rank blocks in; the same. `number` is odd while a call is shown. A vote may be of
// an earlier call: its hash holds the numbers that it is for.
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

// A finished call's number and how it ended, as one number that only grows.
constexpr std::uint64_t finished_mark(std::uint64_t sequence, bool well) noexcept {
  return sequence << 1 | (well ? 1 : 0);
}

struct SharedDeviceCall {
  base::Atomic<std::uint64_t> sequence{0}, fingerprint{0};
};

struct alignas(kApart) GroupMember {
  base::Atomic<std::uint64_t> last{0};      // the newest number in records
  base::Atomic<std::uint64_t> finished{0};  // as finished_mark
  std::int32_t place = 0;                   // on this host; see HostControl
  base::Atomic<std::uint32_t> come{0};
  base::Atomic<std::uint64_t> come_turn{0};
  base::Atomic<std::uint8_t> chosen[3] = {};  // see GroupHeader
  alignas(kCacheLine) SharedRecord records[kRecords];
  SharedRefusal refusals[kRefusals];
  SharedRebuildRefusal rebuild_refusal;
  SharedWait wait;
  SharedBlockingCall blocking;
  alignas(kApart) base::Atomic<std::uint64_t> device_calls{0};  // released after what they are
  SharedDeviceCall device_records[kDeviceCalls];
  alignas(kApart) base::Atomic<std::uint64_t> device_step{0};  // see GroupControl::come_to
};

// `block`: a GroupHeader, and its members behind it.
inline GroupMember& member_at(std::byte* block, int index) noexcept {
  return reinterpret_cast<GroupMember*>(block + sizeof(GroupHeader))[index];
}

}  // namespace hocket::control
