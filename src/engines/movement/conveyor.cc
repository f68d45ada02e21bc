#include "engines/movement/conveyor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foundation/base/log.h"
#include "hocket/error.h"

namespace hocket::movement {

namespace {

constexpr int kFewest = 8;                              // the least slots in each direction
constexpr std::size_t kLargest = std::size_t{2} << 20;  // the largest slot in bytes
// The bytes of all slots together. With many peers slots become smaller, down to one page.
constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr std::size_t kPage = 64 * 1024;
// The least bytes of a message in the library. Shorter chunks are sent with unused bytes behind
// them, because libraries copy shorter messages instead of moving them directly.
constexpr std::size_t kShortest = 8 * 1024;
// The time limit for copies on the stream when a Conveyor is destroyed.
constexpr auto kForCopies = std::chrono::seconds(10);

// Returns the length of the message that carries a chunk.
std::size_t travelling(std::size_t bytes) { return std::max(bytes, kShortest); }

}  // namespace

Slots::Slots(std::shared_ptr<const cuda::DeviceContext> device, int peers)
    : device_(std::move(device)),
      each_way_(std::max(kFewest, peers)),
      bytes_(std::clamp(
          kMemory / 2 / static_cast<std::size_t>(each_way_) / kPage * kPage, kPage, kLargest)),
      memory_(device_, bytes_ * 2 * static_cast<std::size_t>(each_way_)),
      stream_(device_) {
  for (int i = 0; i < 2 * each_way_; ++i) {
    events_.push_back(std::make_unique<cuda::OwnedEvent>(device_));
  }
}

std::byte* Slots::at(int slot) const noexcept {
  return static_cast<std::byte*>(memory_.data()) + bytes_ * static_cast<std::size_t>(slot);
}

Conveyor::Conveyor(Slots& slots,
                   engine::PointToPoint& carrier,
                   std::span<const engine::DeviceMessage> messages,
                   engine::Tag tag)
    : slots_(slots), carrier_(carrier), tag_(tag) {
  int out = 0;
  int in = 0;
  for (const engine::DeviceMessage& message : messages) {
    flows_.push_back({message});
    ++(message.way == Way::kSend ? out : in);
  }
  // Divide the slots among the messages. Every message has at least one slot, so no message waits
  // for another one.
  depth_ = std::max(1, slots_.each_way() / std::max({1, out, in}));
  for (int i = 0; i < slots_.each_way(); ++i) {
    free_out_.push_back(i);
    free_in_.push_back(slots_.each_way() + i);
  }
  chunks_.reserve(static_cast<std::size_t>(2 * slots_.each_way()));
}

Conveyor::~Conveyor() {
  if (chunks_.empty()) return;
  chunks_.clear();
  try {
    if (cuda::drain(slots_.device().driver(), slots_.stream(), base::Deadline::in(kForCopies))) {
      return;
    }
  } catch (const Error&) {  // a kernel has failed, which also ends all other work on the GPU
    return;
  }
  base::log(base::LogLevel::kError, "copies of messages between GPUs do not end");
}

// Returns the envelope of all chunks of a message. Its count is the length of the whole message, so
// that messages of different lengths never match.
engine::Envelope Conveyor::envelope(const Flow& flow) const {
  return {.peer = flow.message.peer, .tag = tag_, .count = flow.message.bytes};
}

// Gives free slots to the next chunks of a message: starts the copy of outgoing chunks, and posts
// the receive of incoming chunks.
void Conveyor::begin_chunks(std::size_t index) {
  Flow& flow = flows_[index];
  const engine::DeviceMessage& message = flow.message;
  std::vector<int>& unused = free(message.way);
  while (flow.begun < message.bytes && flow.slots < depth_ && !unused.empty()) {
    Chunk chunk{.flow = index,
                .offset = flow.begun,
                .bytes = std::min(slots_.bytes(), message.bytes - flow.begun),
                .slot = unused.back()};
    if (message.way == Way::kSend) {
      const auto* from = static_cast<const std::byte*>(message.data) + chunk.offset;
      cuda::copy(
          slots_.device().driver(), slots_.at(chunk.slot), from, chunk.bytes, slots_.stream());
      slots_.event(chunk.slot).record(slots_.stream());
    } else {
      chunk.state = Chunk::State::kMoved;
      chunk.message = {
          carrier_,
          carrier_.recv(envelope(flow), {slots_.at(chunk.slot), travelling(chunk.bytes)})};
    }
    unused.pop_back();
    ++flow.slots;
    flow.begun += chunk.bytes;
    chunks_.push_back(std::move(chunk));
  }
}

// Returns whether the carrier has moved a chunk. Throws if the other rank's message has another
// length.
bool Conveyor::has_moved(Chunk& chunk) const {
  try {
    return chunk.message.complete();
  } catch (const engine::EnvelopeMismatch& error) {
    const int peer = error.received.peer;
    const std::uint64_t own = error.expected.count, theirs = error.received.count;
    throw DeviceError(
        flows_[chunk.flow].message.way == Way::kSend
            ? fmt::format("this rank has sent {} bytes to rank {}'s GPU, which wanted {}",
                          own,
                          peer,
                          theirs)
            : fmt::format("rank {} has sent {} bytes to this rank's GPU, which wanted {}",
                          peer,
                          theirs,
                          own));
  }
}

// Moves a chunk through as many states as possible.
void Conveyor::advance(Chunk& chunk) {
  using State = Chunk::State;
  Flow& flow = flows_[chunk.flow];
  std::byte* slot = slots_.at(chunk.slot);
  if (chunk.state == State::kCopiedIn && flow.handed == chunk.offset &&
      slots_.event(chunk.slot).passed()) {
    chunk.message = {carrier_, carrier_.send(envelope(flow), {slot, travelling(chunk.bytes)})};
    chunk.state = State::kMoved;
    flow.handed += chunk.bytes;
  }
  if (chunk.state == State::kMoved && has_moved(chunk)) {
    chunk.state = State::kDone;
    if (flow.message.way == Way::kReceive) {
      auto* to = static_cast<std::byte*>(flow.message.data) + chunk.offset;
      cuda::copy(slots_.device().driver(), to, slot, chunk.bytes, slots_.stream());
      slots_.event(chunk.slot).record(slots_.stream());
      chunk.state = State::kCopiedOut;
    }
  }
  if (chunk.state == State::kCopiedOut && slots_.event(chunk.slot).passed()) {
    chunk.state = State::kDone;
  }
  if (chunk.state != State::kDone) return;
  free(flow.message.way).push_back(chunk.slot);
  --flow.slots;
  flow.ended += chunk.bytes;
}

bool Conveyor::turn() {
  for (std::size_t i = 0; i < flows_.size(); ++i) begin_chunks(i);
  for (Chunk& chunk : chunks_) advance(chunk);
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.state == Chunk::State::kDone; });
  return chunks_.empty() && std::ranges::all_of(flows_, [](const Flow& flow) {
           return flow.ended == flow.message.bytes;
         });
}

}  // namespace hocket::movement
