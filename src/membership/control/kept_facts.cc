#include "membership/control/kept_facts.h"

#include <algorithm>
#include <cstring>

#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {
namespace {

constexpr std::size_t kRecordsKept = 4;

// Returns whether the bytes, which another process has written, are exactly one frame.
bool is_frame(const KeptFrame& kept) noexcept {
  if (kept.bytes > KeptFrame::kBytes) return false;
  const auto found = rendezvous::parse_frame({kept.frame, kept.bytes}, KeptFrame::kBytes);
  return found.state == rendezvous::Frame::State::kComplete && found.size == kept.bytes;
}

bool holds(const KeptFact& kept, const KeptFrame& frame) noexcept {
  const std::uint64_t number = kept.number.load(std::memory_order_acquire);
  if (number == 0 || number == kBeingWritten) return false;
  const bool same = kept.what.about == frame.about && kept.what.from == frame.from &&
                    kept.what.bytes == frame.bytes &&
                    std::memcmp(kept.what.frame, frame.frame, frame.bytes) == 0;
  std::atomic_thread_fence(std::memory_order_acquire);
  return same && kept.number.load(std::memory_order_relaxed) == number;
}

std::vector<Bytes> frames_of(std::vector<KeptFacts::Heard> all) {
  std::vector<Bytes> frames;
  for (auto& heard : all) frames.push_back(std::move(heard.frame));
  return frames;
}

}  // namespace

void KeptFacts::keep(std::uint64_t about, const Fact& fact, int from) {
  if (const auto* member = std::get_if<MemberFact>(&fact);
      member != nullptr && member->records.size() > kRecordsKept) {
    MemberFact latest = *member;
    latest.records.erase(latest.records.begin(), latest.records.end() - kRecordsKept);
    return keep(about, latest, from);
  }
  const Bytes bytes = encode(fact);
  if (bytes.size() > KeptFrame::kBytes) return;
  KeptFrame frame{
      .about = about, .from = from, .bytes = static_cast<std::uint32_t>(bytes.size()), .frame = {}};
  std::ranges::copy(bytes, frame.frame);
  keep(frame);
}

void KeptFacts::keep(const KeptFrame& frame) noexcept {
  for (const KeptFact& kept : used()) {
    if (holds(kept, frame)) return;
  }
  for (std::size_t tries = 0; tries < ring_.size(); ++tries) {
    const std::uint64_t number = kept_.fetch_add(1, std::memory_order_relaxed) + 1;
    KeptFact& kept = ring_[(number - 1) % ring_.size()];
    std::uint64_t before = kept.number.load(std::memory_order_relaxed);
    if (before == kBeingWritten ||
        !kept.number.compare_exchange_strong(before, kBeingWritten, std::memory_order_acq_rel)) {
      continue;
    }
    std::atomic_thread_fence(std::memory_order_release);
    kept.what.about = frame.about;
    kept.what.from = frame.from;
    kept.what.bytes = frame.bytes;
    std::memcpy(kept.what.frame, frame.frame, frame.bytes);
    kept.number.store(number, std::memory_order_release);  // pairs with `find`
    return;
  }
}

// Returns the entries that were ever written. Looking at the others would make the kernel allocate
// their pages.
std::span<const KeptFact> KeptFacts::used() const noexcept {
  const std::uint64_t count = kept_.load(std::memory_order_acquire);
  return std::span(ring_).first(std::min<std::uint64_t>(count, ring_.size()));
}

std::vector<Bytes> KeptFacts::of(std::uint64_t about) const { return frames_of(find(about)); }

std::vector<Bytes> KeptFacts::all() const { return frames_of(find(std::nullopt)); }

std::vector<KeptFacts::Heard> KeptFacts::find(std::optional<std::uint64_t> about) const {
  std::vector<Heard> frames;
  for (const KeptFact& kept : used()) {
    const std::uint64_t number = kept.number.load(std::memory_order_acquire);
    if (number == 0 || number == kBeingWritten) continue;
    if (about && kept.what.about != *about) continue;
    const KeptFrame copy = kept.what;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (kept.number.load(std::memory_order_relaxed) != number) continue;
    if (!is_frame(copy) || (about && copy.about != *about)) continue;
    frames.push_back({.from = copy.from, .frame = Bytes(copy.frame, copy.frame + copy.bytes)});
  }
  return frames;
}

}  // namespace hocket::control
