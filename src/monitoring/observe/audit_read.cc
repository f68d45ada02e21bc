// Reads the digests of calls that ranks wrote.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "hocket/audit.h"
#include "hocket/error.h"
#include "monitoring/observe/audit_format.h"
#include "monitoring/observe/rank_files.h"

namespace hocket {
namespace {

using observe::AuditHeader;
using observe::AuditRecord;
using observe::AuditShape;
using observe::AuditState;
using observe::kWord;

AuditHeader audit_header_of(std::span<const std::byte> contents) {
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

// Reads the words that follow a record. A view of the file.
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

void read_digests(Words& words, std::uint32_t blocks, bool digested, AuditedArray& to) {
  words.require(blocks, observe::kDigestWords);
  to.digested = digested && (blocks != 0 || to.bytes == 0);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    AuditDigest digest;
    digest.sums = words.next();
    digest.order = words.next();
    to.blocks.push_back(digest);
  }
}

// Reads an array's sizes and parts, but not its digests.
void read_array(Words& words, const observe::AuditArray& from, AuditedArray& to) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
  if (from.bytes > kMostBytes) throw InvalidArgument("has a call of more bytes than can be");
  to.bytes = from.bytes;
  to.block_bytes = observe::audit_block_bytes(from.bytes);
  read_parts(words, from, to);
  std::size_t expected = 0;
  const auto blocks = [&to](std::size_t bytes) {
    return bytes / to.block_bytes + (bytes % to.block_bytes != 0 ? 1 : 0);
  };
  if (to.parts.empty()) expected = blocks(to.bytes);
  for (const std::size_t part : to.parts) expected += blocks(part);
  if (from.blocks != 0 && from.blocks != expected) {
    throw InvalidArgument("has a call with other blocks than its array has");
  }
}

// A shape record: the data that calls of a kind share.
struct ReadShape {
  AuditedCall call;
  std::uint32_t in_blocks = 0;
  std::uint32_t out_blocks = 0;
  bool is_of_one() const { return !call.in.parts.empty() || !call.out.parts.empty(); }
};

ReadShape shape_of(std::span<const std::byte> behind) {
  AuditShape shape;
  if (behind.size() < sizeof(shape)) throw InvalidArgument("has a shape that is cut short");
  std::memcpy(&shape, behind.data(), sizeof(shape));
  if (shape.dtype >= kDTypeCount || shape.op >= kReduceOpCount) {
    throw InvalidArgument("has a call of an element type or operator that cannot be");
  }
  ReadShape read{.call = {.group = shape.group,
                          .name = std::string(shape.name.view()),
                          .dtype = static_cast<DType>(shape.dtype),
                          .op = static_cast<ReduceOp>(shape.op),
                          .peer = shape.peer,
                          .tag = shape.tag,
                          .in = {},
                          .out = {}},
                 .in_blocks = shape.in.blocks,
                 .out_blocks = shape.out.blocks};
  Words words(behind.subspan(sizeof(shape)));
  read_array(words, shape.in, read.call.in);
  read_array(words, shape.out, read.call.out);
  return read;
}

// Reads records in the order of the file.
class AuditReader {
 public:
  // `bytes` is the size of all records.
  AuditReader(const AuditHeader& header, std::size_t bytes)
      : wall_ns_(header.wall_ns),
        most_groups_(bytes / observe::kAuditLine),
        audit_{.rank = header.rank,
               .size = header.size,
               .dropped = header.dropped,
               .groups = {},
               .calls = {}} {}

  // Reads the records of a chunk, which begins `at` bytes behind the header. A record without a
  // length, which a process did not finish, hides the rest of the chunk.
  void read_chunk(std::size_t at, std::span<const std::byte> chunk) {
    while (chunk.size() >= sizeof(AuditRecord)) {
      AuditRecord record;
      std::memcpy(&record, chunk.data(), sizeof(record));
      const std::size_t bytes = record.words * kWord;
      if (bytes == 0) return;
      if (bytes % observe::kAuditLine != 0 ||
          record.state > static_cast<int>(AuditState::kFailed)) {
        throw InvalidArgument("has a record that cannot be");
      }
      if (bytes > chunk.size()) return;  // the file ends inside this record
      read(at, record, chunk.subspan(sizeof(record), bytes - sizeof(record)));
      at += bytes;
      chunk = chunk.subspan(bytes);
    }
  }
  RankAudit finish() {
    for (const AuditedCall& call : audit_.calls) {
      if (call.group >= audit_.groups.size()) {
        throw InvalidArgument("has a call of a group that it does not know");
      }
    }
    return std::move(audit_);
  }

