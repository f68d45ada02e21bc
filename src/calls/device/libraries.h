// The libraries and data for calls on GPUs besides engines: the driver, the cost table, NVSHMEM's
// heap.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cost_table.h"
#include "engine/provider.h"
#include "engines/nvshmem/heap.h"
#include "foundation/cuda/driver.h"

namespace hocket::device {

// A resource. Each library or table is loaded once, at its first use. Any thread may use it.
class DeviceLibraries {
 public:
  // `costs` is a file with a CostTable; empty: the tables that `providers` ship. `folders` are the
  // library folders of Python packages.
  DeviceLibraries(std::string costs,
                  std::vector<std::string> folders,
                  engine::ProviderList providers);

  const cuda::FoundDriver& driver();
  // Throws InvalidArgument if the named file is not a cost table.
  const engine::CostTable& costs();
  // Returns the process's heap. If there is none, returns null and sets `why_not`.
  std::shared_ptr<nvshmem::Heap> nvshmem(std::string& why_not) const;

 private:
  const std::string costs_file_;
  const std::vector<std::string> folders_;
  const engine::ProviderList providers_;
  std::once_flag driver_once_;
  std::once_flag costs_once_;
  cuda::FoundDriver driver_;
  engine::CostTable costs_;
};

}  // namespace hocket::device
