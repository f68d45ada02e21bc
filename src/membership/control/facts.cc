#include "membership/control/facts.h"

#include <utility>

#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {

using engine::Kind;
using engine::Signature;
using rendezvous::WireReader;
using rendezvous::WireWriter;

namespace {

enum class FactTag : std::uint8_t {
  kBeat,
  kQuestion,
  kRanks,
  kMember,
  kRefusal,
  kFailure,
  kCut,
  kCome,
  kVote,
  kRebuildRefusal,
};
constexpr std::uint32_t kNoEnd = ~0u;
constexpr std::size_t kMaxRanks = 2048;  // in one frame
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
  put(to, s.digest);
  put(to, s.symmetric);
}

// Reads a signature. Sets `sane` to false if the signature is not valid.
Signature get_signature(WireReader& from, bool& sane) {
  const std::uint8_t kind = from.u8();
  const std::uint8_t dtype = from.u8();
  const std::uint8_t op = from.u8();
  const std::uint8_t memory = from.u8();
  sane = sane && kind < engine::kKindCount && dtype < kDTypeCount && op < kReduceOpCount &&
         memory <= static_cast<std::uint8_t>(MemoryKind::kCuda);
  Signature s;
  if (sane) {
    s.kind = static_cast<Kind>(kind);
    s.dtype = static_cast<DType>(dtype);
    s.op = static_cast<ReduceOp>(op);
    s.memory = static_cast<MemoryKind>(memory);
  }
  s.root = static_cast<std::int32_t>(from.u32());
  s.count = get(from);
  s.digest = get(from);
  s.symmetric = get(from);
  return s;
}

// Writes a set of members: eight of them in each byte, the first in the lowest bit.
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

struct FactWriter {
  WireWriter& to;
  void tag(FactTag tag) { to.u8(static_cast<std::uint8_t>(tag)); }

