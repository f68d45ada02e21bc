#include "control/mirror.h"

#include <algorithm>
#include <cstring>

#include "control/group_layout.h"
#include "rendezvous/wire.h"

namespace hocket::control {

using engine::Kind;
using engine::Signature;
using rendezvous::WireReader;
using rendezvous::WireWriter;

namespace {

enum class Tag : std::uint8_t {
  kBeat,
  kQuestion,
  kRanks,
  kMember,
  kRefusal,
  kFailure,
  kCut,
  kCome,
  kVote,
};
constexpr std::uint32_t kNoEnd = ~0u;
constexpr std::size_t kMaxRanks = 2048;  // of one frame
constexpr std::uint32_t kMaxMembers = 1 << 17;

// --- Parts --------------------------------------------------------------------------------------

void put(WireWriter& to, std::uint64_t value) { to.i64(static_cast<std::int64_t>(value)); }
std::uint64_t get(WireReader& from) { return static_cast<std::uint64_t>(from.i64()); }

void put(WireWriter& to, const Signature& s) {
  to.u8(static_cast<std::uint8_t>(s.kind));
  to.u8(static_cast<std::uint8_t>(s.dtype));
  to.u8(static_cast<std::uint8_t>(s.op));
  to.u8(static_cast<std::uint8_t>(s.memory));
  to.u32(static_cast<std::uint32_t>(s.root));
  put(to, s.count);
  put(to, s.extra);
  put(to, s.symmetric);
}

// Sets `sane` to false for what is no signature.
Signature get_signature(WireReader& from, bool& sane) {
  const std::uint8_t kind = from.u8();
  const std::uint8_t dtype = from.u8();
  const std::uint8_t op = from.u8();
  const std::uint8_t memory = from.u8();
  sane = sane && kind <= static_cast<std::uint8_t>(Kind::kRecv) && dtype < kDTypeCount &&
         op < kReduceOpCount && memory <= static_cast<std::uint8_t>(MemoryKind::kCuda);
  Signature s;
  if (sane) {
    s.kind = static_cast<Kind>(kind);
    s.dtype = static_cast<DType>(dtype);
    s.op = static_cast<ReduceOp>(op);
    s.memory = static_cast<MemoryKind>(memory);
  }
  s.root = static_cast<std::int32_t>(from.u32());
  s.count = get(from);
  s.extra = get(from);
  s.symmetric = get(from);
  return s;
}

// Eight members a byte, the first the lowest.
void put(WireWriter& to, const std::vector<bool>& members) {
  to.u32(static_cast<std::uint32_t>(members.size()));
  for (std::size_t i = 0; i < members.size(); i += 8) {
    std::uint8_t byte = 0;
    for (std::size_t bit = 0; bit < 8 && i + bit < members.size(); ++bit) {
      byte = static_cast<std::uint8_t>(byte | (members[i + bit] ? 1U << bit : 0U));
    }
    to.u8(byte);
  }
}

std::vector<bool> get_members(WireReader& from, bool& sane) {
  const std::uint32_t count = from.u32();
  sane = sane && count <= kMaxMembers;
  std::vector<bool> members;
  for (std::uint32_t i = 0; i < count && sane && from.ok(); i += 8) {
    const std::uint8_t byte = from.u8();
    for (std::uint32_t bit = 0; bit < 8 && i + bit < count; ++bit) {
      members.push_back((byte >> bit & 1) != 0);
    }
  }
  return members;
}

// --- Out ----------------------------------------------------------------------------------------

struct Writer {
  WireWriter& to;
  void tag(Tag tag) { to.u8(static_cast<std::uint8_t>(tag)); }

