#include "calls/joining/init.h"

#include <algorithm>
#include <optional>

#include "calls/joining/admission.h"
#include "calls/joining/attendance.h"
#include "calls/joining/bootstrap.h"
#include "calls/joining/meeting.h"
#include "calls/world/exit_list.h"
#include "calls/world/world.h"
#include "foundation/base/limit.h"
#include "foundation/base/lookout.h"
#include "foundation/os/process/standard_descriptors.h"
#include "membership/rendezvous/launchers/launcher_space.h"
#include "membership/rendezvous/launchers/launchers.h"
#include "monitoring/live/metrics_setting.h"

namespace hocket {
namespace joining {
namespace {

using base::Deadline;
using engine::ProviderList;

world::WorldParts alone(const InitOptions& options,
                        const StartSettings& settings,
                        const LaunchInfo& launch) {
  world::WorldParts parts{.launch = launch, .hosts = {0}, .host_ranks = {0}};
  heed_settings(parts, options, settings.config, settings.providers);
  parts.segment = make_segment(
      {.ranks = 1, .stripe_bytes = stripe_bytes(options, settings.config, parts.engines, {})},
      settings.config,
      false);
  return parts;
}

// Warns of misspelt settings. Called on the first rank of each host.
void warn_of_unknown_settings(const ProviderList& providers) {
  std::vector<base::SettingRow> rows;
  for (const auto& provider : providers) {
    const auto own = provider->settings();
    rows.insert(rows.end(), own.begin(), own.end());
  }
  base::warn_of_unknown_settings(rows);
}

// Tells the launchers of several hosts that all ranks have joined. They watch the store until then;
// see FirstHost in the command.
void tell_launchers(Store* store, const LaunchInfo& launch) {
  const bool is_alone = store == nullptr || launch.store_address.starts_with("unix:");
  if (is_alone || launch.rank != 0 || launch.launcher != "hocket run") return;
  try {
    store->compare_and_set("launcher/news", std::nullopt, as_bytes("joined"));
  } catch (const RendezvousError&) {
    // The job has begun and needs the store no longer, so this error does not matter.
  }
}

World join_as_one_of(const InitOptions& options,
                     const StartSettings& settings,
                     const LaunchInfo& launch,
                     Hosting hosting,
                     Attendance& attendance) {
  const auto& [config, providers] = settings;
  const auto deadline = Deadline::in(join_timeout(options));
  world::WorldParts parts = launch.size == 1 ? alone(options, settings, launch)
                                             : meet(options,
                                                    config,
                                                    providers,
                                                    launch,
                                                    deadline,
                                                    attendance,
                                                    std::move(hosting.server));
  world::introduce_engines(parts.engines, parts.store.get(), launch, deadline);
  parts.options = options;
  parts.door = std::move(hosting.door);
  parts.name = options.name;
  parts.deadline = options.deadline.value_or(config.deadline);
  parts.waits = config.waits;
  parts.is_shown = config.is_shown;
  parts.dump_directory = config.flight_recorder_dir;
  parts.device_libraries =
      std::make_shared<device::DeviceLibraries>(config.costs, options.library_folders, providers);
  const auto store = parts.store;
  const auto world = world::WorldImpl::make(std::move(parts), deadline);
  tell_launchers(store.get(), launch);
  return World(world, world->make_communicator());
}

// Returns the door of the running job that this process joins; empty: none. Options that give the
// process a place in a new job take precedence over HOCKET_JOIN.
std::string door_to_join(const InitOptions& options) {
  const bool has_place = options.rank || options.size || !options.address.empty();
  if (has_place && !options.join.empty()) {
    throw InvalidArgument(
        "init was given join and a rank, a size or an address; a running job gives these to those "
        "whom it takes in, so leave them out");
  }
  if (has_place || !options.join.empty()) return options.join;
  return base::environment("HOCKET_JOIN").value_or("");
}

}  // namespace

StartSettings read_settings(const InitOptions& options, const world::MakeProviders& make) {
  base::require_limit(options.timeout, "timeout");
  base::require_limit(options.deadline, "deadline");
  static_cast<void>(live::metrics_setting());  // throws for a wrong setting before the ranks meet
  return {.config = base::Config::from_environment(),
          .providers = world::configured(make, options.library_folders)};
}

World join(const InitOptions& options,
           const StartSettings& settings,
           LaunchInfo launch,
           Hosting hosting,
           const std::function<void()>& look) {
  if (launch.door.empty()) launch.door = rendezvous::door_of(launch);
  base::configure_log(settings.config.log, launch.size > 1 ? launch.rank : -1);
  if (launch.local_rank <= 0) warn_of_unknown_settings(settings.providers);
  Attendance attendance;
  const base::Lookout lookout([&] {
    attendance.look();
    look();
  });
  try {
    return join_as_one_of(options, settings, launch, std::move(hosting), attendance);
  } catch (const std::exception& error) {
    attendance.withdraw(error.what());
    throw;
  }
}

World init(const InitOptions& options, const world::MakeProviders& make) {
  os::occupy_standard_descriptors();
  const RunClock::Watch watch;
  StartSettings settings = read_settings(options, make);
  if (const std::string door = door_to_join(options); !door.empty()) {
    return join_running(options, std::move(settings), door);
  }
  if (const auto meeting = rendezvous::find_launcher_meeting(options); meeting.bootstrap) {
    Introduced introduced = introduce(*meeting.bootstrap, options, "");
    introduced.launch.launcher = meeting.launcher;
    return join(options, settings, introduced.launch, {.server = std::move(introduced.server)});
  }
  return join(options, settings, detect_launch(options));
}

World init(Bootstrap& bootstrap, const InitOptions& options, const world::MakeProviders& make) {
  os::occupy_standard_descriptors();
  const RunClock::Watch watch;
  StartSettings settings;
  std::string problem;
  try {
    if (!options.join.empty()) {
      throw InvalidArgument("init was given a bootstrap and join; give one of them");
    }
    settings = read_settings(options, make);
  } catch (const InvalidArgument& error) {  // passed on to the other ranks
    problem = error.what();
  }
  Introduced introduced = introduce(bootstrap, options, problem);
  return join(options, settings, introduced.launch, {.server = std::move(introduced.server)});
}

}  // namespace joining

// --- World --------------------------------------------------------------------------------------

World::World(std::shared_ptr<world::WorldImpl> impl, Communicator communicator) noexcept
    : impl_(std::move(impl)),
      communicator_(std::make_unique<Communicator>(std::move(communicator))) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() {
  if (!impl_) return;
  const auto& own = communicator_->impl();
  if (own && own->reentry.is_in_callback())
    return;  // the call in progress releases the world
             // afterwards
  try {
    close();
  } catch (const std::exception& error) {  // no caller is left to get the error
    world::ExitList::instance().report(error.what());
  }
}
Communicator& World::rebuild(const RebuildOptions& options) {
  return *communicator_ = communicator_->rebuild(options);  // references stay valid
}
const LaunchInfo& World::launch() const { return impl_->launch(); }
std::span<const std::string> World::engines() const { return impl_->engines().names(); }
void World::close() {
  const bool has_communicator = static_cast<bool>(communicator_->impl());  // else it was moved away
  if (has_communicator && communicator_->impl()->reentry.is_in_callback()) {
    communicator_->impl()->reentry.refuse_in_callback();
  }
  struct Leaves {
    world::WorldImpl& world;
    ~Leaves() { world.leave(); }
  } const leaves{*impl_};
  if (has_communicator) communicator_->close();
}
void World::leave_at_exit() noexcept {
  if (impl_) impl_->leave_at_exit();
}
void World::tell_end(std::string_view why) noexcept {
  if (impl_) impl_->tell_end(why);
}

}  // namespace hocket
