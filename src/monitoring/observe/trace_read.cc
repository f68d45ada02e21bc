// Reads the trace files of ranks, and aligns the clocks of several hosts.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "hocket/error.h"
#include "hocket/trace.h"
#include "monitoring/observe/rank_files.h"
#include "monitoring/observe/trace_format.h"

namespace hocket {
namespace {

using observe::TraceHeader;
using observe::TraceRecord;
using observe::TraceState;

TraceHeader trace_header_of(std::span<const std::byte> contents) {
  TraceHeader header;
  if (contents.size() < observe::kTraceHeaderBytes) throw InvalidArgument("is too short");
  std::memcpy(&header, contents.data(), sizeof(header));
  if (header.magic != observe::kTraceMagic) throw InvalidArgument("is no trace of hocket");
  if (header.version != observe::kTraceVersion || header.record_bytes != sizeof(TraceRecord)) {
    throw InvalidArgument("was written by another version of hocket; read it with that one");
  }
  if (header.size < 1 || header.rank < 0 || header.rank >= header.size || header.host < 0) {
    throw InvalidArgument("names a rank that cannot be");
  }
  return header;
}

// Returns whether a time since boot is plausible: not negative, and below 146 years.
bool is_time(std::int64_t ns) { return ns >= 0 && ns < std::int64_t{1} << 62; }

TracedCall call_of(const TraceRecord& record) {
  const auto state = static_cast<TraceState>(record.state);
  if (!is_time(record.begin_ns) || !is_time(record.end_ns)) {
    throw InvalidArgument("has a call at a time that cannot be");
  }
  TracedCall call{.group = record.group,
                  .name = std::string(record.name.view()),
                  .engine = std::string(record.engine.view()),
                  .sequence = record.sequence,
                  .dtype = static_cast<DType>(record.dtype),
                  .bytes = record.bytes,
                  .peer = record.peer,
                  .on_gpu = record.on_gpu != 0,
                  .begin = record.begin_ns,
                  .end = std::nullopt,
                  .failed = state == TraceState::kFailed};
  if (state != TraceState::kBegun) call.end = std::max(record.begin_ns, record.end_ns);
  return call;
}

// Adds a communicator, or a part of its name. Records of other threads may lie between its records.
void add_group(RankTrace& trace, const TraceRecord& record) {
  if (record.group >= trace.groups.size()) trace.groups.resize(record.group + std::size_t{1});
  TracedGroup& group = trace.groups[record.group];
  if (static_cast<TraceState>(record.state) == TraceState::kName) {
    group.name += record.name.view();
    group.name += record.engine.view();
    return;
  }
  group.id = record.sequence;
  group.size = static_cast<int>(std::min<std::uint64_t>(record.bytes, 1 << 30));
  group.rank = record.peer;
}

struct RankFile {
  RankTrace trace;
  std::int64_t wall_ns = 0;
};

RankFile parse(std::span<const std::byte> contents) {
  const TraceHeader header = trace_header_of(contents);
  RankFile file{.trace = {.rank = header.rank,
                          .size = header.size,
                          .host = header.host,
                          .host_name = std::string(header.host_name.view()),
                          .pid = header.pid,
                          .dropped = header.dropped,
                          .groups = {},
                          .calls = {}},
                .wall_ns = header.wall_ns};
  const auto records = contents.subspan(observe::kTraceHeaderBytes);
  const std::size_t count = records.size() / sizeof(TraceRecord);
  for (std::size_t i = 0; i < count; ++i) {
    TraceRecord record;
    std::memcpy(&record, records.data() + i * sizeof(record), sizeof(record));
    switch (static_cast<TraceState>(record.state)) {
      case TraceState::kEmpty:
        continue;
      case TraceState::kGroup:
      case TraceState::kName:
        if (record.group > count) throw InvalidArgument("names a group that cannot be");
        add_group(file.trace, record);
        continue;
      case TraceState::kBegun:
      case TraceState::kDone:
      case TraceState::kFailed:
        file.trace.calls.push_back(call_of(record));
        continue;
    }
    throw InvalidArgument("has a record that cannot be");
  }
  for (TracedCall& call : file.trace.calls) {
    if (call.group >= file.trace.groups.size()) {
      throw InvalidArgument("has a call of a group that it does not know");
    }
    if (static_cast<int>(call.dtype) >= kDTypeCount) {
      throw InvalidArgument("has a call of an element type that cannot be");
    }
  }
  std::ranges::stable_sort(file.trace.calls, {}, &TracedCall::begin);
  return file;
}

// --- Clocks -------------------------------------------------------------------------------------

// Returns whether no rank can end this call before all have begun it.
bool joins_all(const TracedCall& call) {
  return call.name == "barrier" ||
         (call.bytes > 0 &&
          (call.name == "all_reduce" || call.name == "all_gather" || call.name == "all_to_all"));
}

// Bounds of the offset between two hosts' clocks.
struct Bounds {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  bool both() const noexcept {
    return low != std::numeric_limits<std::int64_t>::min() &&
           high != std::numeric_limits<std::int64_t>::max();
  }
};

using JoiningKey = std::pair<std::uint64_t, std::uint64_t>;  // group, sequence

std::map<JoiningKey, const TracedCall*> joining_calls(const RankTrace& rank) {
  std::map<JoiningKey, const TracedCall*> calls;
  for (const TracedCall& call : rank.calls) {
    if (!joins_all(call) || !call.end || call.failed || call.on_gpu) continue;
    calls[{rank.groups[call.group].id, call.sequence}] = &call;
  }
  return calls;
}

void narrow(Bounds& bounds, const RankTrace& base, const RankTrace& other) {
  const auto theirs = joining_calls(base);
  for (const auto& [key, call] : joining_calls(other)) {
    const auto found = theirs.find(key);
    if (found == theirs.end()) continue;
    // With the offset x: call.end + x >= found.begin, and found.end >= call.begin + x.
    bounds.low = std::max(bounds.low, found->second->begin - *call->end);
    bounds.high = std::min(bounds.high, *found->second->end - call->begin);
  }
}

void shift(RankTrace& rank, std::int64_t by) {
  for (TracedCall& call : rank.calls) {
    call.begin += by;
    if (call.end) *call.end += by;
  }
}

// Converts all times to the clock of the first rank's host. A host that shares no call of
// `joins_all` with that host is aligned by its wall clock.
void align(std::vector<RankFile>& files) {
  std::map<int, Bounds> hosts;
  const int first = files.front().trace.host;
  for (const RankFile& other : files) {
    if (other.trace.host == first) continue;
    for (const RankFile& base : files) {
      if (base.trace.host == first) narrow(hosts[other.trace.host], base.trace, other.trace);
    }
  }
  for (RankFile& file : files) {
    if (file.trace.host == first) continue;
    const Bounds& bounds = hosts[file.trace.host];
    shift(file.trace,
          bounds.both() ? bounds.low + (bounds.high - bounds.low) / 2
                        : file.wall_ns - files.front().wall_ns);
  }
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  for (const RankFile& file : files) {
    if (!file.trace.calls.empty()) begin = std::min(begin, file.trace.calls.front().begin);
  }
  for (RankFile& file : files) shift(file.trace, -begin);
}

}  // namespace

RankTrace parse_rank_trace(std::span<const std::byte> contents) { return parse(contents).trace; }

JobTrace read_trace(const std::string& folder) {
  std::vector<RankFile> files;
  observe::read_rank_files(folder, "trace", [&](std::span<const std::byte> contents) {
    files.push_back(parse(contents));
  });
  std::ranges::sort(files, {}, [](const RankFile& file) { return file.trace.rank; });
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].trace.rank == files[i - 1].trace.rank ||
        files[i].trace.size != files[i - 1].trace.size) {
      throw InvalidArgument(folder + " has traces of more than one job; give each job its own");
    }
  }
  align(files);
  JobTrace job;
  for (RankFile& file : files) job.ranks.push_back(std::move(file.trace));
  return job;
}

}  // namespace hocket
