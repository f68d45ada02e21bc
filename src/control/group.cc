#include "control/group.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

namespace hocket::control {
namespace {

// Written by its rank as a seqlock of one word: `sequence` is 0 while the rest changes.
struct alignas(kCacheLine) SharedRecord {
  std::atomic<std::uint64_t> sequence{0};
  std::uint64_t fingerprint = 0;
  engine::Signature signature;
  bool refused = false;
};
static_assert(sizeof(SharedRecord) == kCacheLine);

struct alignas(kApart) SharedRefusal {
  std::atomic<std::uint64_t> sequence{0};
  engine::Kind kind = engine::Kind::kNone;
  char text[Failure::kTextBytes + 1] = {};
};

constexpr std::size_t kRefusals = 4;

void copy_text(char (&to)[Failure::kTextBytes + 1], std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), Failure::kTextBytes);
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

std::string read_text(const char (&from)[Failure::kTextBytes + 1]) {
  return std::string(from, strnlen(from, Failure::kTextBytes));
}

}  // namespace

struct alignas(kApart) GroupControl::Member {
  std::atomic<std::uint64_t> last{0};  // the newest number in records
  std::atomic<std::uint64_t> finished{0};
  alignas(kCacheLine) SharedRecord records[kRecords];
  SharedRefusal refusals[kRefusals];
  alignas(kApart) std::atomic<std::uint64_t> device_calls{0};  // released after their fingerprint
  std::atomic<std::uint64_t> device_fingerprints[kDeviceCalls];
};

std::size_t GroupControl::bytes(int size) {
  return sizeof(Header) + sizeof(Member) * static_cast<std::size_t>(size);
}

void GroupControl::format(std::byte* memory, int size) {
  new (memory) Header;
  for (int i = 0; i < size; ++i) {
    new (memory + sizeof(Header) + sizeof(Member) * static_cast<std::size_t>(i)) Member;
  }
}

GroupControl::GroupControl(HostControl& host,
                           std::byte* memory,
                           int rank,
                           std::span<const int> host_ranks)
    : host_(&host),
      rank_(rank),
      size_(static_cast<int>(host_ranks.size())),
      host_ranks_(host_ranks),
      header_(reinterpret_cast<Header*>(memory)),
      members_(memory + sizeof(Header)) {}

GroupControl::Member& GroupControl::member(int rank) const noexcept {
  return reinterpret_cast<Member*>(members_)[rank];
}

void GroupControl::record(std::uint64_t sequence,
                          std::uint64_t fingerprint,
                          const engine::Signature& signature,
                          bool refused) noexcept {
  Member& self = member(rank_);
  SharedRecord& record = self.records[sequence % kRecords];
  record.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  record.fingerprint = fingerprint;
  record.signature = signature;
  record.refused = refused;
  record.sequence.store(sequence, std::memory_order_release);
  self.last.store(sequence, std::memory_order_release);
}

std::optional<Record> GroupControl::find(int rank, std::uint64_t sequence) const noexcept {
  const SharedRecord& shared = member(rank).records[sequence % kRecords];
  if (sequence == 0 || shared.sequence.load(std::memory_order_acquire) != sequence) {
    return std::nullopt;
  }
  const Record record{.sequence = sequence,
                      .fingerprint = shared.fingerprint,
                      .signature = shared.signature,
                      .refused = shared.refused};
  std::atomic_thread_fence(std::memory_order_acquire);
  if (shared.sequence.load(std::memory_order_relaxed) != sequence) return std::nullopt;
  return record;
}

std::uint64_t GroupControl::last_sequence(int rank) const noexcept {
  return member(rank).last.load(std::memory_order_acquire);
}

void GroupControl::finish(std::uint64_t sequence) noexcept {
  member(rank_).finished.store(sequence, std::memory_order_release);
}

std::uint64_t GroupControl::finished_sequence(int rank) const noexcept {
  return member(rank).finished.load(std::memory_order_acquire);
}

std::optional<Record> GroupControl::last(int rank) const noexcept {
  return find(rank, last_sequence(rank));
}

void GroupControl::announce_device(std::uint64_t index, std::uint64_t fingerprint) noexcept {
  Member& self = member(rank_);
  self.device_fingerprints[index % kDeviceCalls].store(fingerprint, std::memory_order_relaxed);
  self.device_calls.store(index, std::memory_order_release);
}

std::uint64_t GroupControl::device_calls(int rank) const noexcept {
  return member(rank).device_calls.load(std::memory_order_acquire);
}

std::uint64_t GroupControl::device_fingerprint(int rank, std::uint64_t index) const noexcept {
  return member(rank).device_fingerprints[index % kDeviceCalls].load(std::memory_order_relaxed);
}

bool GroupControl::may_refuse(std::uint64_t sequence) const noexcept {
  for (int i = 0; i < size_; ++i) {
    if (i != rank_ && last_sequence(i) + kRefusals <= sequence &&
        host_->state(host_rank(i)) == RankState::kAlive) {
      return false;
    }
  }
  return true;
}

bool GroupControl::refused(std::uint64_t sequence) const noexcept {
  for (int i = 0; i < size_; ++i) {
    const auto record = find(i, sequence);
    if (record && record->refused) return true;
  }
  return false;
}

bool GroupControl::any_refusal() const noexcept {
  for (int i = 0; i < size_; ++i) {
    for (const SharedRefusal& refusal : member(i).refusals) {
      if (refusal.sequence.load(std::memory_order_acquire) != 0) return true;
    }
  }
  return false;
}

void GroupControl::refuse(std::uint64_t sequence,
                          engine::Kind kind,
                          std::string_view reason) noexcept {
  SharedRefusal& refusal = member(rank_).refusals[sequence % kRefusals];
  refusal.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  refusal.kind = kind;
  copy_text(refusal.text, reason);
  refusal.sequence.store(sequence, std::memory_order_release);
  record(sequence, 0, {.kind = kind}, true);
  finish(sequence);
  ring_peers();
}

std::optional<std::string> GroupControl::refusal(int rank, std::uint64_t sequence) const {
  const SharedRefusal& refusal = member(rank).refusals[sequence % kRefusals];
  if (refusal.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
  return read_text(refusal.text);
}

void GroupControl::fail(const Failure& failure) noexcept {
  std::uint32_t expected = kNone;
  if (!header_->failure.compare_exchange_strong(
          expected, kBeingWritten, std::memory_order_acq_rel)) {
    return;
  }
  header_->code = failure.code;
  header_->reporter = failure.reporter;
  header_->culprit = failure.culprit;
  header_->sequence = failure.sequence;
  header_->missing = failure.missing;
  header_->signature = failure.signature;
  header_->other = failure.other;
  copy_text(header_->text, failure.text);
  header_->failure.store(kWritten, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < size_; ++i) host_->ring(host_rank(i));
}

Failure GroupControl::failure() const {
  // Its writer may die in the middle; what it wanted to say is lost then, that it failed is not.
  for (int tries = 0; header_->failure.load(std::memory_order_acquire) != kWritten; ++tries) {
    if (tries == 1000) return {.text = "a rank ended while it was reporting a failure"};
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000};
    nanosleep(&pause, nullptr);
  }
  return {.code = header_->code,
          .reporter = header_->reporter,
          .culprit = header_->culprit,
          .sequence = header_->sequence,
          .missing = header_->missing,
          .signature = header_->signature,
          .other = header_->other,
          .text = read_text(header_->text)};
}

}  // namespace hocket::control
