// The members' part has three steps, which are repeated if a rank dies or cannot join:
//
//   rebuild   all living members take part, and agree on the members
//   attempt   the root calls newcomers in at the door; they and the members make a new world
//   rebuild   commits: it succeeds on all members; or a member whose attempt has failed refuses it,
//             and all drop the new world
//
// Newcomers wait in the new world's first barrier, which ends when the members have committed. If
// the members drop the world, the barrier fails, and the newcomers go back to the door.
#include "calls/joining/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <numeric>
#include <utility>

#include "calls/joining/bootstrap.h"
#include "calls/joining/door.h"
#include "calls/joining/meeting.h"
#include "calls/world/communicator_impl.h"
#include "calls/world/world.h"
#include "foundation/base/limit.h"
#include "foundation/base/log.h"
#include "foundation/os/machine/host_identity.h"
#include "hocket/error.h"
#include "hocket/object.h"
#include "membership/rendezvous/launchers/launchers.h"

namespace hocket::joining {
namespace {

using base::Deadline;

// Time limit of one attempt. The store reports a dead rank at once, so only a stopped rank needs
// it.
constexpr std::chrono::seconds kForAttempt{10};
constexpr std::chrono::seconds kForNewcomers{10};
// All members count the same attempts, because each of them takes part in every commit.
constexpr int kMostAttempts = 20;
// Time limit for newcomers that already wait to find a door that has just been opened.
constexpr std::chrono::milliseconds kToFindDoor{100};

// The ranks in the new world: first the members' ranks, in the members' order, then the newcomers'
// ranks. A value.
struct NewRanks {
  std::vector<int> members;
  std::vector<int> newcomers;
};

NewRanks assign_ranks(std::span<const int> before, std::size_t newcomers, bool keep) {
  const std::size_t size = before.size() + newcomers;
  NewRanks ranks{.members = std::vector<int>(before.size(), -1)};
  std::vector<bool> taken(size);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const int wanted = keep ? before[i] : static_cast<int>(i);
    if (static_cast<std::size_t>(wanted) >= size) continue;
    ranks.members[i] = wanted;
    taken[static_cast<std::size_t>(wanted)] = true;
  }
  int next = 0;
  const auto take = [&] {
    while (taken[static_cast<std::size_t>(next)]) ++next;
    return next++;
  };
  for (int& rank : ranks.members) {
    if (rank < 0) rank = take();
  }
  while (ranks.newcomers.size() < newcomers) ranks.newcomers.push_back(take());
  return ranks;
}

// The plan of an attempt, which the root sends to the members. A value.
struct AdmissionPlan {
  Invitation invitation;     // its rank is not set
  std::vector<int> members;  // new ranks of the members
  std::string problem;       // the reason if the root gives up; else empty
};

Bytes to_bytes(const AdmissionPlan& plan) {
  std::vector<Object> members(plan.members.begin(), plan.members.end());
  return encode(Object::list(
      {Object::bytes(to_bytes(plan.invitation)), Object::list(std::move(members)), plan.problem}));
}

AdmissionPlan to_plan(std::span<const std::byte> bytes) {
  const Object object = decode(bytes);
  AdmissionPlan plan{.invitation = to_invitation(object[0].as_bytes()),
                     .problem = object[2].as_string()};
  for (const Object& rank : object[1].items()) {
    plan.members.push_back(static_cast<int>(rank.as_integer()));
  }
  return plan;
}

Bytes broadcast_bytes(Communicator& comm, Bytes bytes, Duration deadline) {
  std::uint64_t size = bytes.size();
  comm.broadcast(std::span(&size, 1), {.root = 0, .deadline = deadline});
  bytes.resize(size);
  comm.broadcast(std::span(bytes), {.root = 0, .deadline = deadline});
  return bytes;
}

bool are_on_one_host(Communicator& comm) {
  const std::int64_t host = hash_of_host();
  std::array<std::int64_t, 2> least{host, -host};
  comm.all_reduce(least, {.op = ReduceOp::kMin});
  return least[0] == -least[1];
}

DoorAddress door_address_of(const LaunchInfo& launch) {
  const bool needs_key = !launch.door.starts_with("unix:") && !launch.trust_network;
  return {.address = launch.door,
          .key = needs_key ? launch.key : std::nullopt,
          .trust_network = launch.trust_network};
}

// An admission on one member, for the length of the call.
class Admission {
 public:
  Admission(Communicator& members, const AdmitOptions& options, const world::MakeProviders& make)
      : members_(members),
        options_(options),
        world_(members.impl()->world()),
        settings_(read_settings(world_->options(), make)),
        door_(std::static_pointer_cast<Door>(world_->door())),
        patience_(Deadline::in(options.patience.value_or(kForNewcomers))) {}

