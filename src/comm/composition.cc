#include "comm/composition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "algorithm/algorithm_engine.h"
#include "algorithm/hierarchy_engine.h"
#include "comm/composition_mpi.h"
#include "comm/routed_messages.h"
#include "comm/world.h"
#include "engines/local/local_point_to_point.h"
#include "engines/nccl/nccl_engine.h"
#include "engines/peer/peer_engine.h"
#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"
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

// UCX's end in this process, for messages between hosts.
class UcxCarriage final : public Carriage {
 public:
  UcxCarriage(std::shared_ptr<const engines::ucx::Library> library,
              const CarriageSettings& settings)
      : fabric_(std::make_shared<engines::ucx::Fabric>(
            std::move(library),
            engines::ucx::FabricOptions{.interface = settings.interface,
                                        .wake =
                                            [this] {
                                              if (auto* host = host_.load())
                                                host->ring(host->self());
                                            },
                                        .help =
                                            [this] {
                                              if (auto* network = network_.load())
                                                network->notify();
                                            }})) {}

  Bytes address() const override { return fabric_->address(); }
  void meet(std::vector<Bytes> addresses) override { fabric_->meet(std::move(addresses)); }
  std::string why_unreachable(int rank) override { return fabric_->why_unreachable(rank); }
  void attach(control::HostControl* host, control::Network* network) noexcept override {
    host_ = host;
    network_ = network;
  }
  control::Carrier carrier() override {
    return {.event_fd = fabric_->event_fd(),
            .arm = [fabric = fabric_] { return fabric->arm(); },
            .pending = [fabric = fabric_] { return fabric->pending(); },
            .progress = [fabric = fabric_] { return fabric->progress(); },
            .take_broken = [fabric = fabric_] { return fabric->take_broken(); }};
  }
  bool flush(base::Deadline deadline) noexcept override { return fabric_->flush(deadline); }
  void retire() noexcept override { fabric_->retire(); }

  const std::shared_ptr<engines::ucx::Fabric>& fabric() const noexcept { return fabric_; }

 private:
  std::atomic<control::HostControl*> host_{nullptr};
  std::atomic<control::Network*> network_{nullptr};
  std::shared_ptr<engines::ucx::Fabric> fabric_;
};

std::shared_ptr<Carriage> make_carriage(const CarriageSettings& settings) {
  const auto found = engines::ucx::Library::find();
  if (!found.library) {
    throw RendezvousError("messages between hosts need UCX, and " + found.why_not);
  }
  return std::make_shared<UcxCarriage>(found.library, settings);
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
// Where there are members on other hosts: the control part of all; that of those on this host,
// their chunks, and their channels.
std::size_t near_offset(const GroupShape& shape) {
  return round_to_page(GroupControl::bytes(shape.size));
}
std::size_t near_shm_offset(const GroupShape& shape) {
  return near_offset(shape) + round_to_page(GroupControl::bytes(shape.local));
}
std::size_t near_channels_offset(const GroupShape& shape) {
  return near_shm_offset(shape) + round_to_page(ShmGroup::bytes(shape.local));
}

// Those members of a group that are on this host, where others are not. A resource, shared by what
// works among them; members are numbered anew.
struct HostMates {
  HostMates(control::HostControl& host, std::byte* memory, int own, std::vector<int> their_places)
      : places(std::move(their_places)), control(host, memory, own, places) {}
  const std::vector<int> places;
  GroupControl control;
};

// Messages between them.
class NearMessages final : public engine::PointToPoint {
 public:
  NearMessages(std::shared_ptr<HostMates> mates, std::byte* channels)
      : mates_(std::move(mates)), messages_(mates_->control, channels) {}
  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override {
    return messages_.send(to, bytes);
  }
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override {
    return messages_.recv(from, bytes);
  }
  bool test(engine::MessageId message, engine::Envelope* received) override {
    return messages_.test(message, received);
  }
  bool progress() override { return messages_.progress(); }
  void cancel(engine::MessageId message) noexcept override { messages_.cancel(message); }
  std::optional<int> waiting(engine::Tag tag) override { return messages_.waiting(tag); }

 private:
  const std::shared_ptr<HostMates> mates_;
  ShmPointToPoint messages_;
};

// Collectives among them, as parts of those of the whole group. What each rank has called is
// compared where their parts meet.
class NearEngine final : public engine::CollectiveEngine, private engine::Consistency {
 public:
  // `members`: the number in the whole group of each.
  NearEngine(std::shared_ptr<HostMates> mates,
             std::byte* memory,
             engine::Consistency& whole,
             std::vector<int> members)
      : mates_(std::move(mates)),
        whole_(whole),
        members_(std::move(members)),
        engine_(mates_->control,
                *this,
                memory,
                {.rank = mates_->control.rank(), .size = mates_->control.size(), .hosts = {}}) {}
  std::string_view name() const noexcept override { return engine_.name(); }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override {
    return engine_.score(signature);
  }
  engine::Task start(const engine::Call& call) override { return engine_.start(call); }
  bool attempt(const engine::Call& call) override { return engine_.attempt(call); }
  void skip(std::uint64_t sequence) override { engine_.skip(sequence); }

 private:
  void confirm(int peer, std::uint64_t part) override {
    whole_.confirm(members_[static_cast<std::size_t>(peer)],
                   algorithm::HierarchyEngine::call_of(part));
  }

  const std::shared_ptr<HostMates> mates_;
  engine::Consistency& whole_;
  const std::vector<int> members_;
  ShmEngine engine_;
};

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
  if (shape.spans()) return near_channels_offset(shape) + ShmPointToPoint::bytes(shape.local);
  if (!has(engines, "shm") && !has(engines, "algorithm") && !has(engines, "mpi")) {
    return shm_offset(shape.size);
  }
  return channels_offset(shape.size) + ShmPointToPoint::bytes(shape.size);
}

