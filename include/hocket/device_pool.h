// A pool of devices in one process. Its workers are threads: one for each GPU, or virtual workers
// of the host that share the processors.
//
//     hocket::DevicePool pool(4);                          // four workers of the host
//     pool.map([&](hocket::PoolWorker& worker) { work_on(parts[worker.index()]); });
//     pool.all_reduce(views);                              // views[i] belongs to worker i
//
// A list of arrays has one entry for each worker. Entry i belongs to worker i; if the workers are
// GPUs, it lies in that GPU's memory. All arrays of a call have one dtype. They have one size
// unless the call says otherwise.
//
// On GPUs a call is ordered by events. It starts after the earlier work of the caller's streams,
// and their later work starts after it. The host does not wait. On the host a call has ended when
// it returns.
//
// Every call throws InvalidArgument for arrays that do not fit.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/held.h"
#include "hocket/stream.h"
#include "hocket/types.h"

namespace hocket {

namespace pool {
class Pool;
struct WorkerState;
}  // namespace pool

struct PoolOptions {
  // Numbers of the GPUs, one worker for each. Empty: workers of the host.
  std::vector<int> devices = {};
  // kShare pins each worker of the host to processors of its own. No worker is pinned if there are
  // more workers than processors.
  enum class Pinning { kShare, kNone };
  Pinning pinning = Pinning::kShare;
  std::optional<Duration> deadline = {};  // of calls between workers; see InitOptions
  std::vector<std::string> engines = {};  // see InitOptions
  std::vector<std::string> library_folders = {};
};

struct PoolCallOptions {
  // The caller's stream on each worker's GPU. Empty: the legacy default streams. Workers of the
  // host have no streams.
  std::span<const StreamRef> streams = {};
  // kTogether starts all workers of `map` at once. kInTurn starts each worker when the one before
  // has called PoolWorker::begun or has ended.
  enum class Start { kTogether, kInTurn };
  Start start = Start::kTogether;
};

struct PoolReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  // Number of neighbouring workers that reduce among themselves; the last group may be smaller. 0:
  // all workers form one group.
  int group = 0;
  // On GPUs the engines add in any order. With kFixed a sum has the same bits on every run. On the
  // host the order is always that of the workers.
  enum class Order { kAny, kFixed };
  Order order = Order::kAny;
  // A communicator of processes that make the same call, each with its own pool. Each process first
  // reduces within its pool, and sends one array to the other processes. On GPUs this is the first
  // worker's array, whose GPU must be this rank's. Either all processes have GPUs, or none has. It
  // excludes `group`, and on GPUs also kFixed. An average on GPUs needs the same number of workers
  // in every process.
  Communicator* across = nullptr;
  std::span<const StreamRef> streams = {};
};

// The shape of an array with three axes: `outer` times `rows` times `inner` elements. Seams cut the
// axis of the rows.
struct HaloShape {
  std::size_t outer = 1;
  std::size_t rows = 0;
  std::size_t inner = 1;
};

struct HaloOptions {
  // kSwap gives each side of a seam the rows of the other side. kBlend gives both sides the same
  // rows. They change linearly from the lower worker's rows to the higher one's.
  enum class Mode { kSwap, kBlend };
  Mode mode = Mode::kSwap;
  // The processes whose pools take part, in rank order. The last worker of this process and the
  // first worker of the next process also share a seam. The seam begins at row `next_seam` here and
  // at row `previous_seam` there.
  Communicator* across = nullptr;
  std::size_t previous_seam = 0;
  std::size_t next_seam = 0;
  std::span<const StreamRef> streams = {};
};

// One worker, as a function that runs in its thread sees it. A view that is valid within `map`.
class PoolWorker {
 public:
  explicit PoolWorker(pool::WorkerState& state) noexcept : state_(&state) {}

  // Returns the worker's number, from 0.
  int index() const noexcept;
  int size() const noexcept;  // number of workers
  // Returns the number of its GPU, or kAnyDevice for a worker of the host.
  int device() const noexcept;
  // Return its streams: one for computation, one for loading data meanwhile.
  // @throws InvalidArgument for workers of the host.
  StreamRef stream() const;
  StreamRef load_stream() const;
  // Returns the communicator of the workers: rank i is worker i. Every worker must make its calls.
  Communicator& communicator() const;
  // With kInTurn: lets the next worker start.
  void begun() const;

 private:
  pool::WorkerState* state_;
};

// A resource: threads, and the contexts and streams of GPUs. Any thread may make calls, one at a
// time. A call from one of its own workers, or from a forked child, is refused. The destructor
// waits for the workers to end.
//
// An exception that leaves a worker's function ends the calls between workers; the other workers
// get `Aborted`. When all have returned, the caller gets the first exception. The pool stays
// usable.
class [[nodiscard("dropped, it ends its workers at once: keep it")]] DevicePool {
 public:
  // Makes a pool of host workers.
  // @throws InvalidArgument if `workers` is less than 1.
  explicit DevicePool(int workers, const PoolOptions& options = {});
  // Makes a worker for each of `options.devices`.
  // @throws InvalidArgument if a device does not exist or is listed twice.
  explicit DevicePool(const PoolOptions& options);
  DevicePool(DevicePool&&) noexcept;
  DevicePool& operator=(DevicePool&&) noexcept;
  ~DevicePool();