  void operator()(const Beat&) { tag(Tag::kBeat); }
  void operator()(const Question& question) {
    tag(Tag::kQuestion);
    put(to, question.group);
  }
  void operator()(const RanksFact& fact) {
    tag(Tag::kRanks);
    to.u32(static_cast<std::uint32_t>(fact.ranks.size()));
    for (const RankFact& rank : fact.ranks) {
      to.u32(static_cast<std::uint32_t>(rank.world_rank));
      to.u8(static_cast<std::uint8_t>(rank.state));
      to.u32(static_cast<std::uint32_t>(rank.pid));
      to.u32(rank.end ? static_cast<std::uint32_t>(*rank.end) : kNoEnd);
    }
  }
  void operator()(const MemberFact& fact) {
    tag(Tag::kMember);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    put(to, fact.last);
    put(to, fact.finished);
    to.u8(static_cast<std::uint8_t>(fact.records.size()));
    for (const Record& record : fact.records) {
      put(to, record.sequence);
      put(to, record.fingerprint);
      put(to, record.signature);
      to.u8(record.refused ? 1 : 0);
    }
  }
  void operator()(const RefusalFact& fact) {
    tag(Tag::kRefusal);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    put(to, fact.sequence);
    to.u8(static_cast<std::uint8_t>(fact.kind));
    to.text(fact.text);
  }
  void operator()(const FailureFact& fact) {
    const Failure& f = fact.failure;
    tag(Tag::kFailure);
    put(to, fact.group);
    to.u8(static_cast<std::uint8_t>(f.code));
    to.u32(static_cast<std::uint32_t>(f.reporter));
    to.u32(static_cast<std::uint32_t>(f.culprit));
    put(to, f.sequence);
    put(to, f.missing);
    put(to, f.signature);
    put(to, f.other);
    to.text(f.text);
  }
  void operator()(const CutFact& fact) {
    tag(Tag::kCut);
    to.u32(static_cast<std::uint32_t>(fact.own));
    to.u32(static_cast<std::uint32_t>(fact.other));
  }
  void operator()(const ComeFact& fact) {
    tag(Tag::kCome);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    to.u32(fact.how);
  }
  void operator()(const VoteFact& fact) {
    tag(Tag::kVote);
    put(to, fact.group);
    to.u8(static_cast<std::uint8_t>(fact.kind));
    put(to, fact.ballot);
    put(to, fact.other);
    put(to, fact.members);
    put(to, fact.lost);
  }
};

// --- In -----------------------------------------------------------------------------------------

std::optional<Fact> parse_ranks(WireReader& from) {
  const std::uint32_t count = from.u32();
  RanksFact fact;
  for (std::uint32_t i = 0; i < count && i < kMaxRanks && from.ok(); ++i) {
    RankFact rank{.world_rank = static_cast<int>(from.u32())};
    const std::uint8_t state = from.u8();
    rank.pid = static_cast<int>(from.u32());
    const std::uint32_t end = from.u32();
    if (state > static_cast<std::uint8_t>(RankState::kCut)) return std::nullopt;
    rank.state = static_cast<RankState>(state);
    if (end != kNoEnd) rank.end = static_cast<int>(end & 0xffff);
    fact.ranks.push_back(rank);
  }
  return fact;
}

std::optional<Fact> parse_member(WireReader& from) {
  MemberFact fact{.group = get(from), .member = static_cast<int>(from.u32())};
  fact.last = get(from);
  fact.finished = get(from);
  const std::uint8_t count = from.u8();
  bool sane = count <= kRecords;
  for (std::uint8_t i = 0; i < count && sane && from.ok(); ++i) {
    Record record{.sequence = get(from), .fingerprint = get(from)};
    record.signature = get_signature(from, sane);
    record.refused = from.u8() != 0;
    fact.records.push_back(record);
  }
  if (!sane) return std::nullopt;
  return fact;
}

std::optional<Fact> parse_refusal(WireReader& from) {
  RefusalFact fact{.group = get(from), .member = static_cast<int>(from.u32())};
  fact.sequence = get(from);
  const std::uint8_t kind = from.u8();
  fact.text = from.text(Failure::kTextBytes);
  if (kind > static_cast<std::uint8_t>(Kind::kRecv)) return std::nullopt;
  fact.kind = static_cast<Kind>(kind);
  return fact;
}

std::optional<Fact> parse_failure(WireReader& from) {
  FailureFact fact{.group = get(from), .failure = {}};
  Failure& f = fact.failure;
  const std::uint8_t code = from.u8();
  f.reporter = static_cast<int>(from.u32());
  f.culprit = static_cast<int>(from.u32());
  f.sequence = get(from);
  f.missing = get(from);
  bool sane = code <= static_cast<std::uint8_t>(ErrorCode::kDevice);
  f.signature = get_signature(from, sane);
  f.other = get_signature(from, sane);
  f.text = from.text(Failure::kTextBytes);
  if (!sane) return std::nullopt;
  f.code = static_cast<ErrorCode>(code);
  return fact;
}

std::optional<Fact> parse_come(WireReader& from) {
  ComeFact fact{.group = get(from), .member = static_cast<int>(from.u32())};
  fact.how = from.u32();
  return fact;
}

std::optional<Fact> parse_vote(WireReader& from) {
  VoteFact fact{.group = get(from)};
  const std::uint8_t kind = from.u8();
  fact.ballot = get(from);
  fact.other = get(from);
  bool sane = kind <= static_cast<std::uint8_t>(VoteFact::Kind::kThrough);
  fact.members = get_members(from, sane);
  fact.lost = get_members(from, sane);
  if (!sane) return std::nullopt;
  fact.kind = static_cast<VoteFact::Kind>(kind);
  return fact;
}

std::optional<Fact> parse_body(std::uint8_t tag, WireReader& from) {
  switch (tag) {
    case static_cast<std::uint8_t>(Tag::kBeat):
      return Beat{};
    case static_cast<std::uint8_t>(Tag::kQuestion):
      return Question{get(from)};
    case static_cast<std::uint8_t>(Tag::kRanks):
      return parse_ranks(from);
    case static_cast<std::uint8_t>(Tag::kMember):
      return parse_member(from);
    case static_cast<std::uint8_t>(Tag::kRefusal):
      return parse_refusal(from);
    case static_cast<std::uint8_t>(Tag::kFailure):
      return parse_failure(from);
    case static_cast<std::uint8_t>(Tag::kCut): {
      const int own = static_cast<int>(from.u32());
      return CutFact{.own = own, .other = static_cast<int>(from.u32())};
    }
    case static_cast<std::uint8_t>(Tag::kCome):
      return parse_come(from);
    case static_cast<std::uint8_t>(Tag::kVote):
      return parse_vote(from);
    default:
      return std::nullopt;
  }
}

void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
  // One writer, as for all that is known of a rank of another host.
  if (word.load(std::memory_order_relaxed) < value) word.store(value, std::memory_order_release);
}

}  // namespace