  World run();

 private:
  bool is_root() const { return members_.rank() == 0; }
  Duration limit() const;
  AdmissionPlan agree();
  AdmissionPlan plan_with_door(bool one_host);
  AdmissionPlan plan_attempt(bool one_host);
  std::vector<Door::Newcomer> call_newcomers();
  std::optional<World> carry_out(const AdmissionPlan& plan, std::string& problem);
  bool commit(bool works, const std::string& problem);

  Communicator& members_;
  const AdmitOptions& options_;
  const std::shared_ptr<world::WorldImpl> world_;  // the members' world
  const StartSettings settings_;
  std::shared_ptr<Door> door_;  // set in the process that opened it
  Deadline patience_;
  std::optional<OpenStore> meeting_;  // set at the root
  std::string refusal_;               // the reason why the last attempt failed
};

World Admission::run() {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    members_ = members_.rebuild(options_.rebuild);
    AdmissionPlan plan;
    std::string problem;
    std::optional<World> made;
    try {
      plan = agree();
      made = carry_out(plan, problem);
    } catch (const PeerDied& error) {
      problem = error.what();
    } catch (const Aborted& error) {  // another member has learned of a death
      problem = error.what();
    }
    if (commit(made.has_value(), problem)) {
      try {
        made->communicator().barrier();
      } catch (const Error&) {  // the program's first call will report it
      }
      return *std::move(made);
    }
    made.reset();
    base::log(base::LogLevel::kInfo, fmt::format("admit tries again: {}", refusal_));
  }
  throw RendezvousError(fmt::format(
      "the members could not meet in a new world in {} attempts: {}", kMostAttempts, refusal_));
}

// Returns how long to wait for the root, which may wait for newcomers.
Duration Admission::limit() const {
  const Duration patience = patience_.left();
  const Duration own = members_.deadline();
  return patience > kForever - own ? kForever : patience + own;
}

AdmissionPlan Admission::agree() {
  const bool one_host = are_on_one_host(members_);
  AdmissionPlan plan;
  std::exception_ptr own;
  if (is_root()) {
    try {
      plan = plan_with_door(one_host);
    } catch (const std::exception& error) {
      own = std::current_exception();
      plan.problem = error.what();
    }
  }
  plan = to_plan(broadcast_bytes(members_, is_root() ? to_bytes(plan) : Bytes{}, limit()));
  if (own) std::rethrow_exception(own);
  if (!plan.problem.empty()) {
    throw RendezvousError(fmt::format("rank 0 gave up admit: {}", plan.problem));
  }
  return plan;
}

std::vector<Door::Newcomer> Admission::call_newcomers() {
  if (options_.newcomers == 0) return {};
  Deadline deadline = patience_;
  if (!door_) {
    door_ = std::make_shared<Door>(door_address_of(world_->launch()));
    deadline = std::max(patience_, Deadline::in(kToFindDoor));
  }
  return door_->call(
      static_cast<std::size_t>(options_.newcomers), own_build(settings_.providers), deadline);
}

// The process that serves the door may end at any moment, and newcomers that were called then come
// back. So the root opens the door again, and calls again.
AdmissionPlan Admission::plan_with_door(bool one_host) {
  for (int attempt = 1;; ++attempt) {
    try {
      return plan_attempt(one_host);
    } catch (const RendezvousError&) {
      if (!door_ || attempt == kMostAttempts) throw;
      door_.reset();
    }
  }
}

