#include "comm/composition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "algorithm/algorithm_engine.h"
#include "algorithm/hierarchy_engine.h"
#include "comm/composition_libraries.h"
#include "comm/composition_mpi.h"
#include "comm/composition_near.h"
#include "comm/routed_messages.h"
#include "comm/world.h"
#include "engines/local/local_point_to_point.h"
#include "engines/nccl/nccl_engine.h"
#include "engines/peer/peer_engine.h"
#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"
#include "engines/ucx/ucx_device_engine.h"
#include "engines/ucx/ucx_point_to_point.h"

namespace hocket::comm {

using control::GroupControl;
using engines::local::LocalFabric;
using engines::local::LocalPointToPoint;
using engines::peer::PeerEngine;
using engines::shm::ShmEngine;
using engines::shm::ShmGroup;
using engines::shm::ShmPointToPoint;

// Threads' fabrics by the group's place in the segment; a fabric lives as long as its users.
class ThreadJob {
 public:
  std::shared_ptr<LocalFabric> fabric(std::uint64_t block, int size) {
    const std::lock_guard lock(mutex_);
    auto& entry = fabrics_[block];
    auto fabric = entry.lock();
    if (!fabric) entry = fabric = std::make_shared<LocalFabric>(size);
    return fabric;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<LocalFabric>> fabrics_;
};

std::shared_ptr<ThreadJob> make_thread_job() { return std::make_shared<ThreadJob>(); }

namespace {

// Parts of a group's block: the control part, the chunk engine's, the channels'.
std::size_t shm_offset(int size) { return round_to_part(GroupControl::bytes(size)); }
std::size_t channels_offset(int size) {
  return shm_offset(size) + round_to_part(ShmGroup::bytes(size));
}
// Where there are members on other hosts: the control part of all, then what those on this host
// have among themselves.
std::size_t near_offset(const GroupShape& shape) {
  return round_to_part(GroupControl::bytes(shape.size));
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// A view of the membership, which outlives it.
engine::GroupFacts facts_of(const call::Membership& membership) {
  return {.rank = membership.rank,
          .size = membership.size(),
          .hosts = membership.hosts,
          .one_host = !membership.spans()};
}
// Whether UCX carries what is within a host, too.
bool is_all_ucx(const std::vector<std::string>& names) {
  return has(names, "ucx") && !has(names, "shm") && !has(names, "algorithm") && !has(names, "mpi");
}

}  // namespace

bool is_of_gpus(const std::string& name) { return name == "peer" || name == "nccl"; }

std::vector<std::string> split_names(const std::string& comma_separated) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < comma_separated.size();) {
    const std::size_t end = std::min(comma_separated.find(',', at), comma_separated.size());
    if (end > at) names.push_back(comma_separated.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

std::vector<std::string> wanted_engines(const InitOptions& options,
                                        const base::Config& config,
                                        bool threads) {
  if (!options.engines.empty()) return options.engines;
  if (!config.engines.empty() || config.algorithm.empty()) return split_names(config.engines);
  return {threads ? "local" : "algorithm", "peer", "nccl"};
}

std::vector<std::string> choose_engines(const std::vector<std::string>& wanted, bool threads) {
  const std::vector<std::string> there =
      threads ? std::vector<std::string>{"local", "shm", "algorithm", "peer", "nccl"}
              : std::vector<std::string>{"shm", "algorithm", "ucx", "mpi", "peer", "nccl"};
  for (const std::string& name : wanted) {
    if (!has(there, name)) {
      throw InvalidArgument(
          fmt::format("there is no engine \"{}\" for {}; there are: {}",
                      name,
                      threads ? "ranks that are threads" : "ranks that are processes",
                      fmt::join(there, ", ")));
    }
  }
  // shm carries everything within a host; `algorithm` is there to be asked for. Who asks for
  // engines of GPUs alone means those; the host's are needed all the same.
  const std::string host = threads ? "local" : "shm";
  if (wanted.empty()) return {host, "peer", "nccl"};
  std::vector<std::string> chosen = wanted;
  if (std::all_of(wanted.begin(), wanted.end(), is_of_gpus)) chosen.push_back(host);
  return chosen;
}

std::size_t group_bytes(const std::vector<std::string>& engines, const GroupShape& shape) {
  if (shape.spans()) return near_offset(shape) + near_bytes(shape.local);
  if (!has(engines, "shm") && !has(engines, "algorithm") && !has(engines, "mpi")) {
    return shm_offset(shape.size);
  }
  return channels_offset(shape.size) + ShmPointToPoint::bytes(shape.size);
}

void format_group(std::byte* memory, std::span<const int> places, int local) {
  const GroupShape shape{.size = static_cast<int>(places.size()), .local = local};
  GroupControl::format(memory, places);
  if (shape.spans()) format_near(memory + near_offset(shape), local);
}

namespace {

std::unique_ptr<engine::PointToPoint> make_far(WorldImpl& world, const call::Membership& membership) {
  return std::make_unique<engines::ucx::UcxPointToPoint>(
      static_cast<UcxCarriage&>(*world.carriage()).fabric(),
      engines::ucx::Members{.group = membership.id(),
                            .rank = membership.rank,
                            .world_ranks = membership.world_ranks});
}

// Of a group with members on several hosts.
call::Engines make_spanning(WorldImpl& world,
                      const call::Membership& membership,
                      const engine::GroupFacts& facts,
                      GroupControl& control,
                      engine::Consistency& consistency,
                      std::byte* memory) {
  call::Engines made;
  const auto all = std::make_shared<std::vector<engine::CollectiveEngine*>>();
  const algorithm::Tuning tuning = algorithm::across_hosts(membership.hosts, world.algorithms());
  auto far = make_far(world, membership);
  const auto& names = world.engines();
  if (is_all_ucx(names)) {
    made.messages = std::move(far);
    made.collectives.push_back(
        std::make_unique<algorithm::AlgorithmEngine>(*made.messages, facts, tuning));
    return made;
  }
  const Mates mates = mates_of(membership);
  const GroupShape shape{.size = membership.size(), .local = mates.size()};
  Near near = make_near(world.host(), mates, memory + near_offset(shape), consistency);
  made.messages =
      std::make_unique<RoutedMessages>(std::move(near.messages), mates.numbers, std::move(far));
  if (has(names, "mpi") && !membership.has_lost_ranks) {
    made.collectives.push_back(world.mpi()->make_engine(membership, facts, control, all));
  }
  if (has(names, "shm")) {
    made.collectives.push_back(std::make_unique<algorithm::HierarchyEngine>(
        *made.messages,
        facts,
        algorithm::HierarchyTuning{.straight = world.algorithms()},
        std::move(near.collectives)));
  }
  made.collectives.push_back(
      std::make_unique<algorithm::AlgorithmEngine>(*made.messages, facts, tuning));
  for (const auto& engine : made.collectives) all->push_back(engine.get());
  return made;
}

}  // namespace

call::Engines make_engines(WorldImpl& world,
                     const call::Membership& membership,
                     GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block) {
  const int size = membership.size();
  const engine::GroupFacts facts = facts_of(membership);
  std::byte* memory = world.host().at(block);
  call::Engines made;
  const auto all = std::make_shared<std::vector<engine::CollectiveEngine*>>();
  const auto& names = world.engines();
  if (membership.has_lost_ranks && world.mpi() && world.has_lost_one_of(world.host().places())) {
    world.mpi()->forsake();
  }
  if (membership.spans())
    return make_spanning(world, membership, facts, control, consistency, memory);
  if (has(names, "local")) {
    const auto fabric = world.threads()->fabric(block, size);
    made.messages = std::make_unique<LocalPointToPoint>(
        fabric, membership.rank, [&control](int rank) { control.ring(rank); });
  } else if (is_all_ucx(names)) {
    made.messages = make_far(world, membership);
  } else {
    made.messages = std::make_unique<ShmPointToPoint>(control, memory + channels_offset(size));
  }
  for (const std::string& name : names) {
    if (is_of_gpus(name)) continue;
    // What MPI carried is carried otherwise once it has lost a rank.
    if (name == "shm" || (name == "mpi" && membership.has_lost_ranks && !has(names, "shm"))) {
      made.collectives.push_back(
          std::make_unique<ShmEngine>(control, consistency, memory + shm_offset(size), facts));
    } else if (name == "mpi") {
      if (membership.has_lost_ranks) continue;
      made.collectives.push_back(world.mpi()->make_engine(membership, facts, control, all));
    } else if (name != "ucx" || is_all_ucx(names)) {
      made.collectives.push_back(std::make_unique<algorithm::AlgorithmEngine>(
          *made.messages, facts, algorithm::Tuning{.forced = world.algorithms()}));
    }
  }
  for (const auto& engine : made.collectives) all->push_back(engine.get());
  return made;
}

namespace {

engines::ucx::DeviceOptions ucx_options(WorldImpl& world,
                                        const call::Membership& membership,
                                        bool always) {
  auto& carriage = static_cast<UcxCarriage&>(*world.carriage());
  return {.fabrics = {world.carriage(), &carriage.gpu_fabrics()},
          .members = {.group = ~membership.id(),  // not that of its messages in host memory
                      .rank = membership.rank,
                      .world_ranks = membership.world_ranks,
                      .memory = MemoryKind::kCuda},
          .world = static_cast<std::size_t>(world.size()),
          .always = always,
          .interrupted = [&world] { return world.interrupted(); }};
}

}  // namespace

UseGpus ucx_gpus(WorldImpl& world) {
  if (!world.carriage()) return UseGpus::kNever;
  return static_cast<UcxCarriage&>(*world.carriage()).gpus();
}

UseGpus mpi_gpus(WorldImpl& world) {
  return world.mpi() ? world.mpi()->use_gpus() : UseGpus::kNever;
}

std::vector<std::unique_ptr<engine::DeviceEngine>> make_device_engines(
    WorldImpl& world,
    const call::Membership& membership,
    const std::shared_ptr<const cuda::DeviceContext>& device,
    const DeviceAgreement& agreed,
    std::vector<std::string>& notes) {
  const engine::GroupFacts facts = facts_of(membership);
  auto& libraries = static_cast<FoundLibraries&>(world.device_libraries());
  std::vector<std::unique_ptr<engine::DeviceEngine>> made;
  const auto add = [&](const std::string& why_not, const std::string& name, const auto& make) {
    if (why_not.empty()) {
      made.push_back(make());
    } else {
      notes.push_back(name + ": " + why_not);
    }
  };
  for (const std::string& name : world.engines()) {
    if (name == "peer") {
      add(agreed.shareable || facts.size == 1 ? PeerEngine::why_not(facts)
                                              : "a GPU's memory cannot be shared",
          name,
          [&] {
            return std::make_unique<PeerEngine>(
                device, facts, engines::peer::default_tuning(facts.size), agreed.ranks_a_gpu);
          });
    } else if (name == "nccl") {
      const bool needs_none = facts.size == 1 && std::ranges::count(world.engines(), "peer") > 0;
      add(needs_none ? "one rank needs no other" : agreed.why_no_nccl, name, [&] {
        return std::make_unique<engines::nccl::NcclEngine>(libraries.nccl().library, device, facts);
      });
    } else if (name == "ucx") {
      const std::string why_not = world.carriage() == nullptr          ? "no rank needs it"
                                  : agreed.ucx_gpus == UseGpus::kNever ? "HOCKET_UCX_GPUS=never"
                                                                       : "";
      add(why_not, name, [&] {
        return std::make_unique<engines::ucx::UcxDeviceEngine>(
            device, ucx_options(world, membership, agreed.ucx_gpus == UseGpus::kAlways));
      });
    } else if (name == "mpi") {
      const std::string why_not = facts.size == 1                      ? "one rank needs no other"
                                  : membership.has_lost_ranks                ? "MPI has lost a rank"
                                  : agreed.mpi_gpus == UseGpus::kNever ? "HOCKET_MPI_GPUS=never"
                                                                       : "";
      add(why_not, name, [&] {
        return world.mpi()->make_device_engine(
            membership, device, agreed.mpi_gpus == UseGpus::kAlways, [&world] {
              return world.interrupted();
            });
      });
    }
  }
  return made;
}

}  // namespace hocket::comm