Bytes encode(const Fact& fact) {
  WireWriter writer;
  std::visit(Writer{writer}, fact);
  return std::move(writer).frame();
}

std::optional<Fact> parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  const std::uint8_t tag = reader.u8();
  auto fact = parse_body(tag, reader);
  return reader.finished() ? fact : std::nullopt;
}

// --- GroupMirror --------------------------------------------------------------------------------

std::optional<GroupMirror> GroupMirror::of(HostControl& host, const GroupEntry& entry) {
  const std::uint64_t id = entry.id.load(std::memory_order_acquire);
  const auto size = static_cast<int>(entry.size.load(std::memory_order_relaxed));
  if (id == 0 || size < 1 || size > host.places()) return std::nullopt;
  const std::uint64_t block = entry.block.load(std::memory_order_relaxed);
  return GroupMirror(host, id, host.at(block, GroupControl::bytes(size)), size);
}

GroupMember& GroupMirror::at(int index) const noexcept {
  return reinterpret_cast<GroupMember*>(memory_ + sizeof(GroupHeader))[index];
}

int GroupMirror::place(int member) const noexcept { return at(member).place; }

bool GroupMirror::is_remote(int index) const noexcept {
  return index >= 0 && index < size_ && place(index) >= host_->ranks() &&
         place(index) < host_->places();
}

