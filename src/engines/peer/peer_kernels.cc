#include "engines/peer/peer_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engines/peer/images.h"
#include "foundation/cuda/launch_gate.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"

namespace hocket::engines::peer {
namespace {

constexpr const char* kProtocolNames[kProtocolCount] = {"barrier",
                                                        "exchange_small",
                                                        "exchange_small_parts",
                                                        "exchange_packets",
                                                        "exchange_chunks",
                                                        "exchange_direct",
                                                        "reduce_small",
                                                        "reduce_packets",
                                                        "all_reduce_packets",
                                                        "reduce_even",
                                                        "reduce_chunks"};
constexpr const char* kFoldingNames[kFoldingCount] = {"any", "float32", "float16", "bfloat16"};

// Returns the arguments of a step's kernel. They are not const, although the driver only reads
// them.
void* arguments_of(const Step& step) {
  if (takes_small(step.protocol)) return const_cast<SmallParams*>(&step.small);
  if (step.protocol == Protocol::kReduceEven) return const_cast<EvenParams*>(&step.even);
  return const_cast<Params*>(&step.params);
}
int foldings_of(Protocol protocol) { return folds(protocol) ? kFoldingCount : 1; }

}  // namespace

std::string PeerKernels::why_not() {
  return images().move.empty() ? "hocket was built without GPU kernels, as there was no nvcc" : "";
}

PeerKernels::PeerKernels(std::shared_ptr<const cuda::DeviceContext> device, int size)
    : device_(std::move(device)), size_(size) {
  const cuda::DeviceGuard guard(*device_);
  const cuda::LaunchPause pause(*device_);
  move_ = load(images().move);
  try {
    fold_ = load(images().fold[capacity_index(size)]);
    find_functions();
    begins_early_ = may_begin_early();
    run_all();
  } catch (...) {
    if (fold_ != nullptr) device_->driver().module_unload(fold_);
    device_->driver().module_unload(move_);
    throw;
  }
}

PeerKernels::~PeerKernels() {
  const cuda::DeviceGuard guard(*device_);
  const cuda::LaunchPause pause(*device_);
  device_->driver().module_unload(fold_);
  device_->driver().module_unload(move_);
}

cuda::Module PeerKernels::load(std::span<const std::byte> image) const {
  cuda::Module module = nullptr;
  cuda::check(device_->driver(),
              device_->driver().module_load_data(&module, image.data()),
              fmt::format("load hocket's kernels on GPU {}", device_->ordinal()));
  return module;
}

void PeerKernels::find_functions() {
  const cuda::Driver& driver = device_->driver();
  for (int p = 0; p < kProtocolCount; ++p) {
    const auto protocol = static_cast<Protocol>(p);
    const bool by_ranks = folds(protocol) || protocol == Protocol::kExchangeSmall ||
                          protocol == Protocol::kExchangeSmallParts;
    for (int f = 0; f < foldings_of(protocol); ++f) {
      std::string name = fmt::format("hocket_peer_{}", kProtocolNames[p]);
      if (folds(protocol)) name += fmt::format("_{}", kFoldingNames[f]);
      cuda::check(
          driver,
          driver.module_get_function(&functions_[p][f], by_ranks ? fold_ : move_, name.c_str()),
          fmt::format("find kernel {}", name));
    }
  }
}

// Returns whether a kernel may be launched while the previous kernel of its stream still runs. The
// kernel then waits for the end of the previous kernel by an instruction. Kernels have this
// instruction if they were compiled for Hopper or later GPUs. Graphs support such launches from
// CUDA 12.3 on.
bool PeerKernels::may_begin_early() const {
  const cuda::Driver& driver = device_->driver();
  if (driver.version() < 12030) return false;
  int version = 0;
  cuda::check(
      driver,
      driver.func_get_attribute(&version, cuda::FunctionAttribute::kPtxVersion, functions_[0][0]),
      "ask what kernels were compiled for");
  return version >= 90;
}

// Runs each kernel once without data, with the largest number of threads. So a driver that loads
// lazily loads the kernel now, and allocates its stacks now.
void PeerKernels::run_all() const {
  const cuda::Driver& driver = device_->driver();
  const cuda::OwnedStream stream(device_);
  // the part of a staging area that the kernels read in such a run
  constexpr std::size_t kBytes = Layout::kHeaderBytes + Layout::kLinksBytes;
  const cuda::DeviceBuffer area(device_, kBytes);
  cuda::check(driver,
              driver.memset_d8_async(area.address(), 0, kBytes, stream.get()),
              "clear memory of a GPU");
  for (int p = 0; p < kProtocolCount; ++p) {
    Step step{.protocol = static_cast<Protocol>(p)};
    for (LaneParams* lane : {static_cast<LaneParams*>(&step.small),
                             static_cast<LaneParams*>(&step.even),
                             static_cast<LaneParams*>(&step.params)}) {
      lane->staging = static_cast<std::byte*>(area.data());
    }
    const int threads = most_threads(step.protocol, size_);
    for (int f = 0; f < foldings_of(step.protocol); ++f) {
      void* arguments[] = {arguments_of(step)};
      const cuda::LaunchConfig config{.block_x = static_cast<unsigned>(threads),
                                      .stream = stream.get()};
      cuda::check(driver,
                  driver.launch_kernel_ex(&config, functions_[p][f], arguments, nullptr),
                  "launch a kernel for the first time");
    }
  }
  cuda::check(driver, driver.stream_synchronize(stream.get()), "run kernels for the first time");
}

int PeerKernels::blocks_at_once() const {
  const cuda::Driver& driver = device_->driver();
  int least = std::numeric_limits<int>::max();
  for (int p = 0; p < kProtocolCount; ++p) {
    const auto protocol = static_cast<Protocol>(p);
    for (int f = 0; f < foldings_of(protocol); ++f) {
      int blocks = 0;
      cuda::check(driver,
                  driver.occupancy_max_active_blocks_per_multiprocessor(
                      &blocks, functions_[p][f], most_threads(protocol, size_), 0),
                  "ask how many blocks run at a time");
      least = std::min(least, blocks);
    }
  }
  return least * device_->attribute(cuda::DeviceAttribute::kMultiprocessors);
}

void PeerKernels::launch(const Step& step, cuda::Stream stream) const {
  const cuda::Driver& driver = device_->driver();
  const auto folding = folds(step.protocol) ? folding_of(step.fold()) : Folding::kAny;
  void* arguments[] = {arguments_of(step)};
  cuda::LaunchAttribute early{.id = cuda::LaunchAttributeId::kProgrammaticStreamSerialization,
                              .allowed = 1};
  const cuda::LaunchConfig config{.grid_x = static_cast<unsigned>(step.blocks),
                                  .block_x = static_cast<unsigned>(step.threads),
                                  .stream = stream,
                                  .attributes = &early,
                                  .attribute_count = begins_early_ ? 1u : 0u};
  cuda::check(driver,
              driver.launch_kernel_ex(
                  &config,
                  functions_[static_cast<int>(step.protocol)][static_cast<int>(folding)],
                  arguments,
                  nullptr),
              "launch a kernel");
}

}  // namespace hocket::engines::peer
