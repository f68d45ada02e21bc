// One rank's part in a job: its place on the host, its progress thread, its settings.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calls/device/blocks.h"
#include "calls/device/device_job_context.h"
#include "calls/device/libraries.h"
#include "calls/world/group_engines.h"
#include "calls/world/job_engines.h"
#include "engines/algorithm/catalogue.h"
#include "foundation/os/machine/allotment.h"
#include "foundation/os/segment.h"
#include "hocket/group.h"
#include "hocket/live.h"
#include "membership/control/host/host.h"
#include "membership/control/network.h"
#include "membership/failure/witness.h"
#include "monitoring/observe/trace_file.h"

namespace hocket::world {

class NetworkTick;
class PlaceTick;
class ProgressThread;

// The parts from which a rank's world is made. A value.
struct WorldParts {
  LaunchInfo launch;
  InitOptions options;         // options with which this rank joined
  std::shared_ptr<void> door;  // set if this process opened the door for newcomers
  std::string name = "world";  // name of the communicator of all ranks
  std::shared_ptr<os::Segment> segment;
  int host_rank = 0;
  std::vector<int> hosts;       // host number of each world rank
  std::vector<int> host_ranks;  // by world rank: its place, see control::HostView
  os::Pace pace = os::Pace::kSharesProcessors;
  std::shared_ptr<control::Network> network;  // null if there is one host
  bool threads = false;                       // the ranks are threads
  base::SingleCopy single_copy = base::SingleCopy::kNever;
  JobEngines engines;
  algorithm::Choices algorithms;  // forced by the user
  Duration deadline{};
  base::WaitTimes waits{.warn_after = kForever};
  bool is_shown = true;  // whether `hocket top` shows the job
  std::string dump_directory;
  std::shared_ptr<observe::TraceFile> trace;  // null: no trace
  std::shared_ptr<observe::AuditFile> audit;  // null: the job is not audited
  std::string audit_folder;                   // for audits of single communicators
  std::shared_ptr<device::DeviceLibraries> device_libraries;
  std::shared_ptr<Store> store;  // lives as long as the world
  // Number of clients of the store, if this process serves it: see rendezvous::Joined.
  std::function<std::optional<std::size_t>()> store_clients;
};

// A resource, shared by the World and its communicators. Thread-safe, except where noted.
class WorldImpl final : public device::DeviceJobContext,
                        public std::enable_shared_from_this<WorldImpl> {
 public:
  // Joins the other ranks on this host. Then `make_communicator` may be called once.
  static std::shared_ptr<WorldImpl> make(WorldParts parts, base::Deadline deadline);
  ~WorldImpl() override;

  control::HostControl& host() noexcept override { return *host_; }
  failure::Witness& witness() noexcept override { return *witness_; }
  const LaunchInfo& launch() const noexcept { return parts_.launch; }
  const InitOptions& options() const noexcept { return parts_.options; }
  const std::shared_ptr<void>& door() const noexcept { return parts_.door; }
  const JobEngines& engines() const noexcept { return parts_.engines; }
  const engine::ProviderList& providers() const noexcept override {
    return parts_.engines.chosen();
  }
  const algorithm::Choices& algorithms() const noexcept { return parts_.algorithms; }
  // True if the ranks are threads of one process.
  bool threads() const noexcept override { return parts_.threads; }
  // Null in a job of one rank.
  const std::shared_ptr<Store>& store() const noexcept { return parts_.store; }
  Duration default_deadline() const noexcept { return parts_.deadline; }
  base::WaitTimes wait_times() const noexcept override { return parts_.waits; }
  const std::string& dump_directory() const noexcept override { return parts_.dump_directory; }
  // Null if no trace is written.
  const std::shared_ptr<observe::TraceFile>& trace() const noexcept override {
    return parts_.trace;
  }
  const std::shared_ptr<observe::AuditFile>& audit() const noexcept override {
    return parts_.audit;
  }
  std::shared_ptr<observe::AuditFile> open_audit() override;
  int world_rank() const noexcept override { return parts_.launch.rank; }
  const os::ForkGuard& forks() const noexcept override { return guard_; }
  bool forked() const noexcept { return guard_.forked(); }
  // True if the user wants the waiting thread to stop. Checks at most every few milliseconds.
  bool interrupted() override;

  Communicator make_communicator();
  int size() const noexcept override { return static_cast<int>(parts_.hosts.size()); }

  // Makes the progress thread move a communicator's calls until none is pending.
  void watch(std::shared_ptr<call::Core> calls) override;

  // True if no calls are pending that the progress thread moves.
  bool is_idle() const noexcept;

  // True if the program has seen an error about a lost peer, and needs no second one.
  bool has_told_of_loss() const noexcept override {
    return told_of_loss_.load(std::memory_order_relaxed);
  }
  void tell_of_loss() noexcept override { told_of_loss_.store(true, std::memory_order_relaxed); }

  // --- For calls on GPUs ------------------------------------------------------------------------

  device::DeviceLibraries& device_libraries() noexcept override { return *parts_.device_libraries; }
  device::DeviceBlocks& device_blocks() noexcept override { return device_blocks_; }
  // Returns the GPU for this rank's place on its host.
  int default_device() override;
  void add_periodic_task(std::weak_ptr<call::PeriodicTask> task) override;
  void look_again() noexcept override;
  void finish_at_exit(std::weak_ptr<call::Core> core) override;

  // True if this rank has left the job.
  bool has_left() const noexcept override {
    return host_->liveness.state(parts_.host_rank) == control::RankState::kLeft;
  }
  bool is_ending() const noexcept override { return is_ending_.load(std::memory_order_relaxed); }
  // Notes that the process ends. Call it before `leave` or `depart`.
  void set_ending() noexcept { is_ending_.store(true, std::memory_order_relaxed); }
  // Tells the store that this rank ends, before other ranks see the end and may end because of it.
  // A launcher judges by the order in which ranks say goodbye.
  void say_goodbye() noexcept;
  // Leaves the job, and drops the store.
  void leave() noexcept;
  void leave_at_exit() noexcept { leaves_at_exit_.store(true, std::memory_order_relaxed); }
  bool leaves_at_exit() const noexcept { return leaves_at_exit_.load(std::memory_order_relaxed); }
  // Announces the reason of an end with an error, before or after `leave`.
  void tell_end(std::string_view why) noexcept;
  // The same as hocket::tell_trouble.
  void tell_trouble(std::string_view what) noexcept;
  // Announces that the process exits with this status.
  void tell_status(int status) noexcept;
  // Leaves the job, as far as other ranks see it. kAtExit: the process ends.
  enum class Manner : std::uint8_t { kOrdinary, kAtExit };
  void depart(Manner manner) noexcept;
  bool has_lost_one_of(int places) const noexcept;
  // Tells the engines that a rank of the job has died.
  void forsake() noexcept;
  // Notes that a group is closed on this rank. Its hold on the group's block is released once no
  // engine needs it.
  void release_group(std::uint64_t id, std::uint64_t block) noexcept;

 private:
  explicit WorldImpl(WorldParts parts);
  void join(base::Deadline deadline);
  void agree_on_single_copy(base::Deadline deadline);
  void prepare_to_leave() noexcept;
  call::Membership membership() const;
  std::shared_ptr<engine::Carrier> carrier() const;
  void attach(engine::Carrier& carrier);

  WorldParts parts_;
  device::DeviceBlocks device_blocks_;
  os::ForkGuard guard_;
  std::shared_ptr<control::HostControl> host_;
  std::shared_ptr<failure::Witness> witness_;
  std::unique_ptr<ProgressThread> progress_;
  std::unique_ptr<MetricsServer> metrics_;  // on one rank of each host, if requested
  std::shared_ptr<NetworkTick> network_tick_;
  std::shared_ptr<PlaceTick> place_tick_;  // null: no function tells a place
  std::mutex audit_mutex_;
  std::shared_ptr<observe::AuditFile> late_audit_;  // for communicators that want an audit
  std::atomic<bool> told_of_loss_{false};
  std::atomic<bool> leaves_at_exit_{false};
  std::atomic<bool> is_ending_{false};
  bool is_kept_ = false;                   // the ExitList keeps this, to leave later
  std::atomic<std::int64_t> asked_at_{0};  // the last check by interrupted(), in ns
};

}  // namespace hocket::world
