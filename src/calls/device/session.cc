#include "calls/device/session.h"

#include <fmt/format.h>

#include "foundation/base/poll.h"
#include "foundation/cuda/launch_gate.h"

namespace hocket::device {

using base::Deadline;
using engine::Kind;
using engine::Signature;

DeviceSession::~DeviceSession() { close(); }

void DeviceSession::require_device(const call::Request& request) {
  if (gpu_) return;
  try {
    const int ordinal = device_of(request);
    gpu_ = std::make_shared<cuda::DeviceContext>(job_.device_libraries().driver().driver, ordinal);
  } catch (const DeviceError& error) {
    throw InvalidArgument(error.what());
  }
}

// Returns the GPU of the arrays. For a barrier it is the GPU whose context is current.
int DeviceSession::device_of(const call::Request& request) const {
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

void DeviceSession::check_device(ConstArrayView array, const char* name) const {
  if (array.memory() != MemoryKind::kCuda || array.count() == 0) return;
  const int device = cuda::gpu_of(gpu_->driver(), array, name);
  if (device != gpu_->ordinal()) {
    throw InvalidArgument(fmt::format(
        "{} lies on GPU {}, and this rank's GPU in communicator {} is {}; a rank has one GPU",
        name,
        device,
        owner_.membership().name,
        gpu_->ordinal()));
  }
}

std::vector<std::byte> DeviceSession::gather(const Signature& shown,
                                             std::span<const std::byte> own,
                                             std::optional<Duration> deadline) {
  std::vector<std::byte> all(own.size() * static_cast<std::size_t>(owner_.size()));
  call::CallStorage storage;
  call::Plan plan = owner_.planner().plan({.kind = Kind::kAllGather,
                                           .in = {own.data(), own.size(), DType::kUInt8},
                                           .out = {all.data(), all.size(), DType::kUInt8}},
                                          storage,
                                          &shown);
  owner_.execute(plan, shown, deadline, nullptr);
  return all;
}

void DeviceSession::require_engines(const Signature& shown) {
  if (engines_) return;
  const cuda::OutsideCapture outside(gpu_->driver());
  auto engines = std::make_unique<DeviceEngines>(
      job_, owner_.membership(), gpu_, relay_.any(), [&](std::span<const std::byte> own) {
        return gather(shown, own);
      });
  const auto lateness = [this](std::uint64_t sequence, Duration allowed) {
    return owner_.inquiry().lateness({.sequence = sequence}, allowed);
  };
  watch_ = std::make_shared<DeviceWatch>(owner_.group(), gpu_, owner_.long_waits(), lateness);
  require_streams();
  engines_ = std::move(engines);
  job_.add_periodic_task(watch_);
  while ((messenger_ = engines_->messenger()) != nullptr && !connect(*messenger_, shown)) {
  }
  if (engines_->relayed()) exchange_relay_counts(shown);
}

void DeviceSession::require_streams() {
  if (streams_) return;
  DeviceStreams streams{.events = std::make_shared<EventPool>(gpu_),
                        .order = StreamOrder(gpu_),
                        .times = nullptr,
                        .staging = nullptr};
  if (owner_.tracing().times_streams()) streams.times = std::make_unique<StreamTimes>(gpu_);
  streams.staging = std::make_shared<Staging>(gpu_);
  job_.finish_at_exit(owner_.weak_from_this());
  streams_.emplace(std::move(streams));
}

// Exchanges how many messages with each rank went through the host, so that both ends of a later
// message agree on its route.
void DeviceSession::exchange_relay_counts(const engine::Signature& shown) {
  const std::vector<DeviceRelay::MessageCounts>& own = relay_.counts();
  std::vector<DeviceRelay::MessageCounts> theirs(own.size());
  const auto view = [](auto& tallies) {
    const auto bytes = std::as_bytes(std::span(tallies));
    return ConstArrayView(bytes.data(), bytes.size() / sizeof(std::uint32_t), DType::kUInt32);
  };
  call::CallStorage storage;
  call::Plan plan =
      owner_.planner().plan({.kind = engine::Kind::kAllToAll,
                             .in = view(own),
                             .out = {theirs.data(), 2 * theirs.size(), DType::kUInt32}},
                            storage,
                            &shown);
  owner_.execute(plan, shown, std::nullopt, nullptr);
  relay_.count_owed(theirs);
}

std::function<void()> DeviceSession::looking() {
  return [this, doubt = failure::Doubt()]() mutable {
    const failure::Verdict verdict =
        owner_.inquiry().look({.sequence = owner_.ledger().last() + 1}, doubt);
    if (const auto* refusal = std::get_if<failure::Refusal>(&verdict)) {
      owner_.ledger().begin_anew_after(refusal->sequence);
    }
    owner_.failures.raise_any(verdict);
  };
}

bool DeviceSession::connect(engine::DeviceEngine& engine, const Signature& shown) {
  finish_relayed();
  const engine::Introduction introduction{
      .gather = [&](std::span<const std::byte> own) { return gather(shown, own); },
      .look = looking(),
      .deadline = Deadline::in(owner_.deadline())};
  const cuda::OutsideCapture outside(gpu_->driver());
  const bool works = engines_->connect(engine, introduction);
  if (works) watch_->add(engine);
  return works;
}

// Ends the communicator with a device error. If a peer's death may be the cause, the watch first
// gets time to learn of that death.
void DeviceSession::raise(const DeviceError& error,
                          std::uint64_t sequence,
                          const Signature& signature) {
  try {
    throw;  // throws `error` with its original type
  } catch (const engine::MaybeLoss&) {
    job_.look_again();
    base::poll_until([this] { return owner_.group().failed(); },
                     Deadline::in(engine::kLossDoubt),
                     std::chrono::milliseconds(1));
  } catch (const DeviceError&) {
  }
  owner_.failures.raise({.cause = control::Cause::kDevice,
                         .reporter = owner_.rank(),
                         .culprit = owner_.rank(),
                         .sequence = sequence,
                         .signature = signature,
                         .text = error.what()});
}

void DeviceSession::finish_queue() {
  owner_.runner().advance_until([this] { return owner_.runner().queue().empty(); });
  watch_->look_at_result();  // for calls that have just ended, before the watch's own next look
  owner_.require_usable();
}

void DeviceSession::finish_relayed() {
  owner_.runner().advance_until([this] { return !relay_.holds_streams(); });
  owner_.require_usable();
}

bool DeviceSession::meets_other_hosts() const noexcept {
  if (!engines_ || !engines_->any_meets()) return false;
  const control::GroupControl& group = owner_.group();
  for (int i = 0; i < group.size(); ++i) {
    if (!group.is_here(i)) return true;
  }
  return false;
}

}  // namespace hocket::device
