#include "calls/device/libraries.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "engines/nvshmem/process_heap.h"
#include "hocket/error.h"

namespace hocket::device {
namespace {

engine::CostTable read_costs(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw InvalidArgument(fmt::format("HOCKET_COSTS={}: cannot be read", file));
  try {
    return engine::CostTable::parse(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("HOCKET_COSTS={}: {}", file, error.what()));
  }
}

}  // namespace

DeviceLibraries::DeviceLibraries(std::string costs,
                                 std::vector<std::string> folders,
                                 engine::ProviderList providers)
    : costs_file_(std::move(costs)),
      folders_(std::move(folders)),
      providers_(std::move(providers)) {}

const cuda::FoundDriver& DeviceLibraries::driver() {
  std::call_once(driver_once_, [this] { driver_ = cuda::Driver::find(); });
  return driver_;
}

const engine::CostTable& DeviceLibraries::costs() {
  std::call_once(costs_once_, [this] {
    costs_ = costs_file_.empty() ? engine::CostTable::shipped(providers_) : read_costs(costs_file_);
  });
  return costs_;
}

std::shared_ptr<nvshmem::Heap> DeviceLibraries::nvshmem(std::string& why_not) const {
  return nvshmem::heap_of_process(folders_, why_not);
}

}  // namespace hocket::device