  void operator()(const Beat&) { tag(FactTag::kBeat); }
  void operator()(const Question& question) {
    tag(FactTag::kQuestion);
    put(to, question.group);
  }
  void operator()(const RanksFact& fact) {
    tag(FactTag::kRanks);
    to.u32(static_cast<std::uint32_t>(fact.ranks.size()));
    for (const RankFact& rank : fact.ranks) {
      to.u32(static_cast<std::uint32_t>(rank.world_rank));
      to.u8(static_cast<std::uint8_t>(rank.state));
      to.u32(static_cast<std::uint32_t>(rank.pid));
      to.u32(rank.end ? static_cast<std::uint32_t>(*rank.end) : kNoEnd);
      to.u8(!rank.reason ? 0 : rank.reason->of_a_part ? 3 : rank.reason->follows_loss ? 2 : 1);
      if (rank.reason) to.text(rank.reason->text);
    }
  }
  void operator()(const MemberFact& fact) {
    tag(FactTag::kMember);
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
    tag(FactTag::kRefusal);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    put(to, fact.sequence);
    to.u8(static_cast<std::uint8_t>(fact.kind));
    to.text(fact.text);
  }
  void operator()(const FailureFact& fact) {
    const Failure& f = fact.failure;
    tag(FactTag::kFailure);
    put(to, fact.group);
    to.u8(static_cast<std::uint8_t>(f.cause));
    to.u32(static_cast<std::uint32_t>(f.reporter));
    to.u32(static_cast<std::uint32_t>(f.culprit));
    put(to, f.sequence);
    put(to, f.missing);
    put(to, f.signature);
    put(to, f.other);
    to.text(f.text);
  }
  void operator()(const CutFact& fact) {
    tag(FactTag::kCut);
    to.u32(static_cast<std::uint32_t>(fact.own));
    to.u32(static_cast<std::uint32_t>(fact.other));
  }
  void operator()(const ComeFact& fact) {
    tag(FactTag::kCome);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    to.u32(fact.how);
    put(to, fact.turn);
  }
  void operator()(const VoteFact& fact) {
    tag(FactTag::kVote);
    put(to, fact.group);
    to.u8(static_cast<std::uint8_t>(fact.kind));
    put(to, fact.ballot);
    put(to, fact.other);
    put(to, fact.members);
    put(to, fact.lost);
  }
  void operator()(const RebuildRefusalFact& fact) {
    tag(FactTag::kRebuildRefusal);
    put(to, fact.group);
    to.u32(static_cast<std::uint32_t>(fact.member));
    put(to, fact.refusal.count);
    put(to, fact.refusal.after);
    to.text(fact.refusal.reason);
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
    const std::uint8_t reason = from.u8();
    if (reason > 3) return std::nullopt;
    if (reason != 0) {
      rank.reason = EndReason{.of_a_part = reason == 3,
                              .follows_loss = reason == 2,
                              .text = std::string(from.text(EndReason::kTextBytes))};
    }
    fact.ranks.push_back(std::move(rank));
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
  if (kind >= engine::kKindCount) return std::nullopt;
  fact.kind = static_cast<Kind>(kind);
  return fact;
}

std::optional<Fact> parse_failure(WireReader& from) {
  FailureFact fact{.group = get(from), .failure = {}};
  Failure& f = fact.failure;
  const std::uint8_t cause = from.u8();
  f.reporter = static_cast<int>(from.u32());
  f.culprit = static_cast<int>(from.u32());
  f.sequence = get(from);
  f.missing = get(from);
  bool sane = cause <= static_cast<std::uint8_t>(kLastCause);
  f.signature = get_signature(from, sane);
  f.other = get_signature(from, sane);
  f.text = from.text(Failure::kTextBytes);
  if (!sane) return std::nullopt;
  f.cause = static_cast<Cause>(cause);
  return fact;
}

std::optional<Fact> parse_come(WireReader& from) {
  ComeFact fact{.group = get(from), .member = static_cast<int>(from.u32())};
  fact.how = from.u32();
  fact.turn = get(from);
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

std::optional<Fact> parse_rebuild_refusal(WireReader& from) {
  RebuildRefusalFact fact{.group = get(from), .member = static_cast<int>(from.u32())};
  fact.refusal.count = get(from);
  fact.refusal.after = get(from);
  fact.refusal.reason = from.text(Failure::kTextBytes);
  return fact;
}

std::optional<Fact> parse_body(std::uint8_t number, WireReader& from) {
  switch (static_cast<FactTag>(number)) {
    case FactTag::kBeat:
      return Beat{};
    case FactTag::kQuestion:
      return Question{get(from)};
    case FactTag::kRanks:
      return parse_ranks(from);
    case FactTag::kMember:
      return parse_member(from);
    case FactTag::kRefusal:
      return parse_refusal(from);
    case FactTag::kFailure:
      return parse_failure(from);
    case FactTag::kCut: {
      const int own = static_cast<int>(from.u32());
      return CutFact{.own = own, .other = static_cast<int>(from.u32())};
    }
    case FactTag::kCome:
      return parse_come(from);
    case FactTag::kVote:
      return parse_vote(from);
    case FactTag::kRebuildRefusal:
      return parse_rebuild_refusal(from);
  }
  return std::nullopt;  // an unknown tag
}

}  // namespace

std::optional<std::uint64_t> told_group(const Fact& fact) noexcept {
  if (const auto* member = std::get_if<MemberFact>(&fact)) return member->group;
  if (const auto* refusal = std::get_if<RefusalFact>(&fact)) return refusal->group;
  if (const auto* failure = std::get_if<FailureFact>(&fact)) return failure->group;
  if (const auto* come = std::get_if<ComeFact>(&fact)) return come->group;
  if (const auto* refused = std::get_if<RebuildRefusalFact>(&fact)) return refused->group;
  return std::nullopt;
}

Bytes encode(const Fact& fact) {
  WireWriter writer;
  std::visit(FactWriter{writer}, fact);
  return std::move(writer).frame();
}

std::optional<Fact> parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  const std::uint8_t tag = reader.u8();
  auto fact = parse_body(tag, reader);
  return reader.finished() ? fact : std::nullopt;
}

}  // namespace hocket::control