MemberFact GroupMirror::member(int index) const {
  const GroupMember& from = at(index);
  // The number of the last finished call first: what came after may be missing from it.
  MemberFact fact{
      .group = id_, .member = index, .finished = from.finished.load(std::memory_order_acquire)};
  fact.last = from.last.load(std::memory_order_acquire);
  const std::uint64_t first = fact.last > kRecords ? fact.last - kRecords + 1 : 1;
  for (std::uint64_t sequence = first; sequence <= fact.last; ++sequence) {
    const SharedRecord& shared = from.records[sequence % kRecords];
    if (shared.sequence.load(std::memory_order_acquire) != sequence) continue;
    const Record record{.sequence = sequence,
                        .fingerprint = shared.fingerprint,
                        .signature = shared.signature,
                        .refused = shared.refused};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (shared.sequence.load(std::memory_order_relaxed) == sequence) fact.records.push_back(record);
  }
  return fact;
}

std::vector<RefusalFact> GroupMirror::refusals(int index) const {
  std::vector<RefusalFact> facts;
  for (const SharedRefusal& shared : at(index).refusals) {
    const std::uint64_t sequence = shared.sequence.load(std::memory_order_acquire);
    if (sequence == 0) continue;
    facts.push_back({.group = id_,
                     .member = index,
                     .sequence = sequence,
                     .kind = shared.kind,
                     .text = std::string(shared.text, strnlen(shared.text, Failure::kTextBytes))});
  }
  return facts;
}

std::optional<FailureFact> GroupMirror::failure() const {
  const auto& header = *reinterpret_cast<const GroupHeader*>(memory_);
  if (header.failure.load(std::memory_order_acquire) != kFailureWritten) return std::nullopt;
  return FailureFact{
      .group = id_,
      .failure = {.code = header.code,
                  .reporter = header.reporter,
                  .culprit = header.culprit,
                  .sequence = header.sequence,
                  .missing = header.missing,
                  .signature = header.signature,
                  .other = header.other,
                  .text = std::string(header.text, strnlen(header.text, Failure::kTextBytes))}};
}

void GroupMirror::write(const MemberFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  GroupMember& to = at(fact.member);
  for (const Record& record : fact.records) {
    SharedRecord& shared = to.records[record.sequence % kRecords];
    if (shared.sequence.load(std::memory_order_relaxed) >= record.sequence) continue;
    shared.sequence.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    shared.fingerprint = record.fingerprint;
    shared.signature = record.signature;
    shared.refused = record.refused;
    shared.sequence.store(record.sequence, std::memory_order_release);
  }
  raise_to(to.last, fact.last);
  raise_to(to.finished, fact.finished);
  wake();
}

void GroupMirror::write(const RefusalFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  SharedRefusal& shared = at(fact.member).refusals[fact.sequence % kRefusals];
  if (shared.sequence.load(std::memory_order_relaxed) >= fact.sequence) return;
  shared.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  shared.kind = fact.kind;
  const std::size_t length = std::min(fact.text.size(), Failure::kTextBytes);
  std::memcpy(shared.text, fact.text.data(), length);
  shared.text[length] = '\0';
  shared.sequence.store(fact.sequence, std::memory_order_release);
  wake();
}

void GroupMirror::write(const ComeFact& fact) noexcept {
  if (!is_remote(fact.member)) return;
  if (succession(nullptr).note(fact.member, fact.how)) wake();
}

void GroupMirror::write(const FailureFact& fact, GroupEntry& entry) {
  const auto is_member = [this](int rank) { return rank >= -1 && rank < size_; };
  if (!is_member(fact.failure.culprit) || !is_member(fact.failure.reporter)) return;
  std::vector<int> places;
  for (int i = 0; i < size_; ++i) places.push_back(place(i));
  GroupControl(*host_, memory_, -1, places, &entry).fail(fact.failure);
}

}  // namespace hocket::control
