// Audits: digests of what went into each call of a job and came out of it, so that two runs can be
// compared without keeping their data.
//
// A job keeps one where HOCKET_AUDIT is set (`hocket run --audit DIR`): a file a rank, which can be
// read too where the rank was killed. `hocket trace --diff A B` shows where two runs part.
// Everything here is a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hocket/abi.h"
#include "hocket/types.h"

namespace hocket {

class Communicator;

// Has this rank keep an audit of the calls of `communicator`, or no more, from the next one on.
// Communicators made of it do as it does. Without HOCKET_AUDIT the file lies beside the trace, or in
// hocket-audit. Local: for a comparison all ranks want one. Throws SystemError where the file cannot
// be written.
void set_audited(Communicator& communicator, bool audited);
bool is_audited(const Communicator& communicator) noexcept;

// Of one block of elements. Any single bit that differs makes `sums` differ.
struct AuditDigest {
  std::uint64_t sums = 0;
  std::uint64_t order = 0;
  bool operator==(const AuditDigest&) const = default;
};

// What went into a call, or came out of it.
struct AuditedArray {
  bool digested = false;  // false: it was not there to be read, as on GPUs; or the call has failed
  std::size_t bytes = 0;
  std::size_t block_bytes = 0;     // of a block but for the last of an array or of a part
  std::vector<std::size_t> parts;  // bytes of each, where they are listed; blocks do not cross them
  std::vector<AuditDigest> blocks;
  // The first element that is an infinity or no number; over all parts.
  std::optional<std::size_t> non_finite;
};

struct AuditedGroup {
  std::string name;
  int size = 0;
  int rank = 0;  // this rank's in it
};

struct AuditedCall {
  std::size_t group = 0;       // in RankAudit::groups
  std::string name;            // "all_reduce", "send", ...
  std::uint64_t sequence = 0;  // its number in the group; 0: a message
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;  // of a reduction
  int peer = -1;                 // the root, or whom a message is for or from; -1: none
  int tag = 0;                   // of a message
  std::int64_t time = 0;         // in ns, to a few ms, by the clock of the rank's host
  bool ended = false;            // well
  AuditedArray in;
  AuditedArray out;
};

struct RankAudit {
  int rank = 0;
  int size = 1;
  std::uint64_t dropped = 0;  // calls that the file had no room for
  std::vector<AuditedGroup> groups;
  std::vector<AuditedCall> calls;  // collectives as they began, messages that come as they ended
};

struct JobAudit {
  std::vector<RankAudit> ranks;  // in order; ranks without a file are left out
};

// Whether a job has left an audit in `folder`.
bool has_audit(const std::string& folder);
// Reads it. Throws InvalidArgument where there is none, or what is there is none; SystemError where
// it cannot be read.
JobAudit read_audit(const std::string& folder);
// One file of it, by its contents. Throws InvalidArgument.
RankAudit parse_rank_audit(std::span<const std::byte> contents);

// Where in a call an infinity, or what is no number, was seen first.
struct NonFinite {
  int rank = 0;  // of the world
  std::string group;
  AuditedCall call;
  bool given = false;  // in what the rank gave; else in what came out
  std::size_t element = 0;
};
// The one that came first, by the hosts' clocks and the calls' numbers.
std::optional<NonFinite> first_non_finite(const JobAudit& job);

// Elements that differ: of a part, where the array has parts that are listed.
struct AuditBlock {
  int part = -1;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Where two runs part.
struct AuditDifference {
  enum class What : std::uint8_t {
    kGiven,    // what a rank gave
    kTaken,    // what came out, though all gave the same
    kCall,     // what was called, or with how much
    kMissing,  // one of the runs has no such call
  };
  What what = What::kGiven;
  int rank = 0;  // of the world, the first where it is so
  std::string group;
  AuditedCall call;                  // as the first run has it; of kMissing, as the run that has it
  std::optional<AuditedCall> other;  // as the second has it; absent where it is missing
  bool first_has_it = true;          // of kMissing
  AuditBlock block;                  // of kGiven and kTaken: the first that differs
  std::size_t blocks = 0;            // how many of this rank's differ
  std::vector<int> given_by;         // ranks that gave something else
  std::vector<int> taken_by;         // ranks to which something else came
};

struct AuditComparison {
  std::optional<AuditDifference> first;  // absent: the runs do not differ in what both have kept
  std::size_t calls = 0;                 // of ranks, compared and equal
  std::size_t not_digested = 0;          // of these with arrays that one of the runs has not read
};
// Throws InvalidArgument where the two are jobs of different numbers of ranks.
AuditComparison compare_audits(const JobAudit& first, const JobAudit& second);

}  // namespace hocket
