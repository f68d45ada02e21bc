// Many devices in one process: workers that are threads, one for each GPU, or virtual workers of
// the host, each with its share of the processors.
//
//     hocket::DevicePool pool(4);                          // four workers of the host
//     pool.map([&](hocket::PoolWorker& worker) { work_on(parts[worker.index()]); });
//     pool.all_reduce(views);                              // views[i] belongs to worker i
//
// Lists of arrays have one entry a worker: entry i belongs to worker i, and where the workers are
// GPUs it lies in that GPU's memory. All arrays of a call have one dtype, and, unless said
// otherwise, one size.
//
// On GPUs a call is ordered by events: it begins behind all that the caller's streams had before
// it, and what they get later comes behind it; the host waits for nothing. On the host a call has
// ended when it returns.
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
struct Seat;
}  // namespace pool

struct PoolOptions {
  // GPUs, by their numbers, a worker each; empty: workers of the host.
  std::vector<int> devices = {};
  // Whether a worker of the host keeps to processors of its own. Where there are more workers than
  // processors none does.
  enum class Pinning { kShare, kNone };
  Pinning pinning = Pinning::kShare;
  std::optional<Duration> deadline = {};  // of calls between workers; as InitOptions
  std::vector<std::string> engines = {};  // as InitOptions
  std::vector<std::string> library_folders = {};
};

struct PoolCallOptions {
  // The caller's stream on each worker's GPU; absent: their legacy default streams. Workers of the
  // host have none.
  std::span<const StreamRef> streams = {};
  // How the workers of `map` begin: all at once; or in their order, each when the one before has
  // called PoolWorker::begun, or has ended.
  enum class Start { kTogether, kInTurn };
  Start start = Start::kTogether;
};

struct PoolReduceOptions {
  ReduceOp op = ReduceOp::kSum;
  // Workers that reduce among themselves: 0 for all, or groups of so many neighbours, the last one
  // perhaps smaller.
  int group = 0;
  // On GPUs engines add in an order of their choice. Fixed: the same bits on every run, for sums.
  // On the host the order is always that of the workers.
  enum class Order { kAny, kFixed };
  Order order = Order::kAny;
  // Other processes that make the same call, each with a pool of its own; one array of each process
  // crosses: on GPUs the first worker's, whose GPU is this rank's. All have GPUs, or none. Excludes
  // `group`, and on GPUs a fixed order; an average on GPUs needs as many in every process.
  Communicator* across = nullptr;
  std::span<const StreamRef> streams = {};
};

// An array of three axes, of which the middle one is cut by seams: `rows` of `inner` elements,
// `outer` times over.
struct HaloShape {
  std::size_t outer = 1;
  std::size_t rows = 0;
  std::size_t inner = 1;
};

struct HaloOptions {
  // Swap: both sides of a seam get what the other one had. Blend: both get the same, which goes
  // over linearly from the lower worker's to the higher one's.
  enum class Mode { kSwap, kBlend };
  Mode mode = Mode::kSwap;
  // The pools of other processes, in the order of their ranks: this process's last worker and the
  // next one's first share a seam too, at `next_seam` here and `previous_seam` there.
  Communicator* across = nullptr;
  std::size_t previous_seam = 0;
  std::size_t next_seam = 0;
  std::span<const StreamRef> streams = {};
};

// One worker, as the functions see it that run in its thread. A view: valid within `map`.
class PoolWorker {
 public:
  explicit PoolWorker(pool::Seat& seat) noexcept : seat_(&seat) {}

  int index() const noexcept;
  int size() const noexcept;  // how many workers there are
  // Its GPU's number; kAnyDevice for workers of the host.
  int device() const noexcept;
  // Its streams: for the work itself, and for what is loaded meanwhile. Workers of GPUs only.
  StreamRef stream() const;
  StreamRef load_stream() const;
  // Among the workers: rank i is worker i. Every worker must make its calls.
  Communicator& communicator() const;
  // Lets the next worker begin, where they begin in turn.
  void begun() const;

 private:
  pool::Seat* seat_;
};

