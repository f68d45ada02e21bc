// Arrays in GPUs' memory by UCX: movement and messages, from array to array.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cuda/memory.h"
#include "cuda/stream.h"
#include "engine/device_engine.h"
#include "engines/ucx/ucx_point_to_point.h"
#include "movement/conveyor.h"
#include "movement/moves.h"
#include "os/wakeup.h"

namespace hocket::engines::ucx {

// A value.
struct DeviceOptions {
  // A fabric that uses UCX's transports of GPUs. Asked once, when the device's context is current.
  std::function<std::shared_ptr<Fabric>()> fabric;
  Members members;
  std::size_t world = 0;  // ranks
  // Collectives also where UCX itself goes by way of the host.
  bool always = false;
  // Whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// See engine::DeviceEngine. Carries what only moves: reductions are others'.
//
// A call waits for what its stream has so far, and returns when the arrays have moved. It could not
// go on by itself, with a stream that waits for a word: UCX needs the driver to move what is in a
// GPU's memory, and a thread that copies from such a stream to ordinary memory of the host holds
// the driver until the stream has come to it, so that each waits for the other.
class UcxDeviceEngine final : public engine::DeviceEngine {
 public:
  UcxDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device, DeviceOptions options);
  ~UcxDeviceEngine() override;

  std::string_view name() const noexcept override { return "ucx"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  void connect(const engine::Introduction& introduction) override;
  void enqueue(const engine::Call& call, cuda::Stream stream) override;
  bool returns_when_done() const noexcept override { return true; }
  bool has_messages() const noexcept override { return true; }
  void exchange(std::span<const engine::DeviceMessage> messages, cuda::Stream stream) override;
  void abort() noexcept override { aborted_.store(true, std::memory_order_release); }

 private:
  void introduce(const engine::Introduction& introduction, std::span<const std::byte> address);
  void prove(const engine::Introduction& introduction);
  void* scratch(std::size_t bytes);
  void carry(const Moves& moves, engine::Tag tag, cuda::Stream stream);
  template <typename Condition>
  void until(const Condition& condition, std::span<const engine::DeviceMessage> messages);
  bool is_broken(std::span<const engine::DeviceMessage> messages);
  void answer() noexcept;

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const DeviceOptions options_;
  bool direct_ = false;  // agreed by all
  std::shared_ptr<Fabric> fabric_;
  std::unique_ptr<UcxPointToPoint> messages_;
  std::unique_ptr<Slots> slots_;
  cuda::OwnedEvent here_;
  std::vector<cuda::DeviceBuffer> scratches_;  // each larger than the one before
  std::atomic<bool> aborted_{false};

  // Between calls: peers may wait for answers that have not left.
  std::atomic<bool> closed_{false};
  os::Wakeup wakeup_;
  std::thread answering_;
};

}  // namespace hocket::engines::ucx
