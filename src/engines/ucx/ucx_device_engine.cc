#include "engines/ucx/ucx_device_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/relax.h"
#include "hocket/error.h"

namespace hocket::engines::ucx {

using base::Deadline;
using engine::Call;
using engine::DeviceMessage;
using engine::Kind;
using engine::Signature;

namespace {

// Of messages that are no part of a collective.
constexpr engine::Tag kMessages = 1;
constexpr engine::Tag kProofs = 2;
// Calls' tags are their fingerprints, so that calls that differ never meet: what they are is found
// by those who compare them.
constexpr engine::Tag kCall = engine::Tag{1} << 63;

// Below, copies by way of the host take less time: two GPUs' memories meet by requests and answers.
constexpr std::size_t kLeast = std::size_t{64} << 10;
// They matter only beside other engines' scores, which are better.
constexpr double kLatency = 60;
constexpr double kBytesPerMicrosecond = 20'000;

// Bytes that each rank sends each other at first: more than UCX would copy.
constexpr std::size_t kProof = 64 * 1024;

// A connection that broke may mean that a rank has died, which others know better.
constexpr auto kDoubt = std::chrono::seconds(1);
// Whoever waits for a stream, or for a peer that is late, need not look all the time.
constexpr int kSpins = 2000;
constexpr int kLooks = 64;
constexpr auto kNap = std::chrono::microseconds(30);
constexpr auto kLongestIdle = std::chrono::milliseconds(500);

struct Card {
  char why_not[120] = {};
};

template <typename T>
std::vector<T> gather(const engine::Introduction& introduction, const T& own) {
  const auto bytes = introduction.gather(std::as_bytes(std::span(&own, 1)));
  std::vector<T> all(static_cast<std::size_t>(introduction.size));
  std::memcpy(all.data(), bytes.data(), std::min(bytes.size(), all.size() * sizeof(T)));
  return all;
}

// What an all-to-all in place reads; 0 where it is none.
std::size_t in_place_bytes(const Call& call, std::size_t size) {
  const Signature& s = call.signature;
  if (call.in != call.out) return 0;
  if (s.kind == Kind::kAllToAll) return bytes_of(s) * size;
  if (s.kind != Kind::kAllToAllV) return 0;
  std::size_t end = 0;
  for (std::size_t i = 0; i < size; ++i) {
    end = std::max(end, call.in_parts.offsets[i] + call.in_parts.bytes[i]);
  }
  return end;
}

}  // namespace

UcxDeviceEngine::UcxDeviceEngine(std::shared_ptr<const cuda::DeviceContext> device,
                                 DeviceOptions options)
    : device_(std::move(device)), options_(std::move(options)), here_(device_) {}

UcxDeviceEngine::~UcxDeviceEngine() {
  // What was sent counts as sent, and nobody moves it any more once the thread has ended.
  if (fabric_ && !aborted_.load(std::memory_order_acquire)) {
    fabric_->flush(Deadline::in(std::chrono::seconds(1)));
  }
  closed_ = true;
  wakeup_.notify();
  if (answering_.joinable()) answering_.join();
}

std::optional<engine::Score> UcxDeviceEngine::score(const Signature& s) const noexcept {
  if (!direct_ || !only_moves(s.kind)) return std::nullopt;
  const bool grows = s.kind == Kind::kAllGather || s.kind == Kind::kAllToAll;
  const std::size_t bytes = bytes_of(s) * (grows ? options_.members.world_ranks.size() : 1);
  // Of some v-forms nobody knows all sizes.
  const bool known = s.kind < Kind::kReduceScatterV || s.kind == Kind::kAllGatherV;
  if (known && bytes < kLeast && !options_.always) return std::nullopt;
  return engine::Score{kLatency + static_cast<double>(bytes) / kBytesPerMicrosecond};
}

// --- Introduction -------------------------------------------------------------------------------

// All ranks take all steps, whatever happens to them.
void UcxDeviceEngine::connect(const engine::Introduction& introduction) {
  Card own;
  std::vector<std::byte> address;
  try {
    fabric_ = options_.fabric();
    address = fabric_->address();
    if (!fabric_->knows_gpus() && !cuda::is_reached_by_host(device_)) {
      throw DeviceError(fmt::format("{} does not know CUDA's memory", fabric_->name()));
    }
  } catch (const Error& error) {
    std::strncpy(own.why_not, error.what(), sizeof(own.why_not) - 1);
  }
  const std::vector<Card> cards = gather(introduction, own);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].why_not[0] == '\0') continue;
    throw engine::NotOffered(fmt::format("rank {}: {:.119}", i, cards[i].why_not));
  }
  introduce(introduction, address);
  prove(introduction);
  base::log(base::LogLevel::kDebug,
            fmt::format("{} carries {}",
                        fabric_->name(),
                        direct_ ? "movement and messages of GPUs"
                                : "messages of GPUs alone: between some ranks it has no lane for "
                                  "their memory"));
  answering_ = std::thread([this] { answer(); });
}

