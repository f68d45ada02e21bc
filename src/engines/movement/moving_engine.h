// The common part of UCX's and MPI's engines for GPUs: collectives that only move data, and
// messages, over a library's messages that reach GPUs' memory.
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

// The properties of such an engine. A value.
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
// A call waits for the current work of its stream, and returns when the arrays have moved. It
// cannot run asynchronously behind a stream that waits for a word, because of a deadlock. The
// library needs the driver to move GPU memory. A thread that copies from such a stream to pageable
// host memory blocks the driver until the stream has reached the copy.
//
// `connect` calls the functions of derived classes in this order: `agree`, `prepare`, `meet`,
// `make_messages`, `begin`. `agree` and `meet` are collective. Only `prepare` may fail on one rank
// alone. The others are told so, and no rank calls `meet`.
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
  // Agrees with the other ranks before `prepare`. Collective.
  virtual void agree(const engine::Introduction&) {}
  // Makes this rank's own preparations. Throws Error if something is missing here.
  virtual void prepare() = 0;
  // Makes the common preparations when all ranks are prepared. Collective. Returns why collectives
  // should use another engine, which leaves only messages, or "". The result is equal on all ranks.
  virtual std::string meet(const engine::Introduction& introduction) = 0;
  // Makes the carrier of the slots' bytes. It only accesses slots. So only slots must stay in place
  // for a message that cannot be cancelled.
  virtual std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<Slots>& slots) = 0;
  // Called when all ranks have seen that the connection works.
  virtual void begin() {}
  // Returns whether the connection to that rank is permanently lost.
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
  bool direct_ = false;  // agreed by all ranks
  std::shared_ptr<Slots> slots_;
  std::optional<cuda::DeviceBuffer> proofs_;        // during `connect`
  std::unique_ptr<engine::PointToPoint> messages_;  // destroyed before the slots
  cuda::OwnedEvent here_;
  std::vector<cuda::DeviceBuffer> scratches_;  // each is larger than the one before
  std::atomic<bool> aborted_{false};
};

}  // namespace hocket::movement
