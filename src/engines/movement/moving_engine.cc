#include "engines/movement/moving_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "foundation/base/log.h"
#include "foundation/base/poll.h"
#include "foundation/base/short_text.h"
#include "hocket/error.h"

namespace hocket::movement {

using base::Deadline;
using engine::Call;
using engine::DeviceMessage;
using engine::Signature;

namespace {

// The tags of users' messages, and of the test messages in `prove`.
constexpr engine::Tag kMessages = 1;
constexpr engine::Tag kProofs = 2;
// The tag of a collective call is its fingerprint with this bit. So messages of different calls
// never match. The comparison of the ranks' records reports different calls.
constexpr engine::Tag kCall = engine::Tag{1} << 63;

// The least bytes of a collective that this engine carries. Below it, copies through the host are
// faster, because a direct transfer needs a request and an answer.
constexpr std::size_t kLeast = std::size_t{64} << 10;
// Rough costs: microseconds of latency, and bandwidth. They need not be exact, because other
// engines for GPUs always have better scores.
constexpr double kLatency = 60;
constexpr double kBytesPerMicrosecond = 20'000;

// Bytes of the test message that each rank sends to each other rank. Libraries move messages of
// this size directly and do not copy them.
constexpr std::size_t kProof = 64 * 1024;

// The time between a broken connection and its report. The cause may be the death of a rank, which
// other layers report more precisely within this time.
constexpr auto kDoubt = std::chrono::seconds(1);
// A waiting thread first polls kSpins times. Then it pauses for kNap between two polls, because it
// may wait long for a stream or a late peer. It checks for failures every kBetweenLooks. These
// checks depend only on time, so that progress of other messages does not delay them.
constexpr int kSpins = 2000;
constexpr auto kNap = std::chrono::microseconds(30);
constexpr auto kBetweenLooks = std::chrono::milliseconds(5);

// The result of a rank's preparations, which it tells all ranks.
struct MovementCard {
  base::ShortSentence<120> why_not;  // why this rank cannot use the engine; empty: it can
  bool surprising = false;           // the reason is an error of which users should be told
};

// Returns the length of the input of an all-to-all in place, in bytes. Returns 0 for other calls.
std::size_t in_place_bytes(const Call& call, std::size_t size) {
  const Signature& s = call.signature;
  if (call.in != call.out || !engine::swaps_parts(s.kind)) return 0;
  if (!engine::is_listed(s.kind)) return bytes_of(s) * size;
  std::size_t end = 0;
  for (std::size_t i = 0; i < size; ++i) {
    end = std::max(end, call.in_parts.offsets[i] + call.in_parts.bytes[i]);
  }
  return end;
}

}  // namespace

MovingEngine::MovingEngine(std::shared_ptr<const cuda::DeviceContext> device, Mover mover)
    : device_(std::move(device)), mover_(std::move(mover)), here_(device_) {}

std::optional<engine::Score> MovingEngine::score(const Signature& s) const noexcept {
  if (!direct_ || !kCarries.has(s.kind)) return std::nullopt;
  const bool listed = engine::is_listed(s.kind);
  const bool grows = !listed && !engine::is_rooted(s.kind) && engine::has_parts(s.kind);
  const std::size_t bytes = bytes_of(s) * (grows ? static_cast<std::size_t>(mover_.size) : 1);
  // In some v-forms no rank knows the sizes of all parts.
  const bool known = !listed || engine::counts_parts(s.kind);
  if (known && bytes < kLeast && !mover_.always) return std::nullopt;
  return engine::Score{kLatency + static_cast<double>(bytes) / kBytesPerMicrosecond};
}

// --- Introduction -------------------------------------------------------------------------------

// All ranks take all collective steps, even if a step fails on some ranks. A rank makes its own
// preparations before other ranks wait for it.
void MovingEngine::connect(const engine::Introduction& introduction) {
  agree(introduction);
  MovementCard own;
  try {
    prepare();
    own.surprising = true;
    allocate();
  } catch (const Error& error) {
    own.why_not = error.what();
  }
  const std::vector<MovementCard> cards = engine::gather_values(introduction.gather, own);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].why_not.empty()) continue;
    const std::string why_not = fmt::format("rank {}: {}", i, cards[i].why_not.view());
    if (cards[i].surprising) throw DeviceError(why_not);
    throw engine::NotOffered(why_not);
  }
  const std::string why_not = meet(introduction);
  direct_ = mover_.always || why_not.empty();
  prove(introduction);
  base::log(base::LogLevel::kDebug,
            fmt::format(
                "{} carries {}",
                mover_.library,
                direct_ ? "movement and messages of GPUs" : "messages of GPUs alone: " + why_not));
  begin();
}

// Allocates the slots, and the memory of the test messages.
void MovingEngine::allocate() {
  const cuda::Driver& driver = device_->driver();
  slots_ = std::make_shared<Slots>(device_, mover_.size - 1);
  proofs_.emplace(device_, kProof * static_cast<std::size_t>(mover_.size));
  const auto fill = [&](cuda::DevicePtr at, int value, std::size_t bytes) {
    const auto byte = static_cast<unsigned char>(value);
    cuda::check(
        driver, driver.memset_d8_async(at, byte, bytes, slots_->stream()), "fill a GPU's memory");
  };
  fill(proofs_->address(), 0xff, proofs_->bytes());
  fill(proofs_->address() + kProof * static_cast<std::size_t>(mover_.rank),
       mover_.rank % 251,
       kProof);
}

