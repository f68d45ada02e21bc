// Messages between GPUs through staging slots in GPU memory that the engine owns. A message moves
// in chunks.
//
// The carrier never accesses a user's array, only slots. This has three advantages. The carrier
// maps and registers no memory while streams wait for it. (Otherwise the driver could wait for
// these streams, which would be a deadlock.) Arrays may be allocated in any way. After a message is
// cancelled, nothing writes to its array.
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

// Slots in a GPU's memory, as many for outgoing as for incoming data, and a stream for the copies.
// Used by one thread at a time. A resource.
class Slots {
 public:
  // Makes at least one slot in each direction for each of `peers` peers. The slots of all ranks
  // have the same size.
  Slots(std::shared_ptr<const cuda::DeviceContext> device, int peers);

  std::size_t bytes() const noexcept { return bytes_; }  // length of a slot
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
  std::vector<std::unique_ptr<cuda::OwnedEvent>> events_;  // one for the last copy of each slot
};

// Some messages in progress, with each peer at most one in each direction. It uses the slots
// exclusively. The destructor cancels messages that have not ended; after it nothing accesses the
// arrays. A resource.
class Conveyor {
 public:
  Conveyor(Slots& slots,
           engine::PointToPoint& carrier,
           std::span<const engine::DeviceMessage> messages,
           engine::Tag tag);
  ~Conveyor();
  Conveyor(const Conveyor&) = delete;
  Conveyor& operator=(const Conveyor&) = delete;

  // Makes all possible progress. Returns true when all messages have ended. Throws DeviceError if
  // the other rank's message has another length.
  bool turn();

 private:
  // The state of one message. All counts except `slots` are bytes.
  struct Flow {
    engine::DeviceMessage message;
    std::size_t begun = 0;   // in chunks that have or had a slot
    std::size_t handed = 0;  // given to the carrier
    std::size_t ended = 0;   // in chunks that have ended
    int slots = 0;           // number of slots that the message has now
  };
  // A piece of a message that has a slot.
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
  bool has_moved(Chunk& chunk) const;
  void advance(Chunk& chunk);
  engine::Envelope envelope(const Flow& flow) const;

  Slots& slots_;
  engine::PointToPoint& carrier_;
  const engine::Tag tag_;
  int depth_ = 1;  // the most slots that a message may have at the same time
  std::vector<Flow> flows_;
  std::vector<int> free_out_;
  std::vector<int> free_in_;
  std::vector<Chunk> chunks_;
};

}  // namespace hocket::movement
