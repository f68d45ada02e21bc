// Reading what ranks wrote of their calls' digests.
#include <algorithm>
#include <cstring>
#include <utility>

#include "hocket/audit.h"
#include "hocket/error.h"
#include "observe/audit_format.h"
#include "observe/rank_files.h"

namespace hocket {
namespace {

using observe::AuditHeader;
using observe::AuditRecord;
using observe::AuditState;
using observe::kWord;

AuditHeader header_of(std::span<const std::byte> contents) {
  AuditHeader header;
  if (contents.size() < observe::kAuditHeaderBytes) throw InvalidArgument("is too short");
  std::memcpy(&header, contents.data(), sizeof(header));
  if (header.magic != observe::kAuditMagic) throw InvalidArgument("is no audit of hocket");
  if (header.version != observe::kAuditVersion) {
    throw InvalidArgument("was written by another version of hocket; read it with that one");
  }
  if (header.size < 1 || header.rank < 0 || header.rank >= header.size) {
    throw InvalidArgument("names a rank that cannot be");
  }
  return header;
}

// What comes behind a record: a view of the file.
class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t next() {
    if (bytes_.size() < kWord) throw InvalidArgument("has a call that is longer than its record");
    std::uint64_t word;
    std::memcpy(&word, bytes_.data(), kWord);
    bytes_ = bytes_.subspan(kWord);
    return word;
  }
  void require(std::uint64_t count, std::size_t words) const {
    if (count > bytes_.size() / kWord / words) {
      throw InvalidArgument("has a call that is longer than its record");
    }
  }

 private:
  std::span<const std::byte> bytes_;
};

void read_parts(Words& words, const observe::AuditArray& from, AuditedArray& to) {
  words.require(from.parts, 1);
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < from.parts; ++i) {
    to.parts.push_back(words.next());
    if (to.parts.back() > from.bytes || (sum += to.parts.back()) > from.bytes) {
      throw InvalidArgument("has parts that are larger than their array");
    }
  }
}

void read_digests(Words& words, const observe::AuditArray& from, bool digested, AuditedArray& to) {
  words.require(from.blocks, observe::kDigestWords);
  to.digested = digested;
  to.bytes = from.bytes;
  to.block_bytes = observe::audit_block_bytes(from.bytes);
  std::size_t expected = 0;
  const auto blocks = [&to](std::size_t bytes) {
    return bytes / to.block_bytes + (bytes % to.block_bytes != 0 ? 1 : 0);
  };
  if (to.parts.empty()) expected = blocks(to.bytes);
  for (const std::size_t part : to.parts) expected += blocks(part);
  if (from.blocks != 0 && from.blocks != expected) {
    throw InvalidArgument("has a call with other blocks than its array has");
  }
  if (from.blocks == 0 && to.bytes != 0) to.digested = false;
  for (std::uint32_t i = 0; i < from.blocks; ++i) {
    AuditDigest digest;
    digest.sums = words.next();
    digest.order = words.next();
    to.blocks.push_back(digest);
  }
  if (digested && from.non_finite != 0) to.non_finite = from.non_finite - 1;
}

