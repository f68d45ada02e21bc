#include "membership/control/mirror.h"

#include <algorithm>

#include "membership/control/group_layout.h"

namespace hocket::control {
namespace {

// Raises a word to `value`, unless it is already higher. Several processes may do so at the same
// time.
void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
  std::uint64_t before = word.load(std::memory_order_relaxed);
  while (before < value &&
         !word.compare_exchange_weak(
             before, value, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

// Claims data for writing under `number`. Returns false if the data is already as new, or if
// another process is writing it. Data that is missed in this way is requested again. If a process
// is killed in the few instructions between claim and write, the data stays unreadable.
bool claim(std::atomic<std::uint64_t>& sequence, std::uint64_t number) noexcept {
  std::uint64_t before = sequence.load(std::memory_order_relaxed);
  while (before < number) {  // kBeingWritten is larger than any number
    if (sequence.compare_exchange_weak(before, kBeingWritten, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<GroupMirror> GroupMirror::of(HostControl& host, const GroupEntry& entry) {
  const std::uint64_t id = entry.id.load(std::memory_order_acquire);
  const auto size = static_cast<int>(entry.size.load(std::memory_order_relaxed));
  if (id == 0 || size < 1 || size > host.places()) return std::nullopt;
  const std::uint64_t block = entry.block.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with ListedGroups::take_entry
  if (entry.id.load(std::memory_order_relaxed) != id) return std::nullopt;
  return GroupMirror(host, id, host.memory.at(block, GroupControl::bytes(size)), size);
}

bool GroupMirror::is_listed(const GroupEntry& entry) const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return entry.id.load(std::memory_order_relaxed) == id_;
}

GroupMember& GroupMirror::at(int index) const noexcept { return member_at(memory_, index); }

int GroupMirror::place(int member) const noexcept { return at(member).place; }

bool GroupMirror::is_remote(int index) const noexcept {
  return index >= 0 && index < size_ && place(index) >= host_->ranks() &&
         place(index) < host_->places();
}

bool GroupMirror::is_of(int index, int host) const noexcept {
  return is_remote(index) && host_->remote_hosts.host_of(place(index)) == host;
}

MemberFact GroupMirror::member(int index) const {
  const GroupMember& from = at(index);
  // Read the number of the last finished call first. The fact then has the records of all calls up
  // to it.
  MemberFact fact{
      .group = id_, .member = index, .finished = from.finished.load(std::memory_order_acquire)};
  fact.last = from.last.load(std::memory_order_acquire);
  const std::uint64_t count = std::min<std::uint64_t>(fact.last, kRecords);
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::uint64_t sequence = fact.last - count + i;
    if (const auto record = from.records[sequence % kRecords].read(sequence)) {
      fact.records.push_back(*record);
    }
  }
  return fact;
}

std::vector<RefusalFact> GroupMirror::refusals(int index) const {
  std::vector<RefusalFact> facts;
  for (const SharedRefusal& shared : at(index).refusals) {
    const std::uint64_t sequence = shared.sequence.load(std::memory_order_acquire);
    if (auto refusal = shared.read(sequence)) {
      facts.push_back({.group = id_,
                       .member = index,
                       .sequence = sequence,
                       .kind = refusal->kind,
                       .text = std::move(refusal->reason)});
    }
  }
  return facts;
}

std::optional<RebuildRefusalFact> GroupMirror::rebuild_refusal(int index) const {
  auto refusal = at(index).rebuild_refusal.read();
  if (!refusal) return std::nullopt;
  return RebuildRefusalFact{.group = id_, .member = index, .refusal = std::move(*refusal)};
}

std::optional<FailureFact> GroupMirror::failure() const {
  const auto& header = *reinterpret_cast<const GroupHeader*>(memory_);
  if (header.failure.load(std::memory_order_acquire) != kFailureWritten) return std::nullopt;
  return FailureFact{.group = id_, .failure = header.what_failed()};
}

void GroupMirror::write(const MemberFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  GroupMember& to = at(fact.member);
  for (const Record& record : fact.records) {
    SharedRecord& shared = to.records[record.sequence % kRecords];
    if (!claim(shared.sequence, record.sequence)) continue;
    shared.write(record.sequence, record.fingerprint, record.signature, record.refused);
  }
  raise_to(to.last, fact.last);
  raise_to(to.finished, fact.finished);
  wake();
}

void GroupMirror::write(const RefusalFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  SharedRefusal& shared = at(fact.member).refusals[fact.sequence % kRefusals];
  if (!claim(shared.sequence, fact.sequence)) return;
  shared.write(fact.sequence, fact.kind, fact.text);
  wake();
}

void GroupMirror::write(const ComeFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  if (succession(nullptr).note(fact.member, fact.how, fact.turn)) wake();
}

void GroupMirror::write(const RebuildRefusalFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  SharedRebuildRefusal& shared = at(fact.member).rebuild_refusal;
  if (!claim(shared.count, fact.refusal.count)) return;
  shared.write(fact.refusal.count, fact.refusal.after, fact.refusal.reason);
  wake();
}

void GroupMirror::write(const FailureFact& fact, GroupEntry& entry) {
  const auto is_member = [this](int rank) { return rank >= -1 && rank < size_; };
  if (!is_member(fact.failure.culprit) || !is_member(fact.failure.reporter)) return;
  if (size_ < 64 && fact.failure.missing >> size_ != 0) return;
  std::vector<int> places;
  for (int i = 0; i < size_; ++i) places.push_back(place(i));
  GroupControl(*host_, memory_, -1, places, &entry).fail(fact.failure);
}

void GroupMirror::write(const Fact& fact, const Source& source) {
  if (told_group(fact) != id_) return;
  const auto is_senders = [&](const auto* said) {
    return said != nullptr && is_of(said->member, source.host);
  };
  if (const auto* member = std::get_if<MemberFact>(&fact); is_senders(member)) write(*member);
  if (const auto* refusal = std::get_if<RefusalFact>(&fact); is_senders(refusal)) write(*refusal);
  if (const auto* come = std::get_if<ComeFact>(&fact); is_senders(come)) write(*come);
  const auto* refused = std::get_if<RebuildRefusalFact>(&fact);
  if (is_senders(refused)) write(*refused);
  // Hosts pass failures on, so the sender may be another host than the reporter's. A failure that a
  // member of this host has reported is ignored, because this host already knows it.
  const auto* failure = std::get_if<FailureFact>(&fact);
  if (failure != nullptr && is_remote(failure->failure.reporter)) write(*failure, source.entry);
}

}  // namespace hocket::control
