// Messages between GPUs through the engine's own memory, one chunk after the other.
//
// The carrier of the messages never accesses a user's array. So it does not map or register memory
// while streams wait for it, which would deadlock when the driver waits for the streams. The
// allocation of an array does not matter. After a cancelled message nothing writes to an array.
//
//   array -> copy on a stream -> slot -> message -> slot -> copy on a stream -> array
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/device_engine.h"
#include "engines/algorithm/messages.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"

namespace hocket::movement {

// A resource: slots in a GPU's memory, with equal numbers for outgoing and incoming data, and a
// stream for the copies. One thread at a time.
class Slots {
 public:
  // Makes at least one slot in each direction for each of `peers`. All ranks have slots of one
  // size.
  Slots(std::shared_ptr<const cuda::DeviceContext> device, int peers);

  std::size_t bytes() const noexcept { return bytes_; }  // of a slot
  int each_way() const noexcept { return each_way_; }
  // Returns the address of a slot. The slots from `each_way()` on are for incoming data.
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
  std::vector<std::unique_ptr<cuda::OwnedEvent>> events_;  // one for each slot: its last copy
};

// A resource: some messages in progress, at most one in each direction with a peer. It uses the
// slots exclusively. The destructor cancels messages that have not ended; then nothing accesses the
// arrays.
class Conveyor {
 public:
  Conveyor(Slots& slots,
           engine::PointToPoint& carrier,
           std::span<const engine::DeviceMessage> messages,
           engine::Tag tag);
  ~Conveyor();
  Conveyor(const Conveyor&) = delete;
  Conveyor& operator=(const Conveyor&) = delete;

  // Makes all possible progress. Returns true when all messages have ended.
  bool turn();

 private:
  struct Flow {
    engine::DeviceMessage message;
    std::size_t begun = 0;   // bytes of chunks that have or had a slot
    std::size_t handed = 0;  // bytes that were given to the carrier
    std::size_t ended = 0;
    int slots = 0;  // number of slots that it has
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
  int depth_ = 1;  // limit of a message's slots
  std::vector<Flow> flows_;
  std::vector<int> free_out_;
  std::vector<int> free_in_;
  std::vector<Chunk> chunks_;
};

}  // namespace hocket::movement