AuditedCall call_of(const AuditRecord& record, std::int64_t wall_ns, Words words) {
  if (record.dtype >= kDTypeCount || record.op >= kReduceOpCount) {
    throw InvalidArgument("has a call of an element type or operator that cannot be");
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
  if (record.in.bytes > kMostBytes || record.out.bytes > kMostBytes) {
    throw InvalidArgument("has a call of more bytes than can be");
  }
  AuditedCall call{.group = record.group,
                   .name = std::string(record.name.view()),
                   .sequence = record.sequence,
                   .dtype = static_cast<DType>(record.dtype),
                   .op = static_cast<ReduceOp>(record.op),
                   .peer = record.peer,
                   .tag = record.tag,
                   .time = static_cast<std::int64_t>(static_cast<std::uint64_t>(record.begin_ns) +
                                                     static_cast<std::uint64_t>(wall_ns)),
                   .ended = static_cast<AuditState>(record.state) == AuditState::kDone,
                   .in = {},
                   .out = {}};
  if (call.time < 0 || call.time >= std::int64_t{1} << 62) {
    throw InvalidArgument("has a call at a time that cannot be");
  }
  read_parts(words, record.in, call.in);
  read_parts(words, record.out, call.out);
  read_digests(words, record.in, (record.digested & observe::kInDigested) != 0, call.in);
  read_digests(
      words, record.out, call.ended && (record.digested & observe::kOutDigested) != 0, call.out);
  return call;
}

void add_group(RankAudit& audit, const AuditRecord& record, std::span<const std::byte> behind) {
  if (record.group > (1U << 20)) throw InvalidArgument("names a group that cannot be");
  if (record.group >= audit.groups.size()) audit.groups.resize(record.group + std::size_t{1});
  const std::size_t bytes = std::min<std::size_t>(record.name_bytes, behind.size());
  audit.groups[record.group] = {
      .name = std::string(reinterpret_cast<const char*>(behind.data()), bytes),
      .size = static_cast<int>(std::min<std::uint64_t>(record.sequence, 1 << 30)),
      .rank = record.peer};
}

// The records of one chunk; one that was begun and never finished hides those behind it.
void read_chunk(RankAudit& audit, std::int64_t wall_ns, std::span<const std::byte> chunk) {
  while (chunk.size() >= sizeof(AuditRecord)) {
    AuditRecord record;
    std::memcpy(&record, chunk.data(), sizeof(record));
    const std::size_t bytes = record.words * kWord;
    if (bytes == 0) return;
    if (bytes < sizeof(record) || record.state > static_cast<int>(AuditState::kFailed)) {
      throw InvalidArgument("has a record that cannot be");
    }
    if (bytes > chunk.size()) return;  // the file ends in it
    const auto behind = chunk.subspan(sizeof(record), bytes - sizeof(record));
    switch (static_cast<AuditState>(record.state)) {
      case AuditState::kEmpty:
        break;
      case AuditState::kGroup:
        add_group(audit, record, behind);
        break;
      case AuditState::kBegun:
      case AuditState::kDone:
      case AuditState::kFailed:
        audit.calls.push_back(call_of(record, wall_ns, Words(behind)));
        break;
    }
    chunk = chunk.subspan(bytes);
  }
}

}  // namespace

RankAudit parse_rank_audit(std::span<const std::byte> contents) {
  const AuditHeader header = header_of(contents);
  RankAudit audit{.rank = header.rank,
                  .size = header.size,
                  .dropped = header.dropped,
                  .groups = {},
                  .calls = {}};
  auto rest = contents.subspan(observe::kAuditHeaderBytes);
  while (!rest.empty()) {
    const auto chunk = rest.first(std::min(rest.size(), observe::kAuditChunkBytes));
    read_chunk(audit, header.wall_ns, chunk);
    rest = rest.subspan(chunk.size());
  }
  for (const AuditedCall& call : audit.calls) {
    if (call.group >= audit.groups.size()) {
      throw InvalidArgument("has a call of a group that it does not know");
    }
  }
  return audit;
}

bool has_audit(const std::string& folder) {
  std::error_code error;
  return !observe::rank_files(folder, ".audit", error).empty();
}

JobAudit read_audit(const std::string& folder) {
  JobAudit job;
  observe::read_rank_files(folder, "audit", [&](std::span<const std::byte> contents) {
    job.ranks.push_back(parse_rank_audit(contents));
  });
  std::ranges::sort(job.ranks, {}, &RankAudit::rank);
  for (std::size_t i = 1; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank == job.ranks[i - 1].rank || job.ranks[i].size != job.ranks[i - 1].size) {
      throw InvalidArgument(folder + " has audits of more than one job; give each job its own");
    }
  }
  return job;
}

}  // namespace hocket
