// What jobs of this user on this host are doing, seen from outside: `hocket top` and metrics are
// made of this. A job is read where its memory lies; nothing of it runs for that, so that one whose
// processes are stopped can be seen as well as any other. What is not said to be a resource is a
// value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/abi.h"
#include "hocket/error.h"
#include "hocket/held.h"

namespace hocket {

// A job, as it is found.
struct FoundJob {
  int pid = 0;  // of its lowest rank on this host that lives: what people name it by
  int size = 1;
  std::vector<int> pids;     // of its ranks on this host that live; one, where they are threads
  bool threads = false;      // its ranks are threads of one process, which may be of other jobs, too
  std::uint64_t memory = 0;  // the number of its shared memory, which no other job has
  std::string command = {};  // of the first of them
  std::string name = {};     // HOCKET_JOB of it, where its launcher has set that
  // Why it cannot be looked at: it does not want to be, or is of another version; empty: it can be.
  std::string refusal = {};
};
// Those of this process's user, whom the kernel lets see them.
std::vector<FoundJob> find_jobs();

// A rank in one of its groups.
struct LiveGroup {
  std::string name;
  int rank = 0;
  int size = 1;
  std::uint64_t calls = 0;   // so far
  std::string call;          // the last one: "all_reduce #17 sum float32[1024]"
  bool inside = false;       // it has not ended
  bool failed = false;       // it ended otherwise than well
  std::string message = {};  // that the rank waits for: "recv of float32[3] from rank 1 tag 0"
  // World ranks that have not come to the call it is in.
  std::vector<int> missing = {};
  std::string failure = {};  // what has ended the group: "PeerDied", ...
  std::vector<std::string> recent = {};  // the last calls, oldest first; where asked for
};

enum class LiveState : std::uint8_t { kAbsent, kAlive, kLeft, kDied, kSilent };

struct LiveRank {
  int rank = 0;
  int pid = 0;   // here; 0: of another host, or in a container of its own
  int host = 0;  // its number
  bool is_here = true;
  bool shows = true;  // false: it does not want to be looked at (HOCKET_TOP=0)
  LiveState state = LiveState::kAbsent;
  // "running", "sleeping in futex", "stopped by a signal ..."; of its thread, where ranks are threads
  std::string process = {};
  // Where its program is, as it told when others had waited for it; empty where nobody has asked since
  // its last call, or it cannot tell: "train.py:42 in load".
  std::string place = {};
  bool stands_still = false;  // stopped, held by a debugger, or its memory is being written out
  int processor = -1;
  std::vector<LiveGroup> groups = {};
  int doing = -1;             // in groups: where it is in a call or waits for a message, or called last
  double since_s = 0;         // that it was first seen so; it may have been so for longer
  double waiting = 0;         // share of the time looked at: in calls to which others had not come
  double inside = 0;          // likewise: in calls altogether
  double calls_per_s = 0;
  double bytes_per_s = 0;     // of its larger array in each call
  int blocked_by = -1;        // the world rank that it waits for in the end; -1: nobody
};

// What is timed: a call or a message of the host; the putting of one of GPUs on its stream; how
// long that ran there.
enum class LiveTimed : std::uint8_t { kOnHost, kLaunch, kOnStream };

// Calls of one kind in one group by one engine, of one rank: where the job keeps metrics. Messages
// are "send" and "recv".
struct LiveMeter {
  int rank = 0;
  std::string call;
  std::string group;
  std::string engine;  // empty: messages on the host, each of which takes its way
  LiveTimed timed = LiveTimed::kOnHost;
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  // By how long they took: up to meter_bounds()[i] seconds, and longer than the bounds before.
  std::array<std::uint64_t, 14> ended = {};
};
// The last one is infinite.
std::array<double, 14> meter_bounds();

struct LiveJob {
  int pid = 0;
  int size = 1;
  double looked_s = 0;  // for how long it has been looked at
  std::vector<LiveRank> ranks = {};  // in order
  // World ranks whom others wait for, and who wait for nobody: who is to blame when it hangs.
  std::vector<int> blamed = {};
  std::size_t memory_bytes = 0;   // of the shared memory, what is touched
  std::size_t reserved_bytes = 0;
  std::vector<LiveMeter> meters = {};
  // Who is connected to the job's store, where that is told by who serves it.
  std::optional<std::size_t> store_clients = {};
};

struct LiveOptions {
  int recent = -1;          // the rank of which to list the last calls; -1: of none
  bool processes = true;    // ask the system what the processes do, which takes 0.1 ms each
};

// A resource: a job's memory, mapped for reading. One thread at a time.
class JobView {
 public:
  // The job of which `pid` is a rank. Throws InvalidArgument where that is none of this user's, or
  // where the job does not want to be looked at or is of another version of hocket.
  // Of several that of which it is a rank by itself; else the oldest of its threads'.
  static JobView open(int pid);
  static JobView open(const FoundJob& job);
  JobView(JobView&& other) noexcept;
  JobView& operator=(JobView&& other) noexcept;
  ~JobView();

  // Looks once; shares and rates are of what the looks have seen, so look ten times a second or
  // more often. Takes some microseconds a rank.
  void look();
  // Begins shares and rates anew.
  void begin_anew();
  // Whether a rank of it still lives here.
  bool lives() const;
  // Puts all together.
  LiveJob report(const LiveOptions& options = {});

 private:
  class Impl;
  explicit JobView(std::unique_ptr<Impl> impl) noexcept;
  Held<"JobView", std::unique_ptr<Impl>> impl_;
};

// Registers, once a process, who tells where a thread of its program is: "train.py:42 in load", empty
// where that cannot be known. Asked when other ranks have waited for this one for long, in a thread
// that is there for that alone and may be kept for any time. `thread`: its pthread_self(). Null:
// nobody tells. Python's binding asks the interpreter this way.
void set_place_teller(std::string (*tell)(std::uint64_t thread)) noexcept;

// As Prometheus and others read them: its older form, or OpenMetrics 1.0.
enum class MetricsForm : std::uint8_t { kPrometheus, kOpenMetrics };
std::string metrics_text(const LiveJob& job, MetricsForm form);

// A resource: a thread that serves the metrics of a job by HTTP, from construction to destruction.
class [[nodiscard("dropped, it serves no longer: keep it")]] MetricsServer {
 public:
  // A value. The job: by the process of one of its ranks, or by its name, once it is there.
  struct Options {
    std::string address = "127.0.0.1:9464";  // port 0: any
    std::string token = {};  // that readers must show; needed where the address is no loopback
    int pid = 0;
    std::uint64_t memory = 0;  // FoundJob::memory, where `pid` may be of several jobs; 0: any
    std::string job = {};
    // LiveJob::store_clients, asked at each reading in the server's thread; empty: not told.
    std::function<std::optional<std::size_t>()> store_clients = {};
  };
  // Throws InvalidArgument for an address without a token that others than this host reach, and
  // SystemError where it cannot be had.
  explicit MetricsServer(const Options& options);
  MetricsServer(MetricsServer&& other) noexcept;
  MetricsServer& operator=(MetricsServer&& other) noexcept;
  ~MetricsServer();
  // Where it is served, with the port.
  std::string address() const;

 private:
  class Impl;
  Held<"MetricsServer", std::unique_ptr<Impl>> impl_;
};

}  // namespace hocket