AdmissionPlan Admission::plan_attempt(bool one_host) {
  const LaunchInfo& launch = world_->launch();
  const std::vector<Door::Newcomer> newcomers = call_newcomers();
  const std::string host = os::host_identity();
  for (const auto& newcomer : newcomers) one_host = one_host && newcomer.host == host;
  NewRanks ranks = assign_ranks(members_.world_ranks(), newcomers.size(), options_.keep_ranks);
  const base::Config& config = settings_.config;
  const auto& engines = world_->options().engines;
  AdmissionPlan plan{
      .invitation = {.size = static_cast<int>(ranks.members.size() + newcomers.size()),
                     .key = launch.key ? *launch.key : Key::generate(),
                     .door = launch.door,
                     .newcomers = ranks.newcomers,
                     .engines = engines.empty() ? config.engines
                                                : fmt::format("{}", fmt::join(engines, ",")),
                     .algorithm = config.algorithm},
      .members = std::move(ranks.members)};
  Invitation& invitation = plan.invitation;
  meeting_.emplace(open_store("", plan.members.front(), invitation.size, one_host, invitation.key));
  invitation.address = meeting_->server.address();
  invitation.job = meeting_->job;
  for (std::size_t i = 0; i < newcomers.size(); ++i) {
    invitation.rank = invitation.newcomers[i];
    door_->invite(newcomers[i], invitation);
  }
  return plan;
}

// Makes the new world. If that fails, sets `problem` to the reason. Other exceptions, such as an
// interrupt, are reported to the other members, and thrown.
std::optional<World> Admission::carry_out(const AdmissionPlan& plan, std::string& problem) {
  try {
    LaunchInfo launch = launch_of(plan.invitation);
    launch.rank = plan.members[static_cast<std::size_t>(members_.rank())];
    launch.trust_network = world_->launch().trust_network;
    InitOptions options = world_->options();
    options.timeout = kForAttempt;
    options.deadline = members_.deadline();
    Hosting hosting{.door = door_};
    if (meeting_) hosting.server = std::move(meeting_->server);
    meeting_.reset();
    // A member that has learned of a death does not join. So the other members must not wait for
    // it.
    const auto look = [this] {
      if (const auto ended = members_.status()) throw RendezvousError(ended->message);
    };
    return join(options, settings_, std::move(launch), std::move(hosting), look);
  } catch (const Error& error) {
    problem = error.what();
  } catch (const std::bad_alloc&) {
    problem = "there is no memory left for the new world";
  } catch (const std::exception& error) {
    commit(false, error.what());
    throw;
  }
  return std::nullopt;
}

// Collective over the members: returns whether the attempt worked for all of them. A member that
// dies meanwhile does not count.
bool Admission::commit(bool works, const std::string& problem) {
  try {
    if (!works) members_.refuse_rebuild(problem);
    members_ = members_.rebuild(options_.rebuild);
    return true;
  } catch (const InvalidArgument& error) {
    refusal_ = error.what();
    return false;
  }
}

std::string problem_of(const Communicator& members, const AdmitOptions& options) {
  if (members.impl()->world()->threads()) {
    return "its ranks are threads, and newcomers are processes; start the job by `hocket run`";
  }
  if (options.newcomers < 0) {
    return fmt::format("newcomers is {}; give the most that are taken in, from 0",
                       options.newcomers);
  }
  if (options.patience.value_or(kForNewcomers) < Duration::zero())
    return "patience is negative; 0 takes in who waits already";
  return {};
}

}  // namespace

World admit(Communicator& members, const AdmitOptions& options, const world::MakeProviders& make) {
  if (const std::string problem = problem_of(members, options); !problem.empty()) {
    members.refuse_rebuild(problem);
  }
  return Admission(members, options, make).run();
}

World join_running(const InitOptions& options, StartSettings settings, const std::string& door) {
  const LaunchInfo outside = rendezvous::newcomer(options, door);
  const auto deadline = Deadline::in(join_timeout(options));
  const Build build = own_build(settings.providers);
  base::configure_log(settings.config.log, -1);
  for (;;) {
    const Invitation invitation = wait_at_door(door_address_of(outside), build, deadline);
    InitOptions own = options;
    own.engines.clear();
    own.timeout = std::min<Duration>(kForAttempt, deadline.left());
    settings.config.engines = invitation.engines;
    settings.config.algorithm = invitation.algorithm;
    LaunchInfo launch = launch_of(invitation);
    launch.trust_network = outside.trust_network;
    try {
      World world = join(own, settings, std::move(launch));
      world.communicator().barrier();
      return world;
    } catch (const InvalidArgument&) {
      throw;
    } catch (const SystemError&) {
      throw;
    } catch (const Error& error) {  // a rank has died, or another one could not join
      if (deadline.has_passed()) throw;
      base::log(base::LogLevel::kInfo, fmt::format("back to the door: {}", error.what()));
    }
  }
}

}  // namespace hocket::joining
