// The common part of the engines for GPUs by UCX and by MPI. It carries collectives that only move
// data, and messages. It uses the messages of a library that can access GPUs' memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device_engine.h"
#include "engine/point_to_point.h"
#include "engines/movement/conveyor.h"
#include "engines/movement/moves.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"

namespace hocket::movement {

// The properties of an engine that derives from MovingEngine. A value.
struct Mover {
  std::string library;  // name of the library that carries the messages
  int rank = 0;         // in the group
  int size = 1;
  bool always = false;  // carry collectives of any size
  // Returns whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// See engine::DeviceEngine. Carries calls that only move data. Other engines carry reductions.
//
// A call waits for the current work of its stream, and returns when the arrays have moved. It could
// not run asynchronously, with the stream waiting for a word in memory until the data has moved:
// this could deadlock. The library needs the driver to move GPU memory. But the driver is blocked
// while some thread copies from the waiting stream to pageable host memory.
//
// `connect` calls the functions of derived classes in this order: `agree`, `prepare`, `meet`,
// `make_messages`, `begin`. `agree` and `meet` are collective. Only `prepare` may fail on a single
// rank. In this case all ranks learn of it, and no rank calls `meet`.
class MovingEngine : public engine::DeviceEngine {
 public:
  MovingEngine(std::shared_ptr<const cuda::DeviceContext> device, Mover mover);

  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept final;
  void connect(const engine::Introduction& introduction) final;
  void enqueue(const engine::Call& call, StreamRef stream) final;
  bool returns_when_done() const noexcept final { return true; }
  bool has_messages() const noexcept final { return true; }
  void exchange(std::span<const engine::DeviceMessage> messages, StreamRef stream) final;
  void abort() noexcept final { aborted_.store(true, std::memory_order_release); }

 protected:
  // Lets all ranks agree on something before `prepare`. Collective.
  virtual void agree(const engine::Introduction&) {}
  // Makes the preparations that need only this rank. Throws Error if they fail.
  virtual void prepare() = 0;
  // Makes the common preparations when all ranks are prepared. Collective. Returns "" if this
  // engine carries collectives and messages. Otherwise returns why it carries only messages. The
  // result is equal on all ranks.
  virtual std::string meet(const engine::Introduction& introduction) = 0;
  // Makes the carrier of the messages. It accesses only the slots. So if a message cannot be
  // cancelled, only the slots must stay allocated.
  virtual std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<Slots>& slots) = 0;
  // Called when the test messages between all ranks have arrived.
  virtual void begin() {}
  // Returns whether the connection to a rank is permanently lost.
  virtual bool is_broken(int peer) noexcept = 0;

  const std::shared_ptr<const cuda::DeviceContext>& device() const noexcept { return device_; }
  bool is_aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }

 private:
  void prove(const engine::Introduction& introduction);
  void* scratch(std::size_t bytes);
  void carry(const Moves& moves, engine::Tag tag, cuda::Stream stream);
  template <typename Condition>
  void until(const Condition& condition, std::span<const engine::DeviceMessage> messages);
  void allocate();
  void look_for_breaks(std::span<const engine::DeviceMessage> messages,
                       std::optional<base::Deadline>& doubt);

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const Mover mover_;
  bool direct_ = false;  // this engine carries collectives; equal on all ranks
  std::shared_ptr<Slots> slots_;
  std::optional<cuda::DeviceBuffer> proofs_;        // the test messages; only during `connect`
  std::unique_ptr<engine::PointToPoint> messages_;  // destroyed before the slots
  cuda::OwnedEvent here_;                           // the work before a call on its stream
  std::vector<cuda::DeviceBuffer> scratches_;       // in ascending order of size
  std::atomic<bool> aborted_{false};
};

}  // namespace hocket::movement
