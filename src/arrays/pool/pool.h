// The implementation of a DevicePool: the workers' threads, communicators and GPUs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays/pool/crew.h"
#include "arrays/pool/device_lane.h"
#include "calls/joining/thread_team.h"
#include "foundation/os/segment.h"
#include "hocket/device_pool.h"

namespace hocket::pool {

// The state of a worker. Used by its own thread, and by the caller between runs.
struct WorkerState {
  int index = 0;
  int size = 0;
  DeviceLane* lane = nullptr;  // of the worker's GPU; null on the host
  Crew* crew = nullptr;
  std::optional<World> world;
};

// A resource; see DevicePool for the threads that may call it.
class Pool {
 public:
  Pool(int workers, const PoolOptions& options);
  ~Pool();

  int size() const noexcept { return static_cast<int>(states_.size()); }
  bool has_gpus() const noexcept { return !lanes_.empty(); }
  std::span<const int> devices() const noexcept { return options_.devices; }
  DeviceLane& lane(int worker) const;
  // Returns the GPU in whose memory an array lies; kAnyDevice for host memory.
  int device_of(ConstArrayView array) const;

  using Body = std::function<void(WorkerState&)>;
  void run(std::span<const int> workers, const Body& body, const PoolCallOptions& options);
  // Runs `body` in all workers.
  void run(const Body& body, const PoolCallOptions& options = {}) {
    run(everybody_, body, options);
  }
  void close();
  // Returns whether the pool is closed. It counts as closed in a forked child, which has no worker
  // threads.
  bool is_closed() const noexcept { return crew_ == nullptr || forks_.forked(); }
  // Throws if no call can be made now, from this thread.
  void require_open() const;
  // Throws if a call cannot have these streams of its caller.
  void require_streams(std::span<const StreamRef> streams) const;
  // Makes communicators of `neighbours` consecutive workers each, unless they exist. Then `group`
  // returns the communicator of a worker.
  void make_groups(int neighbours);
  Communicator& group(const WorkerState& state) {
    return *groups_[static_cast<std::size_t>(state.index)];
  }

 private:
  void open_lanes();
  void begin(int member);
  joining::ThreadTeam make_team() const;
  void join(const joining::ThreadTeam& team);
  void run_one(WorkerState& state, const Body& body);
  void stop(const std::string& reason);
  void check_call(std::span<const int> workers, std::span<const StreamRef> streams) const;

  PoolOptions options_;
  os::ForkGuard forks_;
  const joining::TeamResources resources_;
  std::vector<std::unique_ptr<DeviceLane>> lanes_;  // by worker; none on the host
  std::vector<WorkerState> states_;
  std::vector<int> everybody_;
  std::vector<int> processors_;  // processors that this process may use
  bool broken_ = true;           // the communicators have to be made, perhaps again
  int grouped_ = 0;              // number of neighbours in `groups_`
  std::vector<std::optional<Communicator>> groups_;
  std::unique_ptr<Crew> crew_;  // last member, because its threads use the others
};

}  // namespace hocket::pool
