// Messages between GPUs by way of memory of the engine's own, a chunk after the other.
//
// Who carries the messages sees no array of the user's. So it maps, or registers, nothing while
// streams wait for it, which stops where the driver waits for the streams; it need not know how an
// array was allocated; and a message that is called off leaves nobody who writes to an array.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.h"
#include "engines/algorithm/messages.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"

namespace hocket::movement {

// A resource: slots in a GPU's memory, as many for what goes out as for what comes in, and a stream
// for the copies. One thread at a time.
class Slots {
 public:
  // `peers`: a slot each way for each of them at least. All ranks have slots of one size.
  Slots(std::shared_ptr<const cuda::DeviceContext> device, int peers);

  std::size_t bytes() const noexcept { return bytes_; }  // of a slot
  int each_way() const noexcept { return each_way_; }
  // Those from `each_way()` on are for what comes in.
  std::byte* at(int slot) const noexcept;
  cuda::OwnedEvent& event(int slot) { return *events_[static_cast<std::size_t>(slot)]; }
  cuda::Stream stream() const noexcept { return stream_.get(); }
  const cuda::DeviceContext& device() const noexcept { return *device_; }

 private:
  std::shared_ptr<const cuda::DeviceContext> device_;
  int each_way_;
  std::size_t bytes_;
  cuda::DeviceBuffer memory_;
  cuda::OwnedStream stream_;
  std::vector<std::unique_ptr<cuda::OwnedEvent>> events_;  // of each slot: its last copy
};

// A resource: some messages under way, at most one a peer and way. Its end calls off what has not
// ended, after which nobody touches the arrays. The slots are its own meanwhile.
class Conveyor {
 public:
  Conveyor(Slots& slots,
           engine::PointToPoint& carrier,
           std::span<const engine::DeviceMessage> messages,
           engine::Tag tag);
  ~Conveyor();
  Conveyor(const Conveyor&) = delete;
  Conveyor& operator=(const Conveyor&) = delete;

  // Does what can be done; true when all messages have ended.
  bool turn();

 private:
  struct Flow {
    engine::DeviceMessage message;
    std::size_t begun = 0;   // bytes of chunks that have a slot, or had one
    std::size_t handed = 0;  // bytes that were given to the carrier
    std::size_t ended = 0;
    int slots = 0;  // that it has
  };
  struct Chunk {
    enum class State : std::uint8_t { kCopiedIn, kMoved, kCopiedOut, kDone };
    State state = State::kCopiedIn;
    std::size_t flow = 0;
    std::size_t offset = 0;
    std::size_t bytes = 0;
    int slot = 0;
    algorithm::Message message;
  };
  using Way = engine::DeviceMessage::Way;

  std::vector<int>& free(Way way) { return way == Way::kSend ? free_out_ : free_in_; }
  void begin_chunks(std::size_t flow);
  void advance(Chunk& chunk);
  engine::Envelope envelope(const Flow& flow) const;

  Slots& slots_;
  engine::PointToPoint& carrier_;
  const engine::Tag tag_;
  int depth_ = 1;  // slots that a message may have at once
  std::vector<Flow> flows_;
  std::vector<int> free_out_;
  std::vector<int> free_in_;
  std::vector<Chunk> chunks_;
};

}  // namespace hocket::movement
