// From a process that was just started to a world.
#include <algorithm>
#include <optional>

#include "base/config.h"
#include "comm/bootstrap.h"
#include "comm/composition_mpi.h"
#include "comm/exit_list.h"
#include "comm/meeting.h"
#include "comm/thread_team.h"
#include "comm/world.h"
#include "hocket/bootstrap.h"
#include "rendezvous/launcher_space.h"

namespace hocket {
namespace {

using base::Deadline;

comm::WorldParts alone(const InitOptions& options,
                       const base::Config& config,
                       const LaunchInfo& launch) {
  comm::WorldParts parts{.launch = launch, .hosts = {0}, .host_ranks = {0}};
  comm::heed_settings(parts, options, config);
  parts.segment = comm::make_segment(
      {.ranks = 1, .stripe_bytes = comm::stripe_bytes(options, config, parts.engines, {})}, false);
  return parts;
}

World join(const InitOptions& options,
           const base::Config& config,
           const LaunchInfo& launch,
           std::optional<StoreServer> server) {
  base::configure_log(config.log, launch.size > 1 ? launch.rank : -1);
  if (launch.local_rank <= 0) base::warn_of_unknown_settings();  // one rank a host says it for all
  const auto deadline = Deadline::in(comm::join_timeout(options));
  comm::WorldParts parts = launch.size == 1
                               ? alone(options, config, launch)
                               : comm::meet(options, config, launch, deadline, std::move(server));
  if (std::find(parts.engines.begin(), parts.engines.end(), "mpi") != parts.engines.end()) {
    parts.mpi = comm::make_mpi_home(
        parts.store.get(), launch, comm::use_of_gpus(config.mpi_gpus), deadline);
  }
  parts.name = options.name;
  parts.deadline = options.deadline.value_or(config.deadline);
  parts.dump_directory = config.flight_recorder_dir;
  parts.device_libraries = comm::device_libraries(options);
  const auto world = comm::WorldImpl::make(std::move(parts), deadline);
  return World(world, world->make_communicator());
}

}  // namespace

World init(const InitOptions& options) {
  const base::Config config = base::Config::from_environment();
  if (const auto meeting = rendezvous::find_launcher_meeting(options); meeting.bootstrap) {
    comm::Introduced introduced = comm::introduce(*meeting.bootstrap, options, "");
    introduced.launch.launcher = meeting.launcher;
    return join(options, config, introduced.launch, std::move(introduced.server));
  }
  return join(options, config, detect_launch(options), std::nullopt);
}

World init(Bootstrap& bootstrap, const InitOptions& options) {
  base::Config config;
  std::string problem;
  try {
    config = base::Config::from_environment();
  } catch (const InvalidArgument& error) {  // which the others are to hear of
    problem = error.what();
  }
  comm::Introduced introduced = comm::introduce(bootstrap, options, problem);
  return join(options, config, introduced.launch, std::move(introduced.server));
}

// --- World --------------------------------------------------------------------------------------

World::World(std::shared_ptr<comm::WorldImpl> impl, Communicator communicator) noexcept
    : impl_(std::move(impl)),
      communicator_(std::make_unique<Communicator>(std::move(communicator))) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() {
  if (!impl_) return;
  try {
    close();
  } catch (const std::exception& error) {  // nobody is left to be told
    comm::ExitList::instance().report(error.what());
  }
}
Communicator& World::rebuild(const RebuildOptions& options) {
  auto rebuilt = std::make_unique<Communicator>(communicator_->rebuild(options));
  communicator_ = std::move(rebuilt);
  return *communicator_;
}
const LaunchInfo& World::launch() const noexcept { return impl_->launch(); }
std::span<const std::string> World::engines() const noexcept { return impl_->engines(); }
void World::close() {
  struct Leaves {
    comm::WorldImpl& world;
    ~Leaves() { world.leave(); }
  } const leaves{*impl_};
  communicator_->close();
}

}  // namespace hocket
