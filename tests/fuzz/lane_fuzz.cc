// Hostile bytes on a lane between hosts: the handshake of both sides, the facts, and their copies
// in the host's shared memory.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "foundation/os/fd.h"
#include "foundation/os/segment.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "membership/control/lane.h"
#include "membership/control/mirror.h"
#include "membership/rendezvous/wire/wire.h"

namespace {

using namespace hocket;
using control::Fact;
using rendezvous::Channel;
using rendezvous::Side;

void require(bool holds) {
  if (!holds) std::abort();
}

// --- Facts --------------------------------------------------------------------------------------

Bytes payload_of(const Fact& fact) {
  const Bytes frame = control::encode(fact);
  return {frame.begin() + rendezvous::kFrameHeaderBytes, frame.end()};
}

void parse_fact(std::span<const std::byte> payload) {
  const auto fact = control::parse(payload);
  if (!fact) return;
  // A flag's byte may have been any but zero: the second writing settles it.
  const Bytes again = payload_of(*fact);
  const auto second = control::parse(again);
  require(second && payload_of(*second) == again);
}

// --- Facts in memory ----------------------------------------------------------------------------

constexpr std::uint64_t kGroup = 0x0706050403020100;
constexpr int kPlaces[] = {0, 1, 2, 3};  // the first two are of this host

// A segment of one host with two ranks here and two elsewhere, and a group of all. A resource.
struct Memory {
  Memory() {
    const control::HostShape shape{.ranks = 2, .remote = 2, .stripe_bytes = 1 << 20};
    auto segment = std::make_shared<os::Segment>(
        os::Segment::create_private(control::HostControl::segment_bytes(shape)));
    control::HostControl::format(*segment, shape);
    host = std::make_unique<control::HostControl>(segment, 0);
    block = host->memory.allocate(control::GroupControl::bytes(4), std::array{0, 1});
    control::GroupControl::format(host->memory.at(block), kPlaces);
    entry = host->groups.enlist({.id = kGroup, .block = block, .size = 4});
  }
  std::unique_ptr<control::HostControl> host;
  std::uint64_t block = 0;
  control::GroupEntry* entry = nullptr;
};

// Frames that follow each other, as the network takes them.
void write_facts(std::span<const std::byte> bytes) {
  static Memory memory;
  // Formatted for each input, except the segment itself.
  control::GroupControl::format(memory.host->memory.at(memory.block), kPlaces);
  for (;;) {
    const auto frame = rendezvous::parse_frame(bytes, control::kMaxFactFrame);
    if (frame.state != rendezvous::Frame::State::kComplete) break;
    bytes = bytes.subspan(frame.size);
    const auto fact = control::parse(frame.payload);
    if (!fact) continue;
    auto group = control::GroupMirror::of(*memory.host, *memory.entry);
    require(group.has_value());
    if (const auto* member = std::get_if<control::MemberFact>(&*fact)) group->write(*member);
    if (const auto* refusal = std::get_if<control::RefusalFact>(&*fact)) group->write(*refusal);
    if (const auto* failure = std::get_if<control::FailureFact>(&*fact)) {
      group->write(*failure, *memory.entry);
    }
  }
  // Only ranks of this host report their own calls. Forwarded facts can be decoded.
  const auto group = control::GroupMirror::of(*memory.host, *memory.entry);
  for (int member = 0; member < 2; ++member) {
    require(group->member(member).records.empty() && group->refusals(member).empty());
  }
  for (int member = 2; member < 4; ++member) {
    for (const auto& refusal : group->refusals(member)) {
      require(control::parse(payload_of(refusal)).has_value());
    }
  }
  if (const auto failure = group->failure()) {
    require(control::parse(payload_of(*failure)).has_value());
    require(failure->failure.missing >> group->size() == 0);
  }
}

// --- The handshake ------------------------------------------------------------------------------

// A resource: an end that sends given bytes in pieces, whose sizes the bytes themselves determine.
class Scripted final : public Channel {
 public:
  explicit Scripted(std::span<const std::byte> bytes) : Channel(os::Fd()), bytes_(bytes) {}

  Result receive(std::span<std::byte> to) override {
    if (bytes_.empty()) return {State::kClosed, 0};
    const std::size_t piece =
        std::min({bytes_.size(), to.size(), std::to_integer<std::size_t>(bytes_[0]) % 50 + 1});
    std::memcpy(to.data(), bytes_.data(), piece);
    bytes_ = bytes_.subspan(piece);
    return {State::kMoved, piece};
  }
  Result send(std::span<const std::byte> from) override {
    const std::size_t piece = std::min<std::size_t>(from.size(), 7);
    return {State::kMoved, piece};
  }
  Bytes binding() const override { return Bytes(4); }

 private:
  std::span<const std::byte> bytes_;
};

void shake_hands(std::span<const std::byte> bytes, Side side) {
  control::LaneIdentity identity{.rank = 1, .size = 4, .epoch = 0, .job = "j", .key = {}};
  control::Lane lane(std::make_unique<Scripted>(bytes), side, identity);
  for (int i = 0; i < 4; ++i) lane.move([](std::span<const std::byte>) { std::abort(); });
  require(lane.is_closed());  // no peer proves by chance that it knows the key
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto rest = bytes.subspan(1);
  switch (std::to_integer<int>(bytes[0]) % 4) {
    case 0:
      parse_fact(rest);
      break;
    case 1:
      write_facts(rest);
      break;
    case 2:
      shake_hands(rest, Side::kServer);
      break;
    default:
      shake_hands(rest, Side::kClient);
  }
  return 0;
}
