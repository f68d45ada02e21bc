// Makes communicators from communicators: groups, splits, duplicates.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "calls/world/allocation.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/world.h"
#include "foundation/base/hash.h"

namespace hocket {

using engine::Kind;
using engine::Signature;
using world::CommunicatorImpl;

namespace {

std::uint64_t hash_ranks(std::span<const int> ranks) {
  std::uint64_t hash = base::kHashSeed;
  for (const int rank : ranks) hash = base::mix(hash, static_cast<std::uint64_t>(rank));
  return hash | 1;
}

// Gathers one value from each rank. Records show it as the call `shown`.
template <typename T>
std::vector<T> gather_all(CommunicatorImpl& parent,
                          const Signature& shown,
                          const T& mine,
                          const CallOptions& options) {
  auto all = parent.before_call(
      shown.kind, [&] { return std::vector<T>(static_cast<std::size_t>(parent.size())); });
  const auto bytes = std::as_bytes(std::span(&mine, 1));
  parent.run_as(shown,
                {.kind = Kind::kAllGather,
                 .in = ConstArrayView(bytes.data(), bytes.size(), DType::kUInt8),
                 .out = ArrayView(all.data(), all.size() * sizeof(T), DType::kUInt8),
                 .deadline = options.deadline});
  return all;
}

// Makes the membership of a group of the parent's ranks `members`, in this order.
call::Membership membership(const CommunicatorImpl& parent,
                            std::span<const int> members,
                            std::string name) {
  const call::Membership& old = parent.membership();
  call::Membership made{.name = std::move(name), .has_lost_ranks = old.has_lost_ranks};
  for (const int member : members) {
    const auto m = static_cast<std::size_t>(member);
    if (member == parent.rank()) made.rank = made.size();
    made.world_ranks.push_back(old.world_ranks[m]);
    made.hosts.push_back(old.hosts[m]);
    made.host_ranks.push_back(old.host_ranks[m]);
  }
  return made;
}

// This rank's part in making a group. It must not be moved once it is prepared, because `own`
// refers to `made`.
struct PlannedGroup {
  call::Membership made;
  int leader = -1;  // the first member on this host, by its rank in the parent
  world::Allocation own;
};

void prepare(const CommunicatorImpl& parent, std::span<const int> members, PlannedGroup& plan) {
  const auto& world = parent.world();
  call::Membership& made = plan.made;
  made = membership(
      parent, members, fmt::format("{}/{}", parent.membership().name, parent.groups() + 1));
  int& leader = plan.leader;
  std::vector<int> holders;
  for (const int member : members) {
    const auto& hosts = parent.membership().hosts;
    if (hosts[static_cast<std::size_t>(member)] != hosts[static_cast<std::size_t>(parent.rank())]) {
      continue;
    }
    if (leader < 0) leader = member;
    holders.push_back(parent.membership().host_ranks[static_cast<std::size_t>(member)]);
  }
  const int size = made.size();
  world::Allocation& own = plan.own;
  own.what = fmt::format("a group of {}", size);
  if (made.rank >= 0 && leader == parent.rank()) {
    const world::GroupShape shape{.size = size, .local = static_cast<int>(holders.size())};
    own.bytes = world::group_bytes(world->engines(), shape);
    if (shape.spans()) holders.push_back(control::HostMemory::kNetwork);
    own.holders = std::move(holders);
    own.format = [&made, shape](std::byte* memory) {
      world::format_group(memory, made.host_ranks, shape.local);
    };
    if (shape.spans()) {
      own.enlist = [&made, &host = world->host(), shape](std::uint64_t block, Duration patience) {
        return host.groups.enlist({.id = made.id(), .block = block, .size = shape.size}, patience);
      };
    }
  }
}

// Makes this rank's group; the parent's ranks make several disjoint groups at once. `members` is
// empty if this rank is in no group. The first member on each host allocates the group's memory
// there.
Communicator make_group(CommunicatorImpl& parent,
                        const Signature& shown,
                        std::span<const int> members,
                        const CallOptions& options) {
  PlannedGroup plan;
  parent.before_call(shown.kind, [&] { prepare(parent, members, plan); });
  const auto blocks = world::allocate_together(parent, shown, plan.own, options.deadline);
  parent.count_group();  // refused calls do not count, because some ranks never began them
  const bool is_member = plan.made.rank >= 0;
  const std::uint64_t block = is_member ? blocks[static_cast<std::size_t>(plan.leader)] : 0;
  auto impl = parent.before_call(shown.kind, [&] {
    return CommunicatorImpl::make(parent.world(), std::move(plan.made), block);
  });
  impl->set_deadline(parent.deadline());
  impl->set_audited(parent.is_audited());
  // This barrier makes sure that either all ranks have the group or none.
  parent.run_as(shown, {.kind = Kind::kBarrier, .deadline = options.deadline});
  return Communicator(std::move(impl));
}

void check_ranks(std::span<const int> ranks, int size) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < 0 || sorted[i] >= size) {
      throw InvalidArgument(
          fmt::format("ranks has {}, expected ranks from 0 to {}", sorted[i], size - 1));
    }
    if (i > 0 && sorted[i] == sorted[i - 1]) {
      throw InvalidArgument(fmt::format("ranks has {} twice", sorted[i]));
    }
  }
}

