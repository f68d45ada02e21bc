// From a process that was just started to a world.
#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/config.h"
#include "comm/bootstrap.h"
#include "comm/meeting.h"
#include "comm/world.h"
#include "hocket/bootstrap.h"

namespace hocket {
namespace {

using base::Deadline;

std::shared_ptr<comm::DeviceLibraries> device_libraries(const InitOptions& options,
                                                        const base::Config& config) {
  return comm::make_device_libraries({.nccl_library = config.nccl_library,
                                      .folders = options.library_folders,
                                      .multicast = config.multicast,
                                      .ras = config.ras});
}

comm::WorldParts alone(const InitOptions& options,
                       const base::Config& config,
                       const LaunchInfo& launch) {
  return {.launch = launch,
          .segment = comm::make_segment(1, comm::stripe_bytes(options, config, 1), false),
          .hosts = {0},
          .host_ranks = {0}};
}

World join(const InitOptions& options,
           const base::Config& config,
           const LaunchInfo& launch,
           std::optional<StoreServer> server) {
  base::configure_log(config.log, launch.size > 1 ? launch.rank : -1);
  const auto deadline = Deadline::in(comm::join_timeout(options));
  comm::WorldParts parts = launch.size == 1
                               ? alone(options, config, launch)
                               : comm::meet(options, config, launch, deadline, std::move(server));
  parts.engines = comm::choose_engines(
      options.engines.empty() ? comm::split_names(config.engines) : options.engines, false);
  parts.deadline = options.deadline.value_or(config.deadline);
  parts.dump_directory = config.flight_recorder_dir;
  parts.device_libraries = device_libraries(options, config);
  const auto world = comm::WorldImpl::make(std::move(parts), deadline);
  return World(world, world->make_communicator());
}

}  // namespace

World init(const InitOptions& options) {
  const base::Config config = base::Config::from_environment();
  return join(options, config, detect_launch(options), std::nullopt);
}

World init(Bootstrap& bootstrap, const InitOptions& options) {
  const base::Config config = base::Config::from_environment();
  comm::Introduced introduced = comm::introduce(bootstrap, options);
  return join(options, config, introduced.launch, std::move(introduced.server));
}

void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options) {
  if (size < 1) throw InvalidArgument(fmt::format("size is {}, expected at least 1", size));
  const base::Config config = base::Config::from_environment();
  const auto n = static_cast<std::size_t>(size);
  const auto segment =
      comm::make_segment(size, options.segment_bytes.value_or(std::size_t{1} << 30), true);
  const auto job = comm::make_thread_job();
  const auto libraries = device_libraries(options, config);
  const auto engines = comm::choose_engines(
      options.engines.empty() ? comm::split_names(config.engines) : options.engines, true);
  std::mutex mutex;
  std::exception_ptr first;
  const auto rank_main = [&](int rank) {
    std::optional<World> world;
    try {
      comm::WorldParts parts{.launch = {.rank = rank, .size = size, .launcher = "threads"},
                             .segment = segment,
                             .host_rank = rank,
                             .hosts = std::vector<int>(n),
                             .host_ranks = std::vector<int>(n),
                             .threads = job,
                             .engines = engines,
                             .deadline = options.deadline.value_or(config.deadline),
                             .dump_directory = config.flight_recorder_dir,
                             .device_libraries = libraries};
      for (std::size_t i = 0; i < n; ++i) parts.host_ranks[i] = static_cast<int>(i);
      const auto impl =
          comm::WorldImpl::make(std::move(parts), Deadline::in(std::chrono::seconds(60)));
      world.emplace(impl, impl->make_communicator());
      body(world->communicator());
    } catch (...) {
      // The others hear of it instead of waiting for this rank.
      if (world) world->communicator().abort("an exception ended its thread");
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(rank_main, rank);
  threads.clear();
  if (first) std::rethrow_exception(first);
}

// --- World --------------------------------------------------------------------------------------

World::World(std::shared_ptr<comm::WorldImpl> impl, Communicator communicator) noexcept
    : impl_(std::move(impl)),
      communicator_(std::make_unique<Communicator>(std::move(communicator))) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() {
  if (impl_) close();
}
const LaunchInfo& World::launch() const noexcept { return impl_->launch(); }
std::span<const std::string> World::engines() const noexcept { return impl_->engines(); }
void World::close() {
  communicator_->close();
  impl_->leave();
}

}  // namespace hocket