// A resource: threads, GPUs' contexts and streams. Any thread may call, one after the other; a call
// made by one of its own workers is refused, so is one in a forked child. Destroying it waits for
// the workers to end.
//
// An exception that leaves a worker's function ends the calls between workers that the others are
// in (`Aborted` there); when all have come back, the first one is thrown in the caller. The pool
// can be used further.
class [[nodiscard("dropped, it ends its workers at once: keep it")]] DevicePool {
 public:
  // `workers` of the host. Throws InvalidArgument where it is less than 1.
  explicit DevicePool(int workers, const PoolOptions& options = {});
  // A worker for each of `options.devices`. Throws InvalidArgument where one is not there or twice.
  explicit DevicePool(const PoolOptions& options);
  DevicePool(DevicePool&&) noexcept;
  DevicePool& operator=(DevicePool&&) noexcept;
  ~DevicePool();

  int size() const;
  std::span<const int> devices() const;  // empty: workers of the host
  StreamRef stream(int worker) const;
  StreamRef load_stream(int worker) const;

  // Runs `body` once in the thread of each worker, or of each of `workers`, beside each other.
  void map(const std::function<void(PoolWorker&)>& body, const PoolCallOptions& = {});
  void map(std::span<const int> workers,
           const std::function<void(PoolWorker&)>& body,
           const PoolCallOptions& = {});

  // --- Movement -----------------------------------------------------------------------------
  // out[i] = in, a copy for each. `in` may lie on any worker, or in host memory.
  void broadcast(BorrowedView in, std::span<const ArrayView> out, const PoolCallOptions& = {});
  // out[i] = in[from[i]]: what each worker gets of a list of arrays, wherever they lie.
  void distribute(std::span<const ConstArrayView> in,
                  std::span<const int> from,
                  std::span<const ArrayView> out,
                  const PoolCallOptions& = {});
  // The arrays of `out`, one after the other, are `in`; they may differ in size.
  void scatter(BorrowedView in, std::span<const ArrayView> out, const PoolCallOptions& = {});
  // `out`, on any worker or in host memory, is the arrays of `in` one after the other.
  void gather(std::span<const ConstArrayView> in, ArrayView out, const PoolCallOptions& = {});
  // The same, for every worker.
  void all_gather(std::span<const ConstArrayView> in,
                  std::span<const ArrayView> out,
                  const PoolCallOptions& = {});

  // --- Reductions ---------------------------------------------------------------------------
  // In place: every array becomes the reduction of all (or of its group's). Each worker reduces one
  // part for all, so that every array is read and written once.
  void all_reduce(std::span<const ArrayView> inout, const PoolReduceOptions& = {});
  // The same into other arrays, one a worker, none of which is one of `in`.
  void all_reduce(std::span<const ConstArrayView> in,
                  std::span<const ArrayView> out,
                  const PoolReduceOptions& = {});
  // The reduction of all of `in`, which may be more or fewer than there are workers. `out` may be
  // one of `in`. On GPUs `out` lies on a worker, in[i] on worker i, and `group` is 0.
  void reduce(std::span<const ConstArrayView> in, ArrayView out, const PoolReduceOptions& = {});

  // --- Halos --------------------------------------------------------------------------------
  // In place. Workers i and i + 1 share the rows [seams[i], seams[i] + overlap) of arrays of one
  // shape, and exchange them; size() - 1 seams. Where seams overlap they are done from the first
  // on. On GPUs rows that are blended, or cross to another process, pass through host memory, and
  // the call waits for that.
  void exchange_halo(std::span<const ArrayView> arrays,
                     const HaloShape& shape,
                     std::span<const std::size_t> seams,
                     std::size_t overlap,
                     const HaloOptions& = {});

  // Ends the workers' threads, after what they are at. Calls afterwards are refused; again is fine.
  void close();
  // In a forked child it is, too.
  bool is_closed() const;

 private:
  Held<"DevicePool", std::unique_ptr<pool::Pool>> pool_;
};

struct StreamOptions {
  std::size_t chunk = 64;   // items at a time
  std::size_t buffers = 2;  // chunks that may be loaded and not yet used
};

// Works through items [0, count) in chunks, loading ahead: `load(buffer, first, last)` runs in a
// thread of its own and `use(buffer, first, last)` in the caller's, both in order; a buffer, one of
// `options.buffers`, is loaded anew only when it has been used. The first exception of either ends
// both and is thrown. Nothing runs any more on return.
using ChunkFunction = std::function<void(std::size_t buffer, std::size_t first, std::size_t last)>;
void stream_chunks(std::size_t count,
                   const StreamOptions& options,
                   const ChunkFunction& load,
                   const ChunkFunction& use);

}  // namespace hocket