 private:
  void read(std::size_t at, const AuditRecord& record, std::span<const std::byte> behind) {
    switch (static_cast<AuditState>(record.state)) {
      case AuditState::kEmpty:
        return;
      case AuditState::kGroup:
        return read_group(record, behind);
      case AuditState::kShape:
        shapes_[record.number] = shape_of(behind);
        return;
      case AuditState::kNonFinite:
        return read_non_finite(record);
      case AuditState::kBegun:
      case AuditState::kDone:
      case AuditState::kFailed:
        return read_call(at, record, Words(behind));
    }
  }

  void read_group(const AuditRecord& record, std::span<const std::byte> behind) {
    // Each group takes at least a cache line of the file, which bounds its number.
    if (record.number >= most_groups_) throw InvalidArgument("names a group that cannot be");
    if (record.number >= audit_.groups.size()) audit_.groups.resize(record.number + std::size_t{1});
    const std::size_t bytes = std::min<std::size_t>(record.name_bytes, behind.size());
    audit_.groups[record.number] = {
        .name = std::string(reinterpret_cast<const char*>(behind.data()), bytes),
        .size = static_cast<int>(std::min<std::uint64_t>(record.sequence, 1 << 30)),
        .rank = record.peer};
  }

  void read_call(std::size_t at, const AuditRecord& record, Words words) {
    const auto found = shapes_.find(record.number);
    if (found == shapes_.end())
      throw InvalidArgument("has a call of a shape that it does not know");
    const ReadShape& shape = found->second;
    AuditedCall call = shape.call;
    call.sequence = record.sequence;
    call.time = static_cast<std::int64_t>(static_cast<std::uint64_t>(record.begin_ns) +
                                          static_cast<std::uint64_t>(wall_ns_));
    call.ended = static_cast<AuditState>(record.state) == AuditState::kDone;
    if (call.time < 0 || call.time >= std::int64_t{1} << 62) {
      throw InvalidArgument("has a call at a time that cannot be");
    }
    read_digests(words, shape.in_blocks, (record.digested & observe::kInDigested) != 0, call.in);
    read_digests(words,
                 shape.out_blocks,
                 call.ended && (record.digested & observe::kOutDigested) != 0,
                 call.out);
    // A shape of one call is used once, so that a small broken file cannot claim many parts.
    if (shape.is_of_one()) shapes_.erase(found);
    audit_.calls.push_back(std::move(call));
    places_.push_back(at);
  }

  // The call's own record may be missing, if the process was killed while it wrote the record.
  void read_non_finite(const AuditRecord& record) {
    const auto at = static_cast<std::uint64_t>(record.begin_ns);
    const auto found = std::ranges::lower_bound(places_, at);
    if (record.sequence == 0) throw InvalidArgument("names an element that cannot be");
    if (found == places_.end() || *found != at) return;
    note(audit_.calls[static_cast<std::size_t>(found - places_.begin())], record);
  }
  static void note(AuditedCall& call, const AuditRecord& record) {
    const bool given = (record.digested & observe::kInDigested) != 0;
    AuditedArray& array = given ? call.in : call.out;
    if (array.digested && !array.non_finite) array.non_finite = record.sequence - 1;
  }

  const std::int64_t wall_ns_;
  const std::size_t most_groups_;
  RankAudit audit_;
  std::vector<std::uint64_t> places_;  // offsets of the calls' records
  std::unordered_map<std::uint32_t, ReadShape> shapes_;
};

}  // namespace

RankAudit parse_rank_audit(std::span<const std::byte> contents) {
  const AuditHeader header = audit_header_of(contents);
  const auto records = contents.subspan(observe::kAuditHeaderBytes);
  AuditReader reader(header, records.size());
  for (std::size_t at = 0; at < records.size(); at += observe::kAuditChunkBytes) {
    const std::size_t bytes = std::min(records.size() - at, observe::kAuditChunkBytes);
    reader.read_chunk(at, records.subspan(at, bytes));
  }
  return reader.finish();
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
