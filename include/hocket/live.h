// A view of running jobs from outside, for `hocket top` and for metrics. It shows the jobs of this
// user on this host. It reads a job's shared memory directly and runs no code in the job, so it
// also shows a job whose processes are stopped. Types are values unless stated otherwise.
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

// A job that was found on this host.
struct FoundJob {
  int pid = 0;  // of the job's lowest living rank on this host; people name the job by it
  int size = 1;
  std::vector<int> pids;  // living ranks on this host; one pid if the ranks are threads
  // the ranks are threads of one process, which may belong to other jobs too
  bool threads = false;
  std::uint64_t memory = 0;  // inode of its shared memory: no other job has this number
  std::string command = {};  // command line of `pid`
  std::string name = {};     // its HOCKET_JOB, if its launcher has set that
  // The reason why the job cannot be viewed: it refuses, or has another version. Empty: it can be
  // viewed.
  std::string refusal = {};
};
// Returns the jobs of this process's user that the kernel lets this process see. Any thread may
// call it.
std::vector<FoundJob> find_jobs();

// The membership of a rank in one group.
struct LiveGroup {
  std::string name;
  int rank = 0;
  int size = 1;
  std::uint64_t calls = 0;  // number of calls so far
  std::string call;         // the last call: "all_reduce #17 sum float32[1024]"
  bool inside = false;      // the last call has not ended
  bool failed = false;      // the last call failed
  // message that the rank waits for: "recv of float32[3] from rank 1 tag 0"
  std::string message = {};
  // World ranks that have not arrived at the current call.
  std::vector<int> missing = {};
  std::string failure = {};              // error that ended the group: "PeerDied", ...
  std::vector<std::string> recent = {};  // the last calls, oldest first, if they were requested
};

enum class LiveState : std::uint8_t { kAbsent, kAlive, kLeft, kDied, kSilent };

struct LiveRank {
  int rank = 0;
  int pid = 0;   // 0: on another host, or in a container with pids of its own
  int host = 0;  // number of its host
  bool is_here = true;
  bool shows = true;  // false: it refuses to be viewed (HOCKET_TOP=0)
  LiveState state = LiveState::kAbsent;
  // State of the process: "running", "sleeping in futex", "stopped by a signal ...". State of the
  // thread, if ranks are threads.
  std::string process = {};
  // The position of its program: "train.py:42 in load". A program reports its position only when
  // another rank has waited for it. Empty if no rank has waited since the last call, or if the
  // program cannot tell.
  std::string place = {};
  bool stands_still = false;  // stopped, held by a debugger, or writing a core dump
  int processor = -1;
  std::vector<LiveGroup> groups = {};
  // index in groups: where it is in a call, waits for a message, or made its last call
  int doing = -1;
  double since_s = 0;  // seconds since this state was first seen; the true time may be longer
  double waiting = 0;  // share of the observed time in calls that other ranks had not reached
  double inside = 0;   // share of the observed time in calls
  double calls_per_s = 0;
  double bytes_per_s = 0;  // by the larger array of each call
  int blocked_by = -1;     // world rank that it waits for, at the end of the chain; -1: none
};

// The period that a meter measures. kOnHost is a call or message on the host. kLaunch is the
// enqueueing of a call on a GPU's stream, and kOnStream its run there.
enum class LiveTimed : std::uint8_t { kOnHost, kLaunch, kOnStream };

// The calls of one rank of one kind, in one group, by one engine. A job has meters if it keeps
// metrics. Messages are "send" and "recv".
struct LiveMeter {
  int rank = 0;
  std::string call;
  std::string group;
  std::string engine;  // empty: messages on the host, which may use several engines
  LiveTimed timed = LiveTimed::kOnHost;
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  // Histogram of durations. Bucket i counts calls that took at most meter_bounds()[i] seconds, and
  // more than the bound before.
  std::array<std::uint64_t, 14> ended = {};
};
// Returns the upper bounds of the histogram's buckets, in seconds. The last one is infinite.
std::array<double, 14> meter_bounds();

