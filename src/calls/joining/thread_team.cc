#include "calls/joining/thread_team.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <numeric>
#include <optional>

#include "calls/joining/meeting.h"
#include "calls/world/communicator_impl.h"
#include "foundation/base/config.h"
#include "foundation/base/limit.h"
#include "foundation/base/threads.h"
#include "membership/failure/caught_reason.h"
#include "membership/rendezvous/launchers/launchers.h"

namespace hocket::joining {
namespace {

// Returns the folder of a team's audit. If this process is a rank of a job, it differs from the
// folder of that job.
std::string team_folder(const std::string& directory) {
  try {
    const auto place = rendezvous::place_from_launcher();
    if (place && place->size > 1)
      return fmt::format("{}/threads-of-rank-{}", directory, place->rank);
  } catch (const InvalidArgument&) {  // contradictory variables: it belongs to no job
  }
  return directory;
}

}  // namespace

TeamResources team_resources(const InitOptions& options, const world::MakeProviders& make) {
  base::require_limit(options.deadline, "deadline");
  const base::Config config = base::Config::from_environment();
  auto providers = world::configured(make, options.library_folders);
  auto libraries =
      std::make_shared<device::DeviceLibraries>(config.costs, options.library_folders, providers);
  return {.device_libraries = std::move(libraries), .providers = std::move(providers)};
}

void require_team_of(int size) { control::HostControl::require_places(size); }

ThreadTeam::ThreadTeam(int size, const InitOptions& options, const TeamResources& resources)
    : size_(size), libraries_(resources.device_libraries) {
  require_team_of(size);
  const base::Config config = base::Config::from_environment();
  engines_ = world::JobEngines(resources.providers, options, config, engine::Ranks::kThreads);
  const std::size_t stripe = stripe_with_world(options.segment_bytes.value_or(std::size_t{1} << 30),
                                               engines_,
                                               {.size = size, .local = size});
  // All ranks' threads are in this process, so they share its processors.
  const std::vector<os::Allotment> ranks(static_cast<std::size_t>(size), os::find_allotment());
  paces_ = os::paces_of(ranks);
  segment_ = make_segment({.ranks = size, .stripe_bytes = stripe}, config, true);
  algorithms_ = algorithm::Choices::parse(config.algorithm);
  deadline_ = options.deadline.value_or(config.deadline);
  waits_ = config.waits;
  is_shown_ = config.is_shown;
  dump_directory_ = config.flight_recorder_dir;
  audit_folder_ = team_folder(audit_folder(config));
  if (config.audit_dir.empty()) return;
  for (int rank = 0; rank < size; ++rank) {
    audits_.push_back(observe::AuditFile::make(audit_folder_, {.rank = rank, .size = size}));
  }
}

World ThreadTeam::join(int rank) const {
  world::WorldParts parts;
  parts.launch.rank = rank;
  parts.launch.size = size_;
  parts.launch.launcher = "threads";
  parts.segment = segment_;
  parts.host_rank = rank;
  parts.hosts.resize(static_cast<std::size_t>(size_));
  parts.host_ranks.resize(static_cast<std::size_t>(size_));
  std::iota(parts.host_ranks.begin(), parts.host_ranks.end(), 0);
  parts.pace = paces_[static_cast<std::size_t>(rank)];
  parts.threads = true;
  parts.engines = engines_;
  parts.algorithms = algorithms_;
  parts.deadline = deadline_;
  parts.waits = waits_;
  parts.is_shown = is_shown_;
  parts.dump_directory = dump_directory_;
  parts.audit_folder = audit_folder_;
  if (!audits_.empty()) parts.audit = audits_[static_cast<std::size_t>(rank)];
  parts.device_libraries = libraries_;
  const auto impl =
      world::WorldImpl::make(std::move(parts), base::Deadline::in(std::chrono::seconds(60)));
  return World(impl, impl->make_communicator());
}

void run_threads(int size,
                 const std::function<void(Communicator&)>& body,
                 const InitOptions& options,
                 const world::MakeProviders& make) {
  if (size < 1) throw InvalidArgument(fmt::format("size is {}, expected at least 1", size));
  if (!body) throw InvalidArgument("run_threads was given no function");
  const ThreadTeam team(size, options, team_resources(options, make));
  std::mutex mutex;
  std::exception_ptr first;
  const auto rank_main = [&](int rank) {
    std::optional<World> world;
    std::optional<Communicator> own;  // the body may move the world's away
    try {
      world.emplace(team.join(rank));
      own.emplace(world->communicator().impl());
      body(world->communicator());
      own->close();  // may throw the error of a call on a GPU
    } catch (...) {
      // Aborts, so that the other ranks do not wait for this rank.
      if (own) {
        const std::string reason(failure::reason_of_caught().view());
        world->tell_end("raised " + reason);
        own->abort("its thread has raised " + reason);
        own->impl()->failures.note_seen();
      }
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  base::start_threads(size, rank_main).clear();  // waits for them
  if (first) std::rethrow_exception(first);
}

}  // namespace hocket::joining
