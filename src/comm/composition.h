// The composition root: the one place that names concrete engines.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/deadline.h"
#include "comm/communicator_impl.h"
#include "comm/device_engines.h"
#include "cuda/driver.h"
#include "engine/cost_table.h"
#include "hocket/launch.h"

namespace hocket::comm {

// What ranks that are threads of one process share beside the segment.
class ThreadJob;
std::shared_ptr<ThreadJob> make_thread_job();

// What is told of libraries for GPUs. A value.
struct DeviceSettings {
  std::string nccl_library;          // a file; empty: looked for
  std::vector<std::string> folders;  // where Python's packages have theirs
  bool multicast = false;            // NCCL may use NVLink multicast
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
  // What engines are chosen by. Throws InvalidArgument where a file was named that is none.
  virtual const engine::CostTable& costs() = 0;
};
std::shared_ptr<DeviceLibraries> make_device_libraries(DeviceSettings settings);

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

// Bytes of the host's segment that a group with `size` members on this host needs.
std::size_t group_bytes(const std::vector<std::string>& engines, int size);
// Writes an empty group into zeroed memory.
void format_group(std::byte* memory, int size);

// Engines of GPUs for a group whose ranks agreed so, best first. `notes` learns why others are not
// among them.
std::vector<std::unique_ptr<engine::DeviceEngine>> make_device_engines(
    WorldImpl& world,
    const Membership& membership,
    const std::shared_ptr<const cuda::DeviceContext>& device,
    const DeviceAgreement& agreed,
    std::vector<std::string>& notes);

Engines make_engines(WorldImpl& world,
                     const Membership& membership,
                     control::GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block);

}  // namespace hocket::comm
