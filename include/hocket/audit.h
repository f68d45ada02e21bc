// Audits: digests of the inputs and outputs of each call of a job. Two runs can be compared by
// their audits, without keeping their data.
//
// A job keeps an audit if HOCKET_AUDIT is set (`hocket run --audit DIR`). Each rank writes one
// file, which can be read even if the rank was killed. `hocket trace --diff A B` shows the first
// difference of two runs. All types here are values. All functions may be called from any thread.
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

// Starts or stops the audit of the calls of `communicator`, from the next call on. Communicators
// that are made from it inherit the setting. The call is local, but a comparison needs the audit of
// all ranks. Without HOCKET_AUDIT the file lies beside the trace, or in hocket-audit.
// @param communicator The communicator to audit.
// @param audited True to start, false to stop.
// @throws SystemError if the file cannot be written.
void set_audited(Communicator& communicator, bool audited);
// Returns whether this rank keeps an audit of `communicator`.
bool is_audited(const Communicator& communicator) noexcept;

// The digest of one block of elements. If two blocks differ in any single bit, their `sums` differ.
struct AuditDigest {
  std::uint64_t sums = 0;
  std::uint64_t order = 0;
  bool operator==(const AuditDigest&) const = default;
};

// The digests of one array: an input or an output of a call.
struct AuditedArray {
  bool digested = false;  // false: the array could not be read, as on GPUs, or the call failed
  std::size_t bytes = 0;
  // size of each block except the last one of the array or of a part
  std::size_t block_bytes = 0;
  // sizes of the parts in bytes, if they are listed; no block crosses a part
  std::vector<std::size_t> parts;
  std::vector<AuditDigest> blocks;
  // Index of the first element that is infinite or NaN, counted over all parts.
  std::optional<std::size_t> non_finite;
};

struct AuditedGroup {
  std::string name;
  int size = 0;
  int rank = 0;  // this rank's number in the group
};

struct AuditedCall {
  std::size_t group = 0;       // index in RankAudit::groups
  std::string name;            // "all_reduce", "send", ...
  std::uint64_t sequence = 0;  // number of the call in the group, from 1; 0: a message
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;  // for reductions
  int peer = -1;                 // the root, or the peer of a message; -1: none
  int tag = 0;                   // for messages
  std::int64_t time = 0;         // ns on the clock of the rank's host, exact to a few ms
  bool ended = false;            // the call succeeded
  AuditedArray in;
  AuditedArray out;
};

struct RankAudit {
  int rank = 0;
  int size = 1;
  std::uint64_t dropped = 0;  // calls that did not fit into the file
  std::vector<AuditedGroup> groups;
  // collectives in the order of their start, received messages of their end
  std::vector<AuditedCall> calls;
};

struct JobAudit {
  std::vector<RankAudit> ranks;  // in the order of the ranks; ranks without a file are left out
};

// Returns whether a job has left an audit in `folder`.
bool has_audit(const std::string& folder);
// Reads the audit of a job.
// @param folder The folder that HOCKET_AUDIT named.
// @return The audit of each rank that left a file.
// @throws InvalidArgument if the folder has no audit, or a file is not an audit.
// @throws SystemError if a file cannot be read.
JobAudit read_audit(const std::string& folder);
// Reads the audit of one rank from the contents of its file.
// @throws InvalidArgument if `contents` is not an audit.
RankAudit parse_rank_audit(std::span<const std::byte> contents);

// The call in which an infinity or NaN was first seen.
struct NonFinite {
  int rank = 0;  // in the world
  std::string group;
  AuditedCall call;
  bool given = false;  // true: in the rank's input; false: in its output
  std::size_t element = 0;
};
// Returns the earliest infinity or NaN of a job, by the hosts' clocks and the calls' numbers.
// Absent if the job has none.
std::optional<NonFinite> first_non_finite(const JobAudit& job);

// A range of elements that differ. `part` is the number of the part, or -1 if the array has no
// listed parts.
struct AuditBlock {
  int part = -1;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The first difference of two runs.
struct AuditDifference {
  enum class What : std::uint8_t {
    kGiven,    // an input differs
    kTaken,    // an output differs, though all inputs agree
    kCall,     // the call or its size differs
    kMissing,  // one of the runs does not have the call
  };
  What what = What::kGiven;
  int rank = 0;  // the first rank of the world that differs
  std::string group;
  AuditedCall call;                  // of the first run; for kMissing, of the run that has the call
  std::optional<AuditedCall> other;  // of the second run; absent if the call is missing
  bool first_has_it = true;          // for kMissing: true if the first run has the call
  AuditBlock block;                  // for kGiven and kTaken: the first block that differs
  std::size_t blocks = 0;            // number of blocks of this rank that differ
  std::vector<int> given_by;         // ranks whose inputs differ
  std::vector<int> taken_by;         // ranks whose outputs differ
};

struct AuditComparison {
  std::optional<AuditDifference> first;  // absent: the runs agree in all that both have kept
  std::size_t calls = 0;                 // calls of ranks that were compared and agree
  // of these, calls with an array that one of the runs did not digest
  std::size_t not_digested = 0;
};
// Compares the audits of two runs, call by call.
// @throws InvalidArgument if the runs have different numbers of ranks.
AuditComparison compare_audits(const JobAudit& first, const JobAudit& second);

}  // namespace hocket