void UcxDeviceEngine::introduce(const engine::Introduction& introduction,
                                std::span<const std::byte> address) {
  const auto lengths = gather(introduction, address.size());
  std::vector<std::byte> own(address.begin(), address.end());
  own.resize(*std::ranges::max_element(lengths));
  const auto together = introduction.gather(own);
  std::vector<std::vector<std::byte>> addresses;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto* at = together.data() + i * own.size();
    addresses.emplace_back(at, at + lengths[i]);
  }
  const Members& members = options_.members;
  fabric_->introduce(options_.world, members.world_ranks, addresses);
  std::uint8_t reaches = 1;
  for (std::size_t i = 0; i < members.world_ranks.size(); ++i) {
    const bool is_own = static_cast<int>(i) == members.rank;
    if (!is_own && !fabric_->reaches_gpus(members.world_ranks[i])) reaches = 0;
  }
  const auto all = gather(introduction, reaches);
  direct_ = options_.always || std::ranges::find(all, 0) == all.end();
}

// Each sends each its number. Here UCX also maps and registers what it will use, which must not be
// while streams wait for it.
void UcxDeviceEngine::prove(const engine::Introduction& introduction) {
  const Members& members = options_.members;
  const int size = static_cast<int>(members.world_ranks.size());
  const cuda::Driver& driver = device_->driver();
  slots_ = std::make_unique<Slots>(device_, size - 1);
  messages_ = std::make_unique<UcxPointToPoint>(fabric_, members);
  const cuda::DeviceBuffer cards(device_, kProof * static_cast<std::size_t>(size));
  const auto fill = [&](cuda::DevicePtr at, int value, std::size_t bytes) {
    const auto byte = static_cast<unsigned char>(value);
    cuda::check(
        driver, driver.memset_d8_async(at, byte, bytes, slots_->stream()), "fill a GPU's memory");
  };
  const auto card_of = [&](int rank) {
    return cards.address() + kProof * static_cast<std::size_t>(rank);
  };
  fill(cards.address(), 0xff, cards.bytes());
  fill(card_of(members.rank), members.rank % 251, kProof);
  std::vector<DeviceMessage> messages;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == members.rank) continue;
    const auto at = [&](int rank) { return reinterpret_cast<void*>(card_of(rank)); };
    messages.push_back({DeviceMessage::Way::kReceive, peer, at(peer), kProof});
    messages.push_back({DeviceMessage::Way::kSend, peer, at(members.rank), kProof});
  }
  Conveyor conveyor(*slots_, *messages_, messages, kProofs);
  while (!conveyor.turn()) {
    if (!messages_->progress()) std::this_thread::yield();
    introduction.look();
    if (introduction.deadline.has_passed()) {
      throw DeviceError("UCX brought nothing from a rank's GPU to another's");
    }
  }
  std::vector<std::byte> came(cards.bytes());
  cuda::copy(driver, came.data(), cards.data(), came.size(), slots_->stream());
  cuda::check(driver, driver.stream_synchronize(slots_->stream()), "wait for a stream");
  for (std::size_t i = 0; i < came.size(); ++i) {
    const std::size_t rank = i / kProof;
    if (came[i] == static_cast<std::byte>(rank % 251)) continue;
    throw DeviceError(fmt::format("UCX brought something else than rank {}'s GPU had sent", rank));
  }
}