// Returns the parent's ranks whose value equals this rank's, in order.
std::vector<int> alike(const CommunicatorImpl& parent, std::span<const int> values) {
  std::vector<int> members;
  const int own = values[static_cast<std::size_t>(parent.rank())];
  for (int i = 0; i < parent.size(); ++i) {
    if (values[static_cast<std::size_t>(i)] == own) members.push_back(i);
  }
  return members;
}

}  // namespace

Communicator Communicator::new_group(std::span<const int> ranks, const CallOptions& options) {
  impl_->before_call(Kind::kNewGroup, [&] { check_ranks(ranks, size()); });
  return make_group(*impl_, {.kind = Kind::kNewGroup, .digest = hash_ranks(ranks)}, ranks, options);
}

Communicator Communicator::split(const SplitOptions& split, const CallOptions& options) {
  struct Choice {
    int color;
    int key;
  };
  const Signature shown{.kind = Kind::kSplit};
  const auto choices =
      gather_all(*impl_, shown, Choice{std::max(split.color, -1), split.key}, options);
  const auto members = impl_->before_call(Kind::kSplit, [&] {
    std::vector<int> found;
    if (split.color < 0) return found;
    for (int i = 0; i < size(); ++i) {
      if (choices[static_cast<std::size_t>(i)].color == split.color) found.push_back(i);
    }
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) {
      return choices[static_cast<std::size_t>(a)].key < choices[static_cast<std::size_t>(b)].key;
    });
    return found;
  });
  return make_group(*impl_, shown, members, options);
}

Communicator Communicator::duplicate(const CallOptions& options) {
  const auto members = impl_->before_call(Kind::kNewGroup, [&] {
    std::vector<int> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  });
  return make_group(
      *impl_, {.kind = Kind::kNewGroup, .digest = hash_ranks(members)}, members, options);
}

Communicator& Communicator::intra_node() {
  if (!impl_->intra_node) {
    impl_->require_usable();
    std::unique_ptr<Communicator> kept;
    const auto members = impl_->before_call(Kind::kIntraNode, [&] {
      kept = std::make_unique<Communicator>(nullptr);
      return alike(*impl_, impl_->membership().hosts);
    });
    *kept = make_group(*impl_, {.kind = Kind::kIntraNode}, members, {});
    impl_->intra_node = std::move(kept);
  }
  return *impl_->intra_node;
}

Communicator& Communicator::inter_node() {
  if (!impl_->inter_node) {
    impl_->require_usable();
    std::unique_ptr<Communicator> kept;
    const auto members = impl_->before_call(Kind::kInterNode, [&] {
      kept = std::make_unique<Communicator>(nullptr);
      std::map<int, int> count;  // by host: members numbered so far
      std::vector<int> local;
      for (const int host : impl_->membership().hosts) local.push_back(count[host]++);
      return alike(*impl_, local);
    });
    *kept = make_group(*impl_, {.kind = Kind::kInterNode}, members, {});
    impl_->inter_node = std::move(kept);
  }
  return *impl_->inter_node;
}

}  // namespace hocket
