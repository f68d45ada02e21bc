// Checks a call on GPUs, determines its GPU, and how it is enqueued on its stream.
#include <fmt/format.h>

#include "calls/device/calls.h"
#include "foundation/base/hash.h"

namespace hocket::device {

using engine::Kind;

DevicePlan DeviceCalls::checked(const call::Request& request, call::CallStorage& storage) {
  try {
    return prepare(request, storage);
  } catch (...) {
    owner_.refuse_caught(request.kind);
  }
}

DevicePlan DeviceCalls::prepare(const call::Request& request, call::CallStorage& storage) {
  DevicePlan plan{.call = call::check(request, owner_.place(), storage),
                  .epoch = job_.device_blocks().epoch()};
  require_device(request);
  {
    const call::LentTurn lent(owner_);
    check_device(request.in, "in");
    check_device(request.out, "out");
  }
  find_symmetric(plan);
  plan.hash = call::Ledger::hash_of(plan.call.signature);
  return plan;
}

// Finds symmetric arrays by their address. Peers write to the same place of the same block on all
// ranks. So the result is part of the signature, on which all ranks agree.
void DeviceCalls::find_symmetric(DevicePlan& plan) const {
  const engine::Kind kind = plan.call.signature.kind;
  if (!engine::all_take_alike(kind)) return;
  // Peers would overwrite data that has not been sent yet.
  if (engine::swaps_parts(kind) && plan.call.in == plan.call.out) return;
  auto block = job_.device_blocks().find(plan.call.out);
  if (!block || !block->is_direct() || plan.call.signature.count == 0) return;
  const std::size_t offset = *block->offset_of(plan.call.out);
  for (const int world_rank : owner_.membership().world_ranks) {
    std::byte* piece = block->piece_of_world(world_rank);
    if (piece == nullptr) {
      plan.outs.clear();
      return;
    }
    plan.outs.push_back(piece + offset);
  }
  plan.call.signature.symmetric = base::mix(block->id(), offset) | 1;
  plan.block = std::move(block);
}

void DeviceCalls::require_device(const call::Request& request) {
  if (device_) return;
  try {
    const int ordinal = device_of(request);
    device_ =
        std::make_shared<cuda::DeviceContext>(job_.device_libraries().driver().driver, ordinal);
  } catch (const DeviceError& error) {
    throw InvalidArgument(error.what());
  }
}

// Returns the GPU of the arrays. For a barrier it is the GPU whose context is current.
int DeviceCalls::device_of(const call::Request& request) const {
  const auto& found = job_.device_libraries().driver();
  if (!found.driver) throw InvalidArgument("there is no GPU to be used: " + found.why_not);
  const auto of = [&](ConstArrayView array) {
    if (array.memory() != MemoryKind::kCuda) return -1;
    if (array.device() >= 0) return array.device();
    return array.count() == 0 ? -1 : cuda::whereabouts(*found.driver, array.data()).device;
  };
  int device = of(request.out);
  if (device < 0) device = of(request.in);
  if (device < 0 && found.driver->ctx_get_device(&device) != cuda::Result::kSuccess) {
    device = job_.default_device();
  }
  return device;
}

void DeviceCalls::check_device(ConstArrayView array, const char* name) const {
  if (array.memory() != MemoryKind::kCuda || array.count() == 0) return;
  const int device = cuda::gpu_of(device_->driver(), array, name);
  if (device != device_->ordinal()) {
    throw InvalidArgument(fmt::format(
        "{} lies on GPU {}, and this rank's GPU in communicator {} is {}; a rank has one GPU",
        name,
        device,
        owner_.membership().name,
        device_->ordinal()));
  }
}

DeviceCalls::Launch DeviceCalls::opened(const call::Request& request) {
  try {
    return open(request);
  } catch (...) {
    owner_.refuse_caught(request.kind);
  }
}

DeviceCalls::Launch DeviceCalls::open(const call::Request& request) {
  const cuda::DeviceGuard guard(*device_);
  Launch how{.stream = request.stream.value_or(StreamRef()).handle(),
             .allowed = request.deadline.value_or(owner_.deadline())};
  cuda::Capture capture;
  try {
    const call::LentTurn lent(owner_);
    capture = cuda::capture_of(device_->driver(), how.stream);
  } catch (const DeviceError& error) {  // earlier work has broken the GPU's context
    raise(error);
  }
  if (capture == cuda::Capture::kBroken) {
    throw InvalidArgument(
        "stream cannot be used: its capture into a graph has been broken off, or it is the legacy "
        "default stream while another is captured");
  }
  how.captured = capture == cuda::Capture::kActive;
  return how;
}

// Threads that share a GPU also share its default stream. There one rank's kernel would wait for
// another rank's kernel behind it.
void DeviceCalls::require_own_stream(const Launch& how) const {
  const bool is_default = reinterpret_cast<std::uintptr_t>(how.stream) <= 1;  // by either name
  if (!is_default || !engines_->by_crowded_threads() || owner_.size() == 1) return;
  throw InvalidArgument(
      "stream is the default one, which all threads of a process share, and so do several ranks "
      "here their GPU: each needs a stream of its own, such as cupy.cuda.Stream(non_blocking=True) "
      "or torch.cuda.Stream(), as the current one or as stream=");
}

}  // namespace hocket::device
