#include "comm/composition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "algorithm/algorithm_engine.h"
#include "comm/composition_mpi.h"
#include "comm/world.h"
#include "engines/local/local_point_to_point.h"
#include "engines/nccl/nccl_engine.h"
#include "engines/peer/peer_engine.h"
#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"

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

// Looks once for each, in whichever thread asks first.
class FoundLibraries final : public DeviceLibraries {
 public:
  explicit FoundLibraries(DeviceSettings settings) : settings_(std::move(settings)) {}

  const cuda::Found& driver() override {
    std::call_once(driver_once_, [this] { driver_ = cuda::Driver::find(); });
    return driver_;
  }
  const engines::nccl::Found& nccl() {
    std::call_once(nccl_once_, [this] {
      nccl_ = engines::nccl::Library::find({.file = settings_.nccl_library,
                                            .folders = settings_.folders,
                                            .multicast = settings_.multicast,
                                            .ras = settings_.ras});
    });
    return nccl_;
  }
  int nccl_version(std::string& why_not) override {
    why_not = nccl().why_not;
    return nccl().library ? nccl().library->version() : 0;
  }
  const engine::CostTable& costs() override {
    std::call_once(costs_once_, [this] {
      costs_ = settings_.costs.empty() ? engine::CostTable::shipped() : read_costs(settings_.costs);
    });
    return costs_;
  }

 private:
  static engine::CostTable read_costs(const std::string& file) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) throw InvalidArgument(fmt::format("HOCKET_COSTS={}: cannot be read", file));
    try {
      return engine::CostTable::parse(text);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("HOCKET_COSTS={}: {}", file, error.what()));
    }
  }

  DeviceSettings settings_;
  std::once_flag driver_once_;
  std::once_flag nccl_once_;
  std::once_flag costs_once_;
  cuda::Found driver_;
  engines::nccl::Found nccl_;
  engine::CostTable costs_;
};

std::shared_ptr<DeviceLibraries> make_device_libraries(DeviceSettings settings) {
  return std::make_shared<FoundLibraries>(std::move(settings));
}

std::shared_ptr<ThreadJob> make_thread_job() { return std::make_shared<ThreadJob>(); }

namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_to_page(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Parts of a group's block: the control part, the chunk engine's, the channels'.
std::size_t shm_offset(int size) { return round_to_page(GroupControl::bytes(size)); }
std::size_t channels_offset(int size) {
  return shm_offset(size) + round_to_page(ShmGroup::bytes(size));
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
              : std::vector<std::string>{"shm", "algorithm", "mpi", "peer", "nccl"};
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

std::size_t group_bytes(const std::vector<std::string>& engines, int size) {
  if (!has(engines, "shm") && !has(engines, "algorithm") && !has(engines, "mpi"))
    return shm_offset(size);
  return channels_offset(size) + ShmPointToPoint::bytes(size);
}

void format_group(std::byte* memory, int size) { GroupControl::format(memory, size); }

Engines make_engines(WorldImpl& world,
                     const Membership& membership,
                     GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block) {
  const int size = membership.size();
  const engine::GroupFacts facts{.rank = membership.rank, .size = size, .hosts = membership.hosts};
  std::byte* memory = world.host().at(block);
  Engines made;
  const auto& names = world.engines();
  if (has(names, "local")) {
    const auto fabric = world.threads()->fabric(block, size);
    made.messages = std::make_unique<LocalPointToPoint>(
        fabric, membership.rank, [&control](int rank) { control.ring(rank); });
  } else {
    made.messages = std::make_unique<ShmPointToPoint>(control, memory + channels_offset(size));
  }
  for (const std::string& name : names) {
    if (is_of_gpus(name)) continue;
    if (name == "shm") {
      made.collectives.push_back(
          std::make_unique<ShmEngine>(control, consistency, memory + shm_offset(size), facts));
    } else if (name == "mpi") {
      made.collectives.push_back(world.mpi()->make_engine(
          membership, facts, [&control, rank = membership.rank] { control.ring(rank); }));
    } else {
      made.collectives.push_back(std::make_unique<algorithm::AlgorithmEngine>(
          *made.messages, facts, algorithm::Tuning{.forced = world.algorithms()}));
    }
  }
  return made;
}

std::vector<std::unique_ptr<engine::DeviceEngine>> make_device_engines(
    WorldImpl& world,
    const Membership& membership,
    const std::shared_ptr<const cuda::DeviceContext>& device,
    const DeviceAgreement& agreed,
    std::vector<std::string>& notes) {
  const auto& hosts = membership.hosts;
  const engine::GroupFacts facts{
      .rank = membership.rank,
      .size = membership.size(),
      .hosts = hosts,
      .one_host = std::all_of(hosts.begin(), hosts.end(), [&](int h) { return h == hosts[0]; })};
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
      add(agreed.shareable ? PeerEngine::why_not(facts) : "a GPU's memory cannot be shared",
          name,
          [&] {
            return std::make_unique<PeerEngine>(
                device, facts, engines::peer::default_tuning(facts.size));
          });
    } else if (name == "nccl") {
      add(agreed.why_no_nccl, name, [&] {
        return std::make_unique<engines::nccl::NcclEngine>(libraries.nccl().library, device, facts);
      });
    }
  }
  return made;
}

}  // namespace hocket::comm
