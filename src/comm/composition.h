// The composition root: the one place that names concrete engines.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "comm/communicator_impl.h"
#include "comm/device_engines.h"
#include "control/network.h"
#include "cuda/driver.h"
#include "engine/cost_table.h"
#include "hocket/launch.h"
#include "hocket/store.h"
#include "nvshmem/heap.h"

namespace hocket::comm {

// What ranks that are threads of one process share beside the segment.
class ThreadJob;
std::shared_ptr<ThreadJob> make_thread_job();

// What is told of libraries for GPUs. A value.
struct DeviceSettings {
  std::string nccl_library;          // a file; empty: looked for
  std::string nvshmem_library;       // likewise
  std::vector<std::string> folders;  // where Python's packages have theirs
  bool multicast = false;            // NCCL and NVSHMEM may use NVLink multicast
  bool ras = false;                  // NCCL may open its port for monitoring
  std::string costs;                 // a file with a CostTable; empty: the shipped one
};

// A resource: the driver and libraries of GPUs, loaded when they are first asked for. Any thread.
class DeviceLibraries {
 public:
  virtual ~DeviceLibraries() = default;
  virtual const cuda::Found& driver() = 0;
  // 0: there is none, and why.
  virtual int nccl_version(std::string& why_not) = 0;
  // The process's. Null: there is none, and why.
  virtual std::shared_ptr<nvshmem::Heap> nvshmem(std::string& why_not) = 0;
  // What engines are chosen by. Throws InvalidArgument where a file was named that is none.
  virtual const engine::CostTable& costs() = 0;
};
std::shared_ptr<DeviceLibraries> make_device_libraries(DeviceSettings settings);

// What is told of the network. A value.
struct CarriageSettings {
  std::string interface;                  // by name; empty: the library chooses
  std::string bulk;                       // base::Config::ucx_bulk
  std::string gpus;                       // base::Config::ucx_gpus
  std::string library;                    // a file; empty: looked for
  std::vector<std::string> folders = {};  // where Python's packages have theirs
};

// A resource: what brings messages from other hosts, of all groups of this process. Any thread.
class Carriage {
 public:
  virtual ~Carriage() = default;
  // What others need to reach this rank; then those of all, before the first message.
  virtual Bytes address() const = 0;
  virtual void meet(std::vector<Bytes> addresses) = 0;
  // Why there is no way to that rank; empty: there may be one.
  virtual std::string why_unreachable(int rank) = 0;
  // Whom to wake when something has come, and who has to help where a message cannot leave at once.
  // `places`: of each world rank on this host, see HostControl.
  virtual void attach(control::HostControl* host,
                      control::Network* network,
                      std::vector<int> places) = 0;
  virtual control::Carrier carrier() = 0;
  // Waits until what was sent has left; false at the deadline.
  virtual bool flush(base::Deadline deadline) noexcept = 0;
  // From now on nothing happens any more.
  virtual void retire() noexcept = 0;
};
// Throws RendezvousError where no library for it is installed, and says how to get one.
std::shared_ptr<Carriage> make_carriage(const CarriageSettings& settings);

// What a job of several hosts would find here. A value.
struct UcxFacts {
  std::string version;
  bool knows_gpus = false;
  std::string why_not;  // empty: it works
};
// Starts the library, which may crash or hang: see os::run_in_child.
UcxFacts look_at_ucx(const base::Config& config);

// "a,b" as {"a", "b"}.
std::vector<std::string> split_names(const std::string& comma_separated);
// Whether the engine is for arrays in GPUs' memory.
bool is_of_gpus(const std::string& name);
// The engines asked for: by the options, by HOCKET_ENGINES, or those that a forced algorithm needs;
// empty: nobody asked.
std::vector<std::string> wanted_engines(const InitOptions& options,
                                        const base::Config& config,
                                        bool threads);
// Names of the engines there are for this kind of job, best first. Throws InvalidArgument for a
// wanted one that there is not.
std::vector<std::string> choose_engines(const std::vector<std::string>& wanted, bool threads);

// Bytes of the host's segment that a group needs.
// `spans`: there are members on other hosts, too.
struct GroupShape {
  int size = 1;   // all members
  int local = 1;  // those on this host
  bool spans() const noexcept { return local != size; }
};
std::size_t group_bytes(const std::vector<std::string>& engines, const GroupShape& shape);
// Writes an empty group into zeroed memory. `places`: of each member; see control::HostControl.
void format_group(std::byte* memory, std::span<const int> places, int local);

// Of settings such as HOCKET_UCX_GPUS.
UseGpus use_of_gpus(const std::string& setting);
// What HOCKET_UCX_GPUS and HOCKET_MPI_GPUS say here; never where the ranks have no UCX, or no MPI.
UseGpus ucx_gpus(WorldImpl& world);
UseGpus mpi_gpus(WorldImpl& world);

// Engines of GPUs for a group whose ranks agreed so, best first. `notes` learns why others are not
// among them.
std::vector<std::unique_ptr<engine::DeviceEngine>> make_device_engines(
    WorldImpl& world,
    const call::Membership& membership,
    const std::shared_ptr<const cuda::DeviceContext>& device,
    const DeviceAgreement& agreed,
    std::vector<std::string>& notes);

call::Engines make_engines(WorldImpl& world,
                     const call::Membership& membership,
                     control::GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block);

}  // namespace hocket::comm
