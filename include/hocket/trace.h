// Traces: what each rank of a job called, when, and for how long.
//
// A job writes one where HOCKET_TRACE names a folder (`hocket run --trace DIR`): a file a rank,
// into which each call is put as it begins, so that the file of a rank that was killed can be read
// too. `hocket trace DIR` shows it. Everything here is a value.
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

// Nanoseconds of one clock for the whole job, from when the first rank began.
using TraceTime = std::int64_t;

struct TracedGroup {
  std::uint64_t id = 0;  // equal on all its ranks
  std::string name;
  int size = 0;
  int rank = 0;  // this rank's in it
};

struct TracedCall {
  std::size_t group = 0;       // in RankTrace::groups
  std::string name;            // "all_reduce", "send", ...
  std::string engine;          // "shm"; empty for messages
  std::uint64_t sequence = 0;  // its number in the group; 0: a message
  DType dtype = DType::kUInt8;
  std::size_t bytes = 0;  // of a rank's larger array, where all ranks have as much; else in sum
  int peer = -1;          // the root, or whom a message is for or from; -1: none
  bool on_gpu = false;    // then its time is that of putting it on the stream
  TraceTime begin = 0;
  std::optional<TraceTime> end;  // absent: it had not ended when the trace did
  bool failed = false;           // it ended by an error
};

struct RankTrace {
  int rank = 0;
  int size = 1;
  int host = 0;  // its number, from 0
  std::string host_name;
  int pid = 0;
  std::uint64_t dropped = 0;  // calls that the file had no room for
  std::vector<TracedGroup> groups;
  std::vector<TracedCall> calls;  // in the order in which they began
};

struct JobTrace {
  std::vector<RankTrace> ranks;  // in order; ranks without a file are left out
};

// Reads what a job wrote into `folder`, and puts the clocks of its hosts together: no call that
// needs all ranks ends anywhere before it has begun everywhere, which bounds the difference of two
// clocks from both sides. Throws InvalidArgument where there is no trace, or what is there is none;
// SystemError where it cannot be read.
JobTrace read_trace(const std::string& folder);

// One file of it, by its contents; times are those of the rank's own clock. Throws InvalidArgument.
RankTrace parse_rank_trace(std::span<const std::byte> contents);

// Calls of one kind and size in one group, over all ranks.
struct TraceLine {
  std::string call;
  std::string group;
  std::string engine;
  std::size_t bytes = 0;
  std::size_t count = 0;  // of calls, each made by all ranks
  double total_s = 0;     // from the first rank's begin to the last's end, summed
  double median_us = 0;   // of that
  double max_us = 0;
  // Of that the part from the first rank's begin to the last one's: what the others waited for
  // the last to come.
  double waited_s = 0;
  int latest = -1;          // the world rank that most often came last; -1 with one rank
  double latest_share = 0;  // of the calls
};

// A call that not all ranks ended, or that ended by an error.
struct TraceLoose {
  std::string call;
  std::string group;
  std::uint64_t sequence = 0;
  std::vector<int> missing;  // world ranks with a file that never called it
  std::vector<int> inside;   // that did not come out
  std::vector<int> failed;   // that got an error
};

struct TraceSummary {
  double seconds = 0;             // from the first call's begin to the last one's end
  std::vector<TraceLine> lines;   // most time first
  std::vector<TraceLoose> loose;  // in the order of time
  std::vector<double> waiting_s;  // of each rank in `ranks`: in calls, for those who came later
  std::vector<double> calling_s;  // likewise: in calls altogether
  std::size_t calls = 0;          // of collectives, each counted once for all its ranks
  std::size_t messages = 0;       // sent
  std::uint64_t dropped = 0;
};
TraceSummary summarize(const JobTrace& trace);

}  // namespace hocket
