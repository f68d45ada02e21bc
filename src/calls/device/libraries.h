// What calls on GPUs need beside engines: the driver, what was measured of engines, NVSHMEM's heap.
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

// A resource: each is looked for once, when it is first asked for. Any thread.
class DeviceLibraries {
 public:
  // `costs`: a file with a CostTable; empty: what `providers` ship. `folders`: where Python's
  // packages have their libraries.
  DeviceLibraries(std::string costs,
                  std::vector<std::string> folders,
                  engine::ProviderList providers);

  const cuda::FoundDriver& driver();
  // Throws InvalidArgument where a file was named that is none.
  const engine::CostTable& costs();
  // The process's. Null: there is none, and why.
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