// Tests the connections: each rank sends a message filled with its rank number to each other rank.
// The library also maps and registers the slots here, because it must not do so later while streams
// wait for it. The test may use half of the remaining time. The other half is for the next exchange
// of the ranks, in which a rank that fails early waits for the others.
void MovingEngine::prove(const engine::Introduction& introduction) {
  const int size = mover_.size;
  const cuda::Driver& driver = device_->driver();
  messages_ = make_messages(slots_);
  const cuda::DeviceBuffer proofs = std::move(*proofs_);
  proofs_.reset();
  const auto proof_of = [&](int rank) {
    return reinterpret_cast<void*>(proofs.address() + kProof * static_cast<std::size_t>(rank));
  };
  std::vector<DeviceMessage> messages;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == mover_.rank) continue;
    messages.push_back({DeviceMessage::Way::kReceive, peer, proof_of(peer), kProof});
    messages.push_back({DeviceMessage::Way::kSend, peer, proof_of(mover_.rank), kProof});
  }
  Conveyor conveyor(*slots_, *messages_, messages, kProofs);
  const Deadline deadline = introduction.deadline.is_never()
                                ? Deadline::never()
                                : Deadline::in(introduction.deadline.left() / 2);
  std::optional<Deadline> doubt;
  const auto has_come = [&] {
    if (conveyor.turn()) return true;
    messages_->progress();
    introduction.look();
    look_for_breaks(messages, doubt);
    return false;
  };
  if (!base::poll_until(has_come, deadline, Duration::zero())) {
    throw DeviceError(
        fmt::format("{} brought nothing from a rank's GPU to another's", mover_.library));
  }
  std::vector<std::byte> came(proofs.bytes());
  cuda::copy(driver, came.data(), proofs.data(), came.size(), slots_->stream());
  cuda::check(driver, driver.stream_synchronize(slots_->stream()), "wait for a stream");
  for (std::size_t i = 0; i < came.size(); ++i) {
    const std::size_t rank = i / kProof;
    if (came[i] == static_cast<std::byte>(rank % 251)) continue;
    throw DeviceError(
        fmt::format("{} brought something else than rank {}'s GPU had sent", mover_.library, rank));
  }
}

// --- The communicator's thread ------------------------------------------------------------------

// OutsideCapture keeps the waits and allocations here out of graph captures of other streams.
void MovingEngine::enqueue(const Call& call, StreamRef stream) {
  const cuda::OutsideCapture outside(device_->driver());
  Call moved = call;
  // In an all-to-all in place, received data would overwrite data that has not been sent yet. So
  // this rank sends from a copy.
  if (const std::size_t bytes = in_place_bytes(call, static_cast<std::size_t>(mover_.size));
      bytes != 0) {
    void* copy = scratch(bytes);
    cuda::copy(device_->driver(), copy, call.in, bytes, stream.handle());
    moved.in = copy;
  }
  carry(moves_of(moved, mover_.rank, mover_.size), call.fingerprint | kCall, stream.handle());
}

void MovingEngine::exchange(std::span<const DeviceMessage> messages, StreamRef stream) {
  const cuda::OutsideCapture outside(device_->driver());
  Moves moves;
  moves.rounds.emplace_back(messages.begin(), messages.end());
  carry(moves, kMessages, stream.handle());
}

// Returns a buffer of at least `bytes` bytes. Calls run one after the other on the device, so all
// calls use the same buffer. Smaller buffers are kept, because earlier calls may still use them.
void* MovingEngine::scratch(std::size_t bytes) {
  if (scratches_.empty() || scratches_.back().bytes() < bytes) {
    scratches_.emplace_back(device_, std::bit_ceil(bytes));
  }
  return scratches_.back().data();
}

void MovingEngine::carry(const Moves& moves, engine::Tag tag, cuda::Stream stream) {
  here_.record(stream);
  cuda::copy(device_->driver(), moves.own.to, moves.own.from, moves.own.bytes, stream);
  until([this] { return here_.passed(); }, {});
  for (const auto& round : moves.rounds) {
    Conveyor conveyor(*slots_, *messages_, round, tag);
    until([&conveyor] { return conveyor.turn(); }, round);
  }
}

// Waits until `condition()` is true. `messages` are the messages whose connections the wait needs.
// Other layers detect deadlines and dead peers, and then abort this engine.
template <typename Condition>
void MovingEngine::until(const Condition& condition, std::span<const DeviceMessage> messages) {
  std::optional<Deadline> doubt;
  Deadline next_look = Deadline::in(kBetweenLooks);
  base::Naps naps(kNap, kSpins);
  const auto is_over = [&](bool) {
    if (condition()) return true;
    if (messages_->progress()) naps.moved();
    if (is_aborted()) {
      throw DeviceError(
          fmt::format("{}'s messages of this communicator have been aborted", mover_.library));
    }
    if (next_look.has_passed()) {
      if (mover_.interrupted && mover_.interrupted()) throw DeviceError("it was interrupted");
      look_for_breaks(messages, doubt);
      next_look = Deadline::in(kBetweenLooks);
    }
    return false;
  };
  base::wait_until(is_over, naps);
}

// Throws if a connection that the messages need has been broken for kDoubt. `doubt` keeps the time
// between the checks of one wait.
void MovingEngine::look_for_breaks(std::span<const DeviceMessage> messages,
                                   std::optional<Deadline>& doubt) {
  const auto broken =
      std::ranges::find_if(messages, [this](const DeviceMessage& m) { return is_broken(m.peer); });
  if (broken == messages.end()) return;
  if (!doubt) doubt = Deadline::in(kDoubt);
  if (!doubt->has_passed()) return;
  throw DeviceError(fmt::format(
      "{} has lost the connection for GPUs' memory to rank {}", mover_.library, broken->peer));
}

}  // namespace hocket::movement