struct LiveJob {
  int pid = 0;
  int size = 1;
  double looked_s = 0;               // seconds of observation so far
  std::vector<LiveRank> ranks = {};  // in the order of the ranks
  // World ranks that others wait for, and that wait for no rank: the likely cause when the job
  // hangs.
  std::vector<int> blamed = {};
  std::size_t memory_bytes = 0;  // touched bytes of the shared memory
  std::size_t reserved_bytes = 0;
  std::vector<LiveMeter> meters = {};
  // Number of clients of the job's store, if the process that serves the store reports it.
  std::optional<std::size_t> store_clients = {};
};

struct LiveOptions {
  int recent = -1;        // the rank whose last calls are listed; -1: none
  bool processes = true;  // ask the system for the state of the processes, 0.1 ms for each
};

// A resource: the memory of a job, mapped read-only. One thread at a time.
class JobView {
 public:
  // Opens the job that `pid` belongs to. If it belongs to several jobs, the job in which the whole
  // process is a rank comes first. Next comes the oldest job in which its threads are ranks.
  // @throws InvalidArgument if `pid` is no rank of a job of this user. Also throws it if the job
  //   refuses to be viewed or has another version of hocket.
  static JobView open(int pid);
  static JobView open(const FoundJob& job);
  JobView(JobView&& other) noexcept;
  JobView& operator=(JobView&& other) noexcept;
  ~JobView();

  // Takes one sample. Shares and rates are computed from the samples, so call it at least ten times
  // a second. It takes a few microseconds for each rank.
  void look();
  // Restarts the measurement of shares and rates.
  void begin_anew();
  // Returns whether a rank of the job still lives on this host.
  bool lives() const;
  // Returns the state of the job from the samples so far.
  LiveJob report(const LiveOptions& options = {});

 private:
  class Impl;
  explicit JobView(std::unique_ptr<Impl> impl) noexcept;
  Held<"JobView", std::unique_ptr<Impl>> impl_;
};

// Registers, once in a process, a function that tells where a thread of the program is:
// "train.py:42 in load". It returns "" if that is unknown. It is called when other ranks have
// waited long for this one. A dedicated thread calls it, so it may block. The Python binding asks
// the interpreter.
// @param tell The function. `thread` is the thread's pthread_self(). Null: none.
void set_place_teller(std::string (*tell)(std::uint64_t thread)) noexcept;

// The text format of metrics: the older Prometheus format, or OpenMetrics 1.0.
enum class MetricsForm : std::uint8_t { kPrometheus, kOpenMetrics };
// Formats the meters and the state of a job as metrics.
std::string metrics_text(const LiveJob& job, MetricsForm form);

// A resource: a thread that serves the metrics of a job by HTTP, from construction to destruction.
class [[nodiscard("dropped, it serves no longer: keep it")]] MetricsServer {
 public:
  // The options; a value. The job is given by the process of one of its ranks, or by its name. A
  // job that has not started yet is served as soon as it exists.
  struct Options {
    std::string address = "127.0.0.1:9464";  // port 0: any
    // readers must present it; required if the address is not a loopback address
    std::string token = {};
    int pid = 0;
    std::uint64_t memory = 0;  // FoundJob::memory, if `pid` belongs to several jobs; 0: any
    std::string job = {};
    // Provides LiveJob::store_clients. The server's thread calls it at each reading. Empty:
    // unknown.
    std::function<std::optional<std::size_t>()> store_clients = {};
  };
  // Starts the server.
  // @throws InvalidArgument if other hosts can reach the address and there is no token.
  // @throws SystemError if the address is not available.
  explicit MetricsServer(const Options& options);
  MetricsServer(MetricsServer&& other) noexcept;
  MetricsServer& operator=(MetricsServer&& other) noexcept;
  ~MetricsServer();
  // Returns the address that is served, with the port.
  std::string address() const;

 private:
  class Impl;
  Held<"MetricsServer", std::unique_ptr<Impl>> impl_;
};

}  // namespace hocket