// --- The communicator's thread ------------------------------------------------------------------

void UcxDeviceEngine::enqueue(const Call& call, cuda::Stream stream) {
  const Members& members = options_.members;
  const std::size_t size = members.world_ranks.size();
  Call moved = call;
  // There peers write to what is to be sent.
  if (const std::size_t bytes = in_place_bytes(call, size); bytes != 0) {
    void* copy = scratch(bytes);
    cuda::copy(device_->driver(), copy, call.in, bytes, stream);
    moved.in = copy;
  }
  carry(moves_of(moved, members.rank, static_cast<int>(size)), call.fingerprint | kCall, stream);
}

void UcxDeviceEngine::exchange(std::span<const DeviceMessage> messages, cuda::Stream stream) {
  Moves moves;
  moves.rounds.emplace_back(messages.begin(), messages.end());
  carry(moves, kMessages, stream);
}

// Calls follow each other on the device, so that one is enough for all; those that were too small
// may be in use.
void* UcxDeviceEngine::scratch(std::size_t bytes) {
  if (scratches_.empty() || scratches_.back().bytes() < bytes) {
    scratches_.emplace_back(device_, std::bit_ceil(bytes));
  }
  return scratches_.back().data();
}

void UcxDeviceEngine::carry(const Moves& moves, engine::Tag tag, cuda::Stream stream) {
  here_.record(stream);
  cuda::copy(device_->driver(), moves.own.to, moves.own.from, moves.own.bytes, stream);
  until([this] { return here_.passed(); }, {});
  for (const auto& round : moves.rounds) {
    Conveyor conveyor(*slots_, *messages_, round, tag);
    until([&conveyor] { return conveyor.turn(); }, round);
  }
}

// Deadlines, and peers that die, are others' to see; they abort.
template <typename Condition>
void UcxDeviceEngine::until(const Condition& condition, std::span<const DeviceMessage> messages) {
  std::optional<Deadline> doubt;
  try {
    for (int turns = 0; !condition(); ++turns) {
      if (messages_->progress()) turns = 0;
      if (aborted_.load(std::memory_order_acquire)) {
        throw DeviceError("UCX's messages of this communicator have been aborted");
      }
      if (turns < kSpins) {
        base::relax();
        continue;
      }
      std::this_thread::sleep_for(kNap);
      if (turns % kLooks != 0) continue;
      if (options_.interrupted && options_.interrupted()) throw DeviceError("it was interrupted");
      if (!is_broken(messages)) continue;
      if (!doubt) doubt = Deadline::in(kDoubt);
      if (doubt->has_passed()) throw DeviceError("UCX has lost a connection for GPUs' memory");
    }
  } catch (const engine::EnvelopeMismatch& error) {
    throw DeviceError(fmt::format("rank {} has sent {} bytes to this rank's GPU, which wanted {}",
                                  error.received.peer,
                                  error.received.count,
                                  error.expected.count));
  }
}

bool UcxDeviceEngine::is_broken(std::span<const DeviceMessage> messages) {
  return std::ranges::any_of(messages, [this](const DeviceMessage& m) {
    return fabric_->is_broken(options_.members.world_ranks[static_cast<std::size_t>(m.peer)]);
  });
}

void UcxDeviceEngine::answer() noexcept {
  const cuda::DeviceGuard guard(*device_);
  while (!closed_) {
    if (fabric_->progress() || !fabric_->arm()) {
      std::this_thread::yield();
    } else {
      wakeup_.wait({.fd = fabric_->event_fd()}, Deadline::in(kLongestIdle));
    }
  }
}

}  // namespace hocket::engines::ucx