  // Returns the number of workers.
  int size() const;
  std::span<const int> devices() const;  // empty: workers of the host
  // Return the streams of one worker; see PoolWorker.
  StreamRef stream(int worker) const;
  StreamRef load_stream(int worker) const;

  // Runs `body` once in the thread of every worker, or of each worker in `workers`, at the same
  // time. Returns when all have returned.
  // `body` gets its worker, and `workers` has the numbers of the workers to use.
  void map(const std::function<void(PoolWorker&)>& body, const PoolCallOptions& = {});
  void map(std::span<const int> workers,
           const std::function<void(PoolWorker&)>& body,
           const PoolCallOptions& = {});

  // --- Movement -----------------------------------------------------------------------------

  // Copies `in` to each out[i]. `in` may lie on any worker or in host memory.
  void broadcast(BorrowedView in, std::span<const ArrayView> out, const PoolCallOptions& = {});
  // Copies in[from[i]] to out[i], for each worker i. The arrays of `in` may lie anywhere.
  void distribute(std::span<const ConstArrayView> in,
                  std::span<const int> from,
                  std::span<const ArrayView> out,
                  const PoolCallOptions& = {});
  // Cuts `in` into consecutive parts and copies them to the arrays of `out`, which may differ in
  // size.
  void scatter(BorrowedView in, std::span<const ArrayView> out, const PoolCallOptions& = {});
  // Copies the arrays of `in`, one after the other, to `out`, on any worker or in host memory.
  void gather(std::span<const ConstArrayView> in, ArrayView out, const PoolCallOptions& = {});
  // Does the same for every worker: out[i] gets all arrays of `in`.
  void all_gather(std::span<const ConstArrayView> in,
                  std::span<const ArrayView> out,
                  const PoolCallOptions& = {});

  // --- Reductions ---------------------------------------------------------------------------

  // Reduces in place: every array becomes the reduction of all arrays, or of the arrays of its
  // group. Each worker reduces one part for all, so every array is read and written once.
  void all_reduce(std::span<const ArrayView> inout, const PoolReduceOptions& = {});
  // Does the same with separate outputs, one for each worker. No output may be an input.
  void all_reduce(std::span<const ConstArrayView> in,
                  std::span<const ArrayView> out,
                  const PoolReduceOptions& = {});
  // Reduces all arrays of `in`, whose number may differ from that of the workers. `out` may be one
  // of `in`. On GPUs `out` lies on a worker, in[i] lies on worker i, and `group` is 0.
  void reduce(std::span<const ConstArrayView> in, ArrayView out, const PoolReduceOptions& = {});

  // --- Halos --------------------------------------------------------------------------------

  // Exchanges halo rows in place. Workers i and i + 1 share the rows [seams[i], seams[i] +
  // overlap). On GPUs, rows that are blended or cross to another process pass through host memory,
  // and the call waits for that.
  // @param arrays One array for each worker, all of one shape.
  // @param shape The shape of each array.
  // @param seams First row of each seam, size() - 1 of them. Seams that overlap are processed in
  //   order.
  // @param overlap Number of rows that a seam shares.
  void exchange_halo(std::span<const ArrayView> arrays,
                     const HaloShape& shape,
                     std::span<const std::size_t> seams,
                     std::size_t overlap,
                     const HaloOptions& = {});

  // Ends the workers' threads, after their current work. Later calls are refused. It may be called
  // again.
  void close();
  // Returns whether the pool is closed. A forked child's copy is closed.
  bool is_closed() const;

 private:
  Held<"DevicePool", std::unique_ptr<pool::Pool>> pool_;
};

struct StreamOptions {
  std::size_t chunk = 64;   // items in one chunk
  std::size_t buffers = 2;  // chunks that may be loaded and not yet used
};

// Processes the items [0, count) in chunks and loads ahead. `load(buffer, first, last)` runs in a
// thread of its own, and `use(buffer, first, last)` in the caller's. Both run in order. A buffer is
// loaded again only after it was used. The first exception of either function ends both and is
// thrown. When the call returns, neither function runs any more.
//
//            chunk 0    chunk 1    chunk 2    chunk 3
//   load     buffer 0   buffer 1   buffer 0   buffer 1
//   use                 buffer 0   buffer 1   buffer 0
using ChunkFunction = std::function<void(std::size_t buffer, std::size_t first, std::size_t last)>;
void stream_chunks(std::size_t count,
                   const StreamOptions& options,
                   const ChunkFunction& load,
                   const ChunkFunction& use);

}  // namespace hocket
