#include "engines/movement/conveyor.h"

#include <algorithm>
#include <utility>

#include "foundation/base/log.h"
#include "hocket/error.h"

namespace hocket::movement {

namespace {

constexpr int kFewest = 8;  // slots in each direction
constexpr std::size_t kLargest = std::size_t{2} << 20;
constexpr std::size_t kMemory = std::size_t{64} << 20;  // of all slots, if there are more than the
                                                        // minimum
constexpr std::size_t kPage = 64 * 1024;
// The smallest chunk worth sending directly; libraries copy anything smaller.
constexpr std::size_t kShortest = 8 * 1024;
constexpr auto kForCopies = std::chrono::seconds(10);

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
  // Every message always has a slot, so no message waits for another one.
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
  } catch (const Error&) {  // a kernel has failed, and with it all work in progress
    return;
  }
  base::log(base::LogLevel::kError, "copies of messages between GPUs do not end");
}

// The envelope has the length of the whole message, so that messages of different lengths never
// match.
engine::Envelope Conveyor::envelope(const Flow& flow) const {
  return {.peer = flow.message.peer, .tag = tag_, .count = flow.message.bytes};
}

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
  if (chunk.state == State::kMoved && chunk.message.complete()) {
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
