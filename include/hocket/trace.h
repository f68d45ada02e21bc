// Traces: the calls of each rank of a job, with their times.
//
// A job writes a trace if HOCKET_TRACE names a folder (`hocket run --trace DIR`). Each rank writes
// one file and records every call as it begins. So the file of a killed rank can be read too.
// `hocket trace DIR` shows the trace. All types here are values. Any thread may call the functions.
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

// Nanoseconds since the first rank began, on one clock for the whole job.
using TraceTime = std::int64_t;

struct TracedGroup {
  std::uint64_t id = 0;  // equal on all its ranks
  std::string name;
  int size = 0;
  int rank = 0;  // this rank's number in the group
};

struct TracedCall {
  std::size_t group = 0;       // index in RankTrace::groups
  std::string name;            // "all_reduce", "send", ...
  std::string engine;          // "shm"; empty for messages
  std::uint64_t sequence = 0;  // number of the call in the group, from 1; 0: a message
  DType dtype = DType::kUInt8;
  // size of one rank's larger array if it is equal on all ranks; else the total of all ranks
  std::size_t bytes = 0;
  int peer = -1;        // the root, or the peer of a message; -1: none
  bool on_gpu = false;  // true: begin and end are those of enqueueing the call on the stream
  TraceTime begin = 0;
  std::optional<TraceTime> end;  // absent: the call had not ended when the trace ended
  bool failed = false;           // it ended by an error
};

struct RankTrace {
  int rank = 0;
  int size = 1;
  int host = 0;  // number of the host, from 0
  std::string host_name;
  int pid = 0;
  std::uint64_t dropped = 0;  // calls that did not fit into the file
  std::vector<TracedGroup> groups;
  std::vector<TracedCall> calls;  // in the order of their start
};

struct JobTrace {
  std::vector<RankTrace> ranks;  // in rank order; ranks without a file are left out
};

// Reads the trace of a job and aligns the clocks of its hosts. A call that needs all ranks ends
// nowhere before it has begun everywhere. This bounds the difference of two clocks from both sides.
// @param folder The folder that HOCKET_TRACE named.
// @throws InvalidArgument if the folder has no trace, or a file is not a trace.
// @throws SystemError if a file cannot be read.
JobTrace read_trace(const std::string& folder);

// Reads the trace of one rank from the contents of its file. Times are those of the rank's own
// clock.
// @throws InvalidArgument if `contents` is not a trace.
RankTrace parse_rank_trace(std::span<const std::byte> contents);

// The calls of one kind and size in one group, over all ranks.
struct TraceLine {
  std::string call;
  std::string group;
  std::string engine;
  std::size_t bytes = 0;
  std::size_t count = 0;  // calls, each counted once for all its ranks
  double total_s = 0;     // sum of the times from the first rank's begin to the last rank's end
  double median_us = 0;   // of these times
  double max_us = 0;
  // The sum of the times from the first rank's begin to the last rank's begin. During it the other
  // ranks waited for the last one.
  double waited_s = 0;
  int latest = -1;          // the world rank that most often began last; -1 with one rank
  double latest_share = 0;  // share of the calls in which it began last
};

// A call that not all ranks ended, or that failed.
struct TraceLoose {
  std::string call;
  std::string group;
  std::uint64_t sequence = 0;
  std::vector<int> missing;  // world ranks with a file that never made the call
  std::vector<int> inside;   // ranks that did not leave the call
  std::vector<int> failed;   // ranks that got an error
};

struct TraceSummary {
  double seconds = 0;             // from the first call's begin to the last one's end
  std::vector<TraceLine> lines;   // longest total time first
  std::vector<TraceLoose> loose;  // in the order of time
  // for each rank in `ranks`: time in calls while other ranks had not begun
  std::vector<double> waiting_s;
  std::vector<double> calling_s;  // for each rank: time in calls
  std::size_t calls = 0;          // collectives, each counted once for all its ranks
  std::size_t messages = 0;       // sent
  std::uint64_t dropped = 0;
};
// Summarizes the calls of a job.
TraceSummary summarize(const JobTrace& trace);

}  // namespace hocket
