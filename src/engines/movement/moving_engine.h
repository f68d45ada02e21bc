// Arrays in GPUs' memory by messages that reach it: movement and messages, from array to array.
// What UCX and MPI have in common.
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

// A value.
struct Mover {
  std::string library;  // that brings the messages, as people know it
  int rank = 0;         // in the group
  int size = 1;
  bool always = false;  // collectives of any size
  // Whether the user wants the waiting thread to stop.
  std::function<bool()> interrupted;
};

// See engine::DeviceEngine. Carries what only moves: reductions are others'.
//
// A call waits for what its stream has so far, and returns when the arrays have moved. It could not
// go on by itself, with a stream that waits for a word: the library needs the driver to move what
// is in a GPU's memory, and a thread that copies from such a stream to ordinary memory of the host
// holds the driver until the stream has come to it, so that each waits for the other.
//
// While it connects, what derived classes do comes in this order: `agree`, `prepare`, `meet`,
// `make_messages`, `begin`. Collective are `agree` and `meet`, and only `prepare` may fail on one
// rank alone before the others wait for it: they are told, and none goes on to `meet`.
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
  // What the ranks have to agree on before that: all take it.
  virtual void agree(const engine::Introduction&) {}
  // This rank's own part of what is needed. Throws Error where it is not here.
  virtual void prepare() = 0;
  // The ranks' common part, once all are prepared: all take it. Why collectives are better carried
  // otherwise, and messages alone are left; empty: both. The same on all ranks.
  virtual std::string meet(const engine::Introduction& introduction) = 0;
  // What moves the slots' bytes; only they are given to it, so that these are what has to stay
  // where a message cannot be taken back.
  virtual std::unique_ptr<engine::PointToPoint> make_messages(
      const std::shared_ptr<Slots>& slots) = 0;
  // All have seen that it works.
  virtual void begin() {}
  // Whether the way to that rank is lost for good.
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
  bool direct_ = false;  // agreed by all
  std::shared_ptr<Slots> slots_;
  std::optional<cuda::DeviceBuffer> proofs_;        // while it connects
  std::unique_ptr<engine::PointToPoint> messages_;  // before the slots end
  cuda::OwnedEvent here_;
  std::vector<cuda::DeviceBuffer> scratches_;  // each larger than the one before
  std::atomic<bool> aborted_{false};
};

}  // namespace hocket::movement
