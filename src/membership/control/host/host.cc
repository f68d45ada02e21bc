#include "membership/control/host/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "foundation/base/interrupt.h"
#include "hocket/error.h"
#include "membership/control/host/layout.h"

namespace hocket::control {

void HostControl::require_places(int ranks) {
  if (ranks <= kMostRanks) return;
  throw InvalidArgument(
      fmt::format("there are {} ranks on one host, expected {} at most", ranks, kMostRanks));
}

std::size_t HostControl::segment_bytes(const HostShape& shape) {
  require_places(shape.ranks);
  return stripe_offset(shape, shape.ranks);
}

void HostControl::format(os::Segment& segment, const HostShape& shape) {
  auto& header = *new (segment.data()) HostHeader;
  header.ranks = static_cast<std::uint32_t>(shape.ranks);
  header.remote = static_cast<std::uint32_t>(shape.remote);
  header.stripe_bytes = shape.stripe_bytes;
  // The rest of the segment is zero, which is the initial value of lines and words.
  for (int i = 0; i < shape.ranks + shape.remote; ++i) {
    new (segment.data() + lines_offset() + sizeof(RankLine) * static_cast<std::size_t>(i)) RankLine;
  }
  header.magic.store(kMagic, std::memory_order_release);
}

// Checks a segment and finds its structures. Throws RendezvousError if it has another version, or
// no place for `self`.
struct HostControl::Map {
  Map(std::shared_ptr<os::Segment> of, int self) : segment(std::move(of)) {
    if (segment->size() < sizeof(HostHeader) ||
        header().magic.load(std::memory_order_acquire) != kMagic) {
      throw RendezvousError(
          "the job's shared memory was made by another version of hocket; use the same one on all "
          "ranks");
    }
    shape = {.ranks = static_cast<int>(header().ranks),
             .remote = static_cast<int>(header().remote),
             .stripe_bytes = header().stripe_bytes};
    if (self < 0 || self >= shape.ranks || segment_bytes(shape) > segment->size()) {
      throw RendezvousError(
          fmt::format("host rank {} has no seat in a segment of {} ranks", self, shape.ranks));
    }
    view = {at<RankLine>(lines_offset()), self, shape.ranks, shape.ranks + shape.remote};
    if (shape.remote == 0) return;
    const std::size_t kept_facts = kept_facts_offset(shape);
    groups = {.entries = at<GroupEntry>(groups_offset(shape)),
              .farewells = at<KeptFacts>(kept_facts),
              .forerunners = at<KeptFacts>(kept_facts + pages(sizeof(KeptFacts), 1)),
              .gone = at<GoneGroups>(kept_facts + 2 * pages(sizeof(KeptFacts), 1))};
  }
  HostHeader& header() const { return *at<HostHeader>(0); }
  template <typename Structure>
  Structure* at(std::size_t offset) const {
    return reinterpret_cast<Structure*>(segment->data() + offset);
  }

  std::shared_ptr<os::Segment> segment;
  HostShape shape;
  HostView view{nullptr, 0, 0, 0};
  ListedGroups::Mapped groups;
};

HostControl::HostControl(std::shared_ptr<os::Segment> segment, int self)
    : HostControl(Map(std::move(segment), self)) {}

HostControl::HostControl(const Map& map)
    : HostView(map.view),
      doorbells(map.view, map.header().network_bell),
      liveness(map.view,
               map.at<os::RobustWord>(robust_offset(map.shape)),
               map.header().losses,
               doorbells),
      end_reasons(map.view, map.at<SharedEndReason>(reasons_offset(map.shape))),
      remote_hosts(map.view, doorbells, liveness, end_reasons),
      groups(map.groups, doorbells),
      processors(map.view),
      peer_memory(map.view, doorbells, liveness),
      memory(map.view, map.segment, map.shape, doorbells, liveness),
      waits(map.view),
      tasks(map.view, doorbells, end_reasons),
      header_(map.header()) {}

void HostControl::arrive(int world_rank) {
  doorbells.announce_fences();
  peer_memory.offer_proof();
  liveness.arrive(world_rank);
}

void HostControl::wait_for_all(std::span<const int> world_ranks, base::Deadline deadline) {
  const auto present = [this] {
    return std::all_of(lines_, lines_ + places_, [](const RankLine& line) {
      return line.state.load(std::memory_order_acquire) != RankState::kAbsent;
    });
  };
  while (!present()) {
    const auto ticket = doorbells.before_sleep();
    if (!present()) doorbells.sleep(ticket, deadline);
    doorbells.after_sleep();
    try {
      base::throw_if_interrupted("the wait for all ranks of this host");
    } catch (const RendezvousError&) {
      if (!present()) throw;  // otherwise all had arrived before a rank ended
    }
    if (present() || !deadline.has_passed()) continue;
    std::vector<int> missing;
    for (int i = 0; i < places_; ++i) {
      if (liveness.state(i) == RankState::kAbsent)
        missing.push_back(world_ranks[static_cast<std::size_t>(i)]);
    }
    throw RendezvousError(fmt::format(
        "{} {} met the others at the store but did not come to their host's shared memory in "
        "time; see their output",
        missing.size() == 1 ? "rank" : "ranks",
        fmt::join(missing, ", ")));
  }
  doorbells.learn_fences();
}

void HostControl::publish_world(std::uint64_t offset) noexcept {
  header_.world.store(offset, std::memory_order_release);
}

std::uint64_t HostControl::published_world() const noexcept {
  return header_.world.load(std::memory_order_acquire);
}

}  // namespace hocket::control
