// One rank's GPU in a communicator: its engines, its streams' common objects, and its end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calls/call/core.h"
#include "calls/device/device_job_context.h"
#include "calls/device/engines.h"
#include "calls/device/relay.h"
#include "calls/device/streams/order.h"
#include "calls/device/streams/staging.h"
#include "calls/device/streams/times.h"
#include "calls/device/streams/watch.h"
#include "calls/device/streams/work.h"
#include "engine/gather.h"

namespace hocket::device {

// The objects that calls on streams need with any engine. A resource; its GPU outlives it.
struct DeviceStreams {
  std::shared_ptr<EventPool> events;
  StreamOrder order;
  std::unique_ptr<StreamTimes> times;  // null: times are not recorded
  std::shared_ptr<Staging> staging;
};

// A resource, one for each communicator that has made a call on GPUs. The communicator's turn
// guards it.
class DeviceSession {
 public:
  DeviceSession(call::Core& owner, DeviceJobContext& job)
      : owner_(owner), job_(job), relay_(owner) {}
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  call::Core& owner() noexcept { return owner_; }
  DeviceJobContext& job() noexcept { return job_; }

  // --- The GPU ---------------------------------------------------------------------------------

  // Sets this rank's GPU at the first call; later calls do nothing. Throws InvalidArgument.
  void require_device(const call::Request& request);
  // Throws InvalidArgument if the array lies on another GPU.
  void check_device(ConstArrayView array, const char* name) const;
  // The GPU of this rank in this communicator; null before the first call.
  const std::shared_ptr<const cuda::DeviceContext>& gpu() const noexcept { return gpu_; }

  // --- Engines ---------------------------------------------------------------------------------

  // Makes the engines at the first call, which is collective.
  void require_engines(const engine::Signature& shown);
  bool has_engines() const noexcept { return engines_ != nullptr; }
  DeviceEngines& engines() noexcept { return *engines_; }
  DeviceWatch& watch() noexcept { return *watch_; }
  // Collective; see DeviceEngines::connect.
  bool connect(engine::DeviceEngine& engine, const engine::Signature& shown);
  // The engine that carries messages; null: the host carries them. It is equal on all ranks after
  // `require_engines`, so both ends of a message use it.
  engine::DeviceEngine* messenger() noexcept { return messenger_; }
  DeviceRelay& relay() noexcept { return relay_; }
  // Returns whether kernels on several hosts wait for each other. Calls of such kernels are not
  // compared in advance.
  bool meets_other_hosts() const noexcept;
  // Gathers every rank's bytes with the communicator's engine for the host. The gather is part of a
  // call on GPUs, which `shown` names.
  std::vector<std::byte> gather(const engine::Signature& shown,
                                std::span<const std::byte> own,
                                std::optional<Duration> deadline = std::nullopt);
  template <typename T>
  std::vector<T> gather_values(const T& own,
                               const engine::Signature& shown,
                               std::optional<Duration> deadline) {
    return engine::gather_values(
        [&](std::span<const std::byte> bytes) { return gather(shown, bytes, deadline); }, own);
  }
  // Returns a function that a thread calls while it waits for all ranks. It throws if the group has
  // failed, or if a rank has refused the call or was lost.
  std::function<void()> looking();

  // --- Streams ---------------------------------------------------------------------------------

  void require_streams();
  bool has_streams() const noexcept { return streams_.has_value(); }
  DeviceStreams& streams() noexcept { return *streams_; }

  // --- Ends ------------------------------------------------------------------------------------

  // Ends the communicator with an error of a call that the other ranks also enqueue, and throws it.
  [[noreturn]] void raise(const DeviceError& error,
                          std::uint64_t sequence = 0,
                          const engine::Signature& signature = {});
  // Finishes the queued calls that the host carries, because they come before the next call.
  void finish_queue();
  // Must be called before waiting for a stream, or for all work of the GPU as the driver does when
  // memory is freed. A stream may wait for messages or calls (see finish_queue) that this thread
  // has to move.
  void finish_relayed();
  // Must be called when a stream has passed a call. It throws nothing, but makes failures of the
  // call known.
  void look_at_result() noexcept {
    if (watch_) watch_->look_at_result();
  }
  // Returns whether a call on GPUs may have been aborted.
  bool was_cut_short() const noexcept { return watch_ && watch_->was_cut_short(); }
  // Waits until the calls on the GPU have ended or reached their deadlines.
  void finish() noexcept;
  // Releases everything when the work on the GPU has ended.
  void close() noexcept;

 private:
  int device_of(const call::Request& request) const;
  void exchange_relay_counts(const engine::Signature& shown);
  void finish_staged() noexcept;
  void await_last();

  call::Core& owner_;
  DeviceJobContext& job_;
  std::shared_ptr<const cuda::DeviceContext> gpu_;
  std::unique_ptr<DeviceEngines> engines_;
  engine::DeviceEngine* messenger_ = nullptr;
  DeviceRelay relay_;
  std::shared_ptr<DeviceWatch> watch_;
  std::optional<DeviceStreams> streams_;
};

}  // namespace hocket::device
