#include "calls/world/group_engines.h"

#include <algorithm>

#include "calls/world/near_engines.h"
#include "calls/world/routed_messages.h"
#include "calls/world/world.h"
#include "engines/algorithm/algorithm_engine.h"
#include "engines/algorithm/hierarchy_engine.h"

namespace hocket::world {

using control::GroupControl;
using engine::CollectiveEngine;

namespace {

// Parts of a group's block begin at multiples of this, for any page size of the kernel.
constexpr std::size_t kPartBytes = 4096;
constexpr std::size_t round_to_part(std::size_t bytes) {
  return (bytes + kPartBytes - 1) / kPartBytes * kPartBytes;
}

// A group's block begins with the control part of all members. If there are members on other hosts,
// the control part of the members on this host follows. Then come the engines' parts.
//
//   | control of all | control of this host's | engine 1 | engine 2 | ...
std::size_t near_control_offset(const GroupShape& shape) {
  return round_to_part(GroupControl::bytes(shape.size));
}
std::size_t parts_offset(const GroupShape& shape) {
  const std::size_t near = shape.spans() ? round_to_part(GroupControl::bytes(shape.local)) : 0;
  return near_control_offset(shape) + near;
}
// Returns the offset of one engine's part; for null, the end of the last part.
std::size_t part_offset(const JobEngines& engines,
                        const GroupShape& shape,
                        const engine::Provider* wanted) {
  std::size_t offset = parts_offset(shape);
  for (const auto& each : engines.with_memory()) {
    if (each.get() == wanted) break;
    offset += round_to_part(each->group_bytes(shape.local));
  }
  return offset;
}

}  // namespace

std::size_t group_bytes(const JobEngines& engines, const GroupShape& shape) {
  return part_offset(engines, shape, nullptr);
}

void format_group(std::byte* memory, std::span<const int> places, int local) {
  const GroupShape shape{.size = static_cast<int>(places.size()), .local = local};
  GroupControl::format(memory, places);
  if (!shape.spans()) return;
  GroupControl::format(memory + near_control_offset(shape),
                       std::vector<int>(static_cast<std::size_t>(local)));
}

namespace {

// Makes the engines of one group. A value that is used once.
class Making {
 public:
  Making(WorldImpl& world, engine::GroupSite site, const GroupShape& shape)
      : world_(world), engines_(world.engines()), site_(std::move(site)), shape_(shape) {}

  call::Engines within_a_host();
  call::Engines across_hosts(const call::Membership& membership);

 private:
  // Returns the site for one engine.
  const engine::GroupSite& site_of(const engine::Provider& provider);
  void add(std::unique_ptr<CollectiveEngine> engine) {
    made_.collectives.push_back(std::move(engine));
  }
  void add_algorithms(const algorithm::Tuning& tuning) {
    add(std::make_unique<algorithm::AlgorithmEngine>(*made_.messages, site_.facts, tuning));
  }
  // Returns the kinds that no engine so far carries.
  engine::KindSet left_out() const;

  WorldImpl& world_;
  const JobEngines& engines_;
  engine::GroupSite site_;
  const GroupShape shape_;
  call::Engines made_;
};

const engine::GroupSite& Making::site_of(const engine::Provider& provider) {
  site_.memory = site_.block + part_offset(engines_, shape_, &provider);
  return site_;
}

engine::KindSet Making::left_out() const {
  return engine::KindSet::where([this](engine::Kind kind) {
    const engine::Signature one{.kind = kind, .dtype = DType::kFloat32, .count = 1};
    return engine::is_carried(kind) &&
           std::ranges::none_of(made_.collectives,
                                [&](const auto& engine) { return engine->score(one).has_value(); });
  });
}

call::Engines Making::within_a_host() {
  const auto& near = engines_.near();
  made_.messages = near->make_messages(site_of(*near));
  bool lacks = false;
  bool has_near = false;
  for (const auto& each : engines_.chosen()) {
    if (is_of_gpus(*each)) continue;
    if (each->has_collectives()) {
      auto engine = each->make_collectives(site_of(*each));
      lacks = lacks || !engine;
      has_near = has_near || (engine && each == near);
      if (engine) add(std::move(engine));
    } else if (each == near || each->reach() == engine::Distance::kNowhere) {
      add_algorithms({.forced = world_.algorithms()});
    }
  }
  // If a chosen engine does not support this group, the engine of messages within the host carries
  // its collectives.
  if (lacks && !has_near) {
    if (near->has_collectives()) {
      add(near->make_collectives(site_of(*near)));
    } else {
      add_algorithms({.forced = world_.algorithms()});
    }
  }
  // Adds algorithms over messages for the kinds that no engine carries.
  if (const engine::KindSet kinds = left_out(); kinds != engine::KindSet{}) {
    add_algorithms({.forced = world_.algorithms(), .kinds = kinds});
  }
  return std::move(made_);
}

call::Engines Making::across_hosts(const call::Membership& membership) {
  const auto tuning = algorithm::across_hosts(membership.hosts, world_.algorithms());
  const auto& near = engines_.near();
  const auto& far = engines_.far();
  auto messages = far->make_messages(site_of(*far));
  if (engines_.is_one_carrier()) {
    made_.messages = std::move(messages);
    add_algorithms(tuning);
    return std::move(made_);
  }
  const LocalMembers local = local_members_of(membership);
  Near among = make_near(world_.host(),
                         *near,
                         site_,
                         local,
                         site_.block + near_control_offset(shape_),
                         site_.block + part_offset(engines_, shape_, near.get()));
  made_.messages = std::make_unique<RoutedMessages>(
      std::move(among.messages), local.numbers, std::move(messages));
  for (const auto& each : engines_.chosen()) {
    if (is_of_gpus(*each) || !each->has_collectives()) continue;
    auto engine = each->make_collectives(site_of(*each));
    if (!engine && each == near) {
      engine = std::make_unique<algorithm::HierarchyEngine>(
          *made_.messages,
          site_.facts,
          algorithm::HierarchyTuning{.straight = world_.algorithms()},
          std::move(among.collectives));
    }
    if (engine) add(std::move(engine));
  }
  add_algorithms(tuning);
  return std::move(made_);
}

}  // namespace

call::Engines make_engines(WorldImpl& world,
                           const call::Membership& membership,
                           GroupControl& control,
                           engine::Consistency& consistency,
                           std::uint64_t block) {
  if (membership.has_lost_ranks && world.has_lost_one_of(world.host().places())) world.forsake();
  const auto all = std::make_shared<std::vector<CollectiveEngine*>>();
  const auto own = membership.hosts[static_cast<std::size_t>(membership.rank)];
  const GroupShape shape{.size = membership.size(),
                         .local = static_cast<int>(std::ranges::count(membership.hosts, own))};
  Making making(world,
                {.id = membership.id(),
                 .facts = facts_of(membership),
                 .world_ranks = membership.world_ranks,
                 .has_lost_ranks = membership.has_lost_ranks,
                 .block = world.host().memory.at(block),
                 .control = &control,
                 .consistency = &consistency,
                 .ring = [&control](int member) { control.ring(member); },
                 .rivals = all},
                shape);
  call::Engines made =
      membership.spans() ? making.across_hosts(membership) : making.within_a_host();
  for (const auto& engine : made.collectives) all->push_back(engine.get());
  return made;
}

}  // namespace hocket::world
