// The kernels of the engine `peer`, executed by the host: the same source, with a thread for each
// block. Of the code compiled for GPUs, only the names are read.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fake.h"
#include "peer_on_host.h"

using namespace hocket::cuda;

struct CUfunc_st {
  hocket::engines::peer::Protocol protocol;
};

namespace fake {
namespace {

namespace peer = hocket::engines::peer;
using peer::Protocol;

struct Kernel {
  std::string_view name;  // of a protocol that folds the names go on
  CUfunc_st function;
};
constexpr std::string_view kPrefix = "hocket_peer_";
std::array<Kernel, peer::kProtocolCount> kernels{{
    {"barrier", {Protocol::kBarrier}},
    {"exchange_small", {Protocol::kExchangeSmall}},
    {"exchange_small_parts", {Protocol::kExchangeSmallParts}},
    {"exchange_packets", {Protocol::kExchangePackets}},
    {"exchange_chunks", {Protocol::kExchangeChunks}},
    {"exchange_direct", {Protocol::kExchangeDirect}},
    {"reduce_small_", {Protocol::kReduceSmall}},
    {"reduce_packets_", {Protocol::kReducePackets}},
    {"all_reduce_packets_", {Protocol::kAllReducePackets}},
    {"reduce_even_", {Protocol::kReduceEven}},
    {"reduce_chunks_", {Protocol::kReduceChunks}},
}};

Result module_load_data(Module* module, const void* image) {
  *module = static_cast<Module>(const_cast<void*>(image));
  return Result::kSuccess;
}
Result module_unload(Module) { return Result::kSuccess; }

Result module_get_function(Function* function, Module, const char* name) {
  std::string_view wanted = name;
  if (!wanted.starts_with(kPrefix)) return Result::kNotSupported;
  wanted.remove_prefix(kPrefix.size());
  for (Kernel& kernel : kernels) {
    const bool folds = peer::folds(kernel.function.protocol);
    if (folds ? !wanted.starts_with(kernel.name) : wanted != kernel.name) continue;
    *function = &kernel.function;
    return Result::kSuccess;
  }
  return Result::kNotSupported;
}

Result func_get_attribute(int* value, FunctionAttribute, Function) {
  *value = 0;  // compiled for no GPU: each kernel waits for the end of the one before
  return Result::kSuccess;
}
// FAKE_CUDA_BLOCKS: how many blocks run side by side.
Result occupancy(int* blocks, Function, int, std::size_t) {
  const char* wanted = std::getenv("FAKE_CUDA_BLOCKS");
  *blocks = wanted == nullptr ? 4 : std::atoi(wanted);
  return Result::kSuccess;
}

// The parameters are copied, as drivers do.
Result launch_kernel_ex(const LaunchConfig* config, Function function, void** arguments, void**) {
  peer::Step step{.protocol = function->protocol,
                  .blocks = static_cast<int>(config->grid_x),
                  .threads = static_cast<int>(config->block_x)};
  if (peer::takes_small(step.protocol)) {
    step.small = *static_cast<const peer::SmallParams*>(arguments[0]);
  } else if (step.protocol == Protocol::kReduceEven) {
    step.even = *static_cast<const peer::EvenParams*>(arguments[0]);
  } else {
    step.params = *static_cast<const peer::Params*>(arguments[0]);
  }
  return enqueue(config->stream, [step] { hocket::conformance::run_on_host(step, 1); });
}

}  // namespace

std::vector<Entry> kernel_functions() {
  return {entry("cuModuleLoadData", module_load_data),
          entry("cuModuleUnload", module_unload),
          entry("cuModuleGetFunction", module_get_function),
          entry("cuFuncGetAttribute", func_get_attribute),
          entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy),
          entry("cuLaunchKernelEx", launch_kernel_ex)};
}

}  // namespace fake
