#include "membership/control/group.h"

#include <chrono>
#include <new>

#include "foundation/base/poll.h"
#include "membership/control/group_layout.h"

namespace hocket::control {

namespace {
// The time that a rank gets to write a failure. It is longer than the pauses of a container that
// has used up its share of the processors.
constexpr auto kForWriting = std::chrono::seconds(2);
}  // namespace

std::size_t GroupControl::bytes(int size) {
  return sizeof(GroupHeader) + sizeof(GroupMember) * static_cast<std::size_t>(size);
}

void GroupControl::format(std::byte* memory, std::span<const int> places) {
  (new (memory) GroupHeader)->size = static_cast<std::uint32_t>(places.size());
  std::byte* at = memory + sizeof(GroupHeader);
  for (const int place : places) {
    (new (at) GroupMember)->place = place;
    at += sizeof(GroupMember);
  }
}

GroupControl::GroupControl(HostControl& host,
                           std::byte* memory,
                           int rank,
                           std::span<const int> host_ranks,
                           GroupEntry* entry)
    : host_(&host),
      rank_(rank),
      size_(static_cast<int>(host_ranks.size())),
      host_ranks_(host_ranks),
      header_(reinterpret_cast<GroupHeader*>(memory)),
      failure_word_(&header_->failure),
      block_(memory),
      entry_(entry) {}

GroupMember& GroupControl::member(int rank) const noexcept { return member_at(block_, rank); }

void GroupControl::ask(std::chrono::milliseconds pause) const noexcept {
  if (entry_ == nullptr) return;
  const std::int64_t now =
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  std::int64_t last = asked_.load(std::memory_order_relaxed);
  if (now - last < pause / std::chrono::nanoseconds(1)) return;
  if (asked_.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
    host_->groups.tell_network(*entry_, GroupEntry::kAsked);
  }
}

void GroupControl::record(std::uint64_t sequence,
                          std::uint64_t fingerprint,
                          const engine::Signature& signature,
                          bool refused) noexcept {
  GroupMember& self = member(rank_);
  self.records[sequence % kRecords].write(sequence, fingerprint, signature, refused);
  self.last.store(sequence, std::memory_order_release);
}

std::optional<Record> GroupControl::find(int rank, std::uint64_t sequence) const noexcept {
  if (sequence == 0) return std::nullopt;
  return member(rank).records[sequence % kRecords].read(sequence);
}

std::uint64_t GroupControl::last_sequence(int rank) const noexcept {
  return member(rank).last.load(std::memory_order_acquire);
}

void GroupControl::finish(std::uint64_t sequence, bool well) noexcept {
  member(rank_).finished.store(finished_mark(sequence, well), std::memory_order_release);
}

std::uint64_t GroupControl::finished_sequence(int rank) const noexcept {
  return member(rank).finished.load(std::memory_order_acquire) >> 1;
}

bool GroupControl::finished_well(int rank, std::uint64_t sequence) const noexcept {
  return member(rank).finished.load(std::memory_order_acquire) >= finished_mark(sequence, true);
}

void GroupControl::show_wait(std::string_view what) noexcept { member(rank_).wait.write(what); }

std::string GroupControl::shown_wait(int rank) const { return member(rank).wait.read(); }

void GroupControl::show_blocking(const BlockingCall& call) noexcept {
  member(rank_).blocking.show(call);
}

void GroupControl::hide_blocking() noexcept { member(rank_).blocking.hide(); }

std::optional<GroupControl::ShownCall> GroupControl::blocking(int rank) const noexcept {
  return member(rank).blocking.read();
}

void GroupControl::vote(std::uint64_t hash) noexcept {
  member(rank_).blocking.vote.store(hash, std::memory_order_release);
}

std::uint64_t GroupControl::vote_of(int rank) const noexcept {
  return member(rank).blocking.vote.load(std::memory_order_acquire);
}

std::optional<Record> GroupControl::last(int rank) const noexcept {
  return find(rank, last_sequence(rank));
}

void GroupControl::announce_device(std::uint64_t index, const DeviceCall& call) noexcept {
  GroupMember& self = member(rank_);
  SharedDeviceCall& record = self.device_records[index % kDeviceCalls];
  record.sequence.store(call.sequence, std::memory_order_relaxed);
  record.fingerprint.store(call.fingerprint, std::memory_order_relaxed);
  self.device_calls.store(index, std::memory_order_release);
  base::thread_fence(std::memory_order_seq_cst);
}

std::uint64_t GroupControl::device_calls(int rank) const noexcept {
  return member(rank).device_calls.load(std::memory_order_acquire);
}

DeviceCall GroupControl::device_call(int rank, std::uint64_t index) const noexcept {
  const SharedDeviceCall& record = member(rank).device_records[index % kDeviceCalls];
  return {.sequence = record.sequence.load(std::memory_order_relaxed),
          .fingerprint = record.fingerprint.load(std::memory_order_relaxed)};
}

void GroupControl::come_to(std::uint64_t step) noexcept {
  member(rank_).device_step.store(step, std::memory_order_release);
  ring_peers();
}

bool GroupControl::all_at(std::uint64_t step) const noexcept {
  for (int i = 0; i < size_; ++i) {
    if (member(i).device_step.load(std::memory_order_acquire) < step) return false;
  }
  return true;
}

bool GroupControl::may_refuse(std::uint64_t sequence) const noexcept {
  for (int i = 0; i < size_; ++i) {
    if (i != rank_ && last_sequence(i) + kRefusals <= sequence &&
        host_->liveness.state(host_rank(i)) == RankState::kAlive) {
      if (!is_here(i)) ask();
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
  member(rank_).refusals[sequence % kRefusals].write(sequence, kind, reason);
  record(sequence, 0, {.kind = kind}, true);
  finish(sequence, false);
  ring_peers();
  if (entry_ != nullptr) host_->groups.tell_network(*entry_, GroupEntry::kRefused);
}

std::optional<CallRefusal> GroupControl::refusal(int rank, std::uint64_t sequence) const {
  return member(rank).refusals[sequence % kRefusals].read(sequence);
}

void GroupControl::refuse_rebuild(std::uint64_t count, std::string_view reason) noexcept {
  member(rank_).rebuild_refusal.write(count, last_sequence(rank_), reason);
  ring_peers();
  if (entry_ != nullptr) host_->groups.tell_network(*entry_, GroupEntry::kCome);
}

std::optional<RebuildRefusal> GroupControl::rebuild_refusal(int rank) const {
  return member(rank).rebuild_refusal.read();
}

void GroupControl::fail(const Failure& failure) noexcept {
  std::uint32_t expected = kNoFailure;
  if (!header_->failure.compare_exchange_strong(
          expected, kFailureBeingWritten, std::memory_order_acq_rel)) {
    return;
  }
  header_->cause = failure.cause;
  header_->reporter = failure.reporter;
  header_->culprit = failure.culprit;
  header_->sequence = failure.sequence;
  header_->missing = failure.missing;
  header_->signature = failure.signature;
  header_->other = failure.other;
  header_->text = failure.text;
  header_->failure.store(kFailureWritten, std::memory_order_release);
  base::thread_fence(std::memory_order_seq_cst);
  for (int i = 0; i < size_; ++i) host_->doorbells.ring(host_rank(i));
  if (entry_ != nullptr) host_->groups.tell_network(*entry_, GroupEntry::kFailed);
}

Failure GroupControl::failure() const {
  // The rank that writes the failure may die meanwhile. The group has then failed too, but the
  // cause stays unknown.
  const auto is_written = [this] {
    return header_->failure.load(std::memory_order_acquire) == kFailureWritten;
  };
  const bool is_whole =
      base::poll_until(is_written, base::Deadline::in(kForWriting), std::chrono::microseconds(10));
  return is_whole ? header_->what_failed() : Failure{};
}

}  // namespace hocket::control