void format_group(std::byte* memory, std::span<const int> places, int local) {
  const GroupShape shape{.size = static_cast<int>(places.size()), .local = local};
  GroupControl::format(memory, places);
  if (!shape.spans()) return;
  GroupControl::format(memory + near_offset(shape),
                       std::vector<int>(static_cast<std::size_t>(local)));
}

namespace {

std::unique_ptr<engine::PointToPoint> make_far(WorldImpl& world, const Membership& membership) {
  return std::make_unique<engines::ucx::UcxPointToPoint>(
      static_cast<UcxCarriage&>(*world.carriage()).fabric(),
      engines::ucx::Members{.group = membership.id(),
                            .rank = membership.rank,
                            .world_ranks = membership.world_ranks});
}

// Of a group with members on several hosts.
Engines make_spanning(WorldImpl& world,
                      const Membership& membership,
                      const engine::GroupFacts& facts,
                      GroupControl& control,
                      engine::Consistency& consistency,
                      std::byte* memory) {
  Engines made;
  const algorithm::Tuning tuning = algorithm::across_hosts(membership.hosts, world.algorithms());
  auto far = make_far(world, membership);
  const auto& names = world.engines();
  if (is_all_ucx(names)) {
    made.messages = std::move(far);
    made.collectives.push_back(
        std::make_unique<algorithm::AlgorithmEngine>(*made.messages, facts, tuning));
    return made;
  }
  const auto& hosts = membership.hosts;
  std::vector<int> near_ranks;
  std::vector<int> places;
  std::vector<int> members;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool near = hosts[i] == hosts[static_cast<std::size_t>(membership.rank)];
    near_ranks.push_back(near ? static_cast<int>(places.size()) : -1);
    if (near) places.push_back(membership.host_ranks[i]);
    if (near) members.push_back(static_cast<int>(i));
  }
  const GroupShape shape{.size = membership.size(), .local = static_cast<int>(places.size())};
  const int own = near_ranks[static_cast<std::size_t>(membership.rank)];
  const auto mates = std::make_shared<HostMates>(
      world.host(), memory + near_offset(shape), own, std::move(places));
  made.messages = std::make_unique<RoutedMessages>(
      std::make_unique<NearMessages>(mates, memory + near_channels_offset(shape)),
      std::move(near_ranks),
      std::move(far));
  if (has(names, "mpi")) {
    made.collectives.push_back(world.mpi()->make_engine(
        membership, facts, [&control, rank = membership.rank] { control.ring(rank); }));
  }
  if (has(names, "shm")) {
    made.collectives.push_back(std::make_unique<algorithm::HierarchyEngine>(
        *made.messages,
        facts,
        algorithm::HierarchyTuning{.straight = world.algorithms()},
        std::make_unique<NearEngine>(
            mates, memory + near_shm_offset(shape), consistency, std::move(members))));
  }
  made.collectives.push_back(
      std::make_unique<algorithm::AlgorithmEngine>(*made.messages, facts, tuning));
  return made;
}

}  // namespace

Engines make_engines(WorldImpl& world,
                     const Membership& membership,
                     GroupControl& control,
                     engine::Consistency& consistency,
                     std::uint64_t block) {
  const int size = membership.size();
  const engine::GroupFacts facts{.rank = membership.rank,
                                 .size = size,
                                 .hosts = membership.hosts,
                                 .one_host = !membership.spans()};
  std::byte* memory = world.host().at(block);
  Engines made;
  const auto& names = world.engines();
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
    if (name == "shm") {
      made.collectives.push_back(
          std::make_unique<ShmEngine>(control, consistency, memory + shm_offset(size), facts));
    } else if (name == "mpi") {
      made.collectives.push_back(world.mpi()->make_engine(
          membership, facts, [&control, rank = membership.rank] { control.ring(rank); }));
    } else if (name != "ucx" || is_all_ucx(names)) {
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
