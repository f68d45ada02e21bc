#include "calls/world/world.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

#include "calls/world/exit_list.h"
#include "calls/world/progress.h"
#include "foundation/base/interrupt.h"
#include "foundation/base/log.h"
#include "foundation/base/lookout.h"
#include "membership/failure/witness.h"
#include "monitoring/live/metrics_setting.h"
#include "monitoring/live/position.h"
#include "monitoring/live/status_board.h"

namespace hocket::world {

using base::Deadline;

namespace {

constexpr auto kForFlush = std::chrono::seconds(1);

engine::Fate fate_of(control::RankState state) noexcept {
  switch (state) {
    case control::RankState::kAbsent:
    case control::RankState::kAlive:
      return engine::Fate::kHere;
    case control::RankState::kLeft:
      return engine::Fate::kLeft;
    case control::RankState::kDied:
      return engine::Fate::kDied;
    case control::RankState::kSilent:
    case control::RankState::kCut:
      break;
  }
  return engine::Fate::kCutOff;
}

// Returns the hooks by which the network's thread drives the carrier.
control::CarrierHooks for_network(const std::shared_ptr<engine::Carrier>& carrier) {
  return {.event_fd = carrier->event_fd(),
          .arm = [carrier] { return carrier->arm(); },
          .pending = [carrier] { return carrier->pending(); },
          .progress = [carrier] { return carrier->progress(); },
          .take_broken = [carrier] { return carrier->take_broken(); },
          .give_up = [carrier] { return carrier->try_retire(); }};
}

}  // namespace

// Lets the network check for changes on this host.
class NetworkTick final : public call::PeriodicTask {
 public:
  explicit NetworkTick(std::shared_ptr<control::Network> network) : network_(std::move(network)) {}
  Deadline tick() noexcept override {
    network_->notify();
    return Deadline::never();
  }

 private:
  const std::shared_ptr<control::Network> network_;
};

// Answers other processes that ask where this rank's program is.
class PlaceTick final : public call::PeriodicTask {
 public:
  explicit PlaceTick(std::unique_ptr<live::PositionReporter> telling)
      : telling_(std::move(telling)) {}
  Deadline tick() noexcept override {
    telling_->look();
    return Deadline::never();
  }

 private:
  const std::unique_ptr<live::PositionReporter> telling_;
};

WorldImpl::WorldImpl(WorldParts parts) : parts_(std::move(parts)) {}

std::shared_ptr<WorldImpl> WorldImpl::make(WorldParts parts, Deadline deadline) {
  const std::shared_ptr<WorldImpl> world(new WorldImpl(std::move(parts)));
  world->join(deadline);
  ExitList::instance().add(world);
  return world;
}

void WorldImpl::join(Deadline deadline) {
  const int rank = parts_.launch.rank;
  host_ = std::make_shared<control::HostControl>(parts_.segment, parts_.host_rank);
  host_->processors.set_may_spin(parts_.pace == os::Pace::kSpins);
  live::lay_out_board(host_->memory, parts_.is_shown);
  witness_ = std::make_shared<failure::Witness>(
      std::shared_ptr<control::Liveness>(host_, &host_->liveness));
  if (parts_.network) {
    attach(*carrier());
    host_->doorbells.set_arming([network = parts_.network.get()] { return network->arm(); });
    parts_.network->start(host_, for_network(carrier()));
  }
  // Ranks that are threads of one process do not die separately, so no witness is needed.
  progress_ = std::make_unique<ProgressThread>(host_, parts_.threads ? nullptr : witness_);

  if (parts_.network) {
    network_tick_ = std::make_shared<NetworkTick>(parts_.network);
    progress_->add_periodic_task(network_tick_);
  }
  const call::Membership world = membership();
  std::vector<int> by_place(parts_.hosts.size());
  for (std::size_t i = 0; i < by_place.size(); ++i) {
    by_place[static_cast<std::size_t>(parts_.host_ranks[i])] = static_cast<int>(i);
  }
  if (parts_.host_rank == 0) {
    const GroupShape shape{.size = world.size(), .local = host_->ranks()};
    std::vector<int> holders(static_cast<std::size_t>(shape.local));
    std::iota(holders.begin(), holders.end(), 0);
    if (shape.spans()) holders.push_back(control::HostMemory::kNetwork);
    const std::uint64_t block = host_->memory.allocate(group_bytes(parts_.engines, shape), holders);
    format_group(host_->memory.at(block), parts_.host_ranks, shape.local);
    if (shape.spans()) host_->groups.enlist({.id = world.id(), .block = block, .size = shape.size});
    host_->publish_world(block);
  }
  host_->arrive(rank);
  host_->wait_for_all(by_place, deadline);
  base::Lookout::end();  // a rank that ends from here on has joined
  agree_on_single_copy(deadline);
  progress_->look_again();
  if (auto telling = live::PositionReporter::make(
          std::shared_ptr<control::HostMemory>(host_, &host_->memory))) {
    os::FutexWord& asked = telling->asked();
    place_tick_ = std::make_shared<PlaceTick>(std::move(telling));
    progress_->add_periodic_task(place_tick_);
    progress_->set_tick_word(asked);
  }
  if (parts_.host_rank == 0) metrics_ = live::serve_metrics(*parts_.segment, parts_.store_clients);
}

void WorldImpl::agree_on_single_copy(Deadline deadline) {
  const std::string reason = host_->peer_memory.agree_on_single_copy(parts_.single_copy, deadline);
  const bool copies_once = host_->peer_memory.single_copy() != base::SingleCopy::kNever;
  const char* const once =
      host_->peer_memory.may_write()
          ? "one copy of the kernel's, which both ends make, where that is quicker"
          : "one copy of the kernel's, which readers make, where that is quicker";
  base::log(base::LogLevel::kInfo,
            fmt::format("long arrays go between the ranks of this host by {}{}{}",
                        copies_once ? once : "two copies through shared memory",
                        reason.empty() ? "" : ": ",
                        reason));
}

call::Membership WorldImpl::membership() const {
  call::Membership members{.name = parts_.name,
                           .rank = parts_.launch.rank,
                           .world_ranks = std::vector<int>(parts_.hosts.size()),
                           .hosts = parts_.hosts,
                           .host_ranks = parts_.host_ranks};
  std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
  return members;
}

Communicator WorldImpl::make_communicator() {
  return Communicator(
      CommunicatorImpl::make(shared_from_this(), membership(), host_->published_world()));
}

WorldImpl::~WorldImpl() {
  if (forked()) {
    // In a forked child, the parent's thread and memory do not exist. So these objects are leaked.
    static_cast<void>(progress_.release());
    static_cast<void>(metrics_.release());
    new std::shared_ptr<control::HostControl>(host_);
    new std::shared_ptr<control::Network>(parts_.network);
    new JobEngines(parts_.engines);
    return;
  }
  if (!host_) return;
  depart(Manner::kOrdinary);
  progress_.reset();
  // Engines end before the segment is unmapped.
  for (const auto& provider : parts_.engines.chosen()) provider->end();
}

// Returns whether a rank at one of the first `places` places has died.
bool WorldImpl::has_lost_one_of(int places) const noexcept {
  for (int i = 0; i < places; ++i) {
    if (host_->liveness.state(i) == control::RankState::kDied) return true;
  }
  return false;
}

void WorldImpl::forsake() noexcept {
  for (const auto& provider : parts_.engines.chosen()) provider->forsake();
}

void WorldImpl::release_group(std::uint64_t id, std::uint64_t block) noexcept {
  const auto release = [host = host_, block](void*) { host->memory.release(block); };
  std::shared_ptr<void> hold;
  try {
    hold = std::shared_ptr<void>(host_.get(), release);
  } catch (const std::bad_alloc&) {  // `release` has been called
    return;
  }
  for (const auto& provider : parts_.engines.chosen()) provider->close(id, hold);
}

// Returns the carrier between hosts; null if there is one host.
std::shared_ptr<engine::Carrier> WorldImpl::carrier() const {
  const auto& far = parts_.engines.far();
  return far && parts_.network ? far->carrier() : nullptr;
}

void WorldImpl::attach(engine::Carrier& carrier) {
  auto* host = host_.get();
  carrier.attach({.wake = [host] { host->doorbells.ring(host->self()); },
                  .help = [network = parts_.network.get()] { network->notify(); },
                  .fate =
                      [host, places = parts_.host_ranks](int rank) {
                        return fate_of(
                            host->liveness.state(places[static_cast<std::size_t>(rank)]));
                      }});
}

void WorldImpl::depart(Manner manner) noexcept {
  const bool has_left = host_->liveness.state(parts_.host_rank) != control::RankState::kAlive;
  // Waits until sent messages have left, because the other ranks may be waiting for them.
  const auto carrier = this->carrier();
  if (carrier && !has_left) carrier->flush(Deadline::in(kForFlush));
  if (has_lost_one_of(host_->places())) forsake();
  host_->liveness.leave();
  if (parts_.network && !has_left) parts_.network->leave();
  if (manner == Manner::kOrdinary) return;
  if (parts_.network) parts_.network->stop_at_exit();
  if (carrier) carrier->retire();
}

std::shared_ptr<observe::AuditFile> WorldImpl::open_audit() {
  if (parts_.audit != nullptr) return parts_.audit;
  const std::lock_guard lock(audit_mutex_);
  if (late_audit_ == nullptr) {
    late_audit_ = observe::AuditFile::make(
        parts_.audit_folder, {.rank = parts_.launch.rank, .size = parts_.launch.size});
  }
  return late_audit_;
}

void WorldImpl::leave() noexcept {
  if (forked()) return;
  if (!is_kept_) prepare_to_leave();
  if (leaves_at_exit_.exchange(false, std::memory_order_relaxed) &&
      ExitList::instance().keep(shared_from_this())) {
    is_kept_ = true;
    return;
  }
  say_goodbye();
  depart(Manner::kOrdinary);
  parts_.store.reset();
}

// Does nothing after a death. The close waits for the store's answer, and the rank that died may
// have served the store. Its connection lasts until its memory is freed.
void WorldImpl::say_goodbye() noexcept {
  if (forked()) return;
  if (parts_.store && !has_lost_one_of(host_->ranks())) parts_.store->close();
}

void WorldImpl::prepare_to_leave() noexcept {
  // Calls of dropped communicators can still succeed while this rank is there.
  static_cast<void>(ExitList::instance().await_apart());
  const std::vector<std::string> left = device_blocks_.left();
  if (!left.empty()) {
    base::log(
        base::LogLevel::kWarning,
        fmt::format("symmetric memory of GPUs that is still held as the job ends: {}; drop its "
                    "views, or symmetric.free it, before",
                    fmt::join(left, ", ")));
  }
}

// A program may close its world, and fail before it ends. So a rank that has left wakes the others.
void WorldImpl::tell_end(std::string_view why) noexcept {
  if (forked()) return;
  using control::Ending;
  host_->end_reasons.tell(has_told_of_loss() ? Ending::kAfterALoss : Ending::kByItself, why);
  if (!has_left()) return;
  host_->liveness.count_loss();
  host_->doorbells.ring_all();
}

void WorldImpl::tell_trouble(std::string_view what) noexcept {
  if (!forked()) host_->end_reasons.tell_trouble(what);
}

// A status of 1 may follow from a reason that was announced before. That reason stays.
void WorldImpl::tell_status(int status) noexcept {
  if (forked() || has_left()) return;
  if ((status & 0xff) == 0) return host_->end_reasons.withdraw();
  const bool is_said = host_->end_reasons.ending(parts_.host_rank) != control::Ending::kInOrder;
  if (status == 1 && is_said) return;
  std::array<char, 40> text{};
  const auto end =
      fmt::format_to_n(text.begin(), text.size(), "ended with exit status {}", status & 0xff);
  tell_end({text.data(), end.size});
}

bool WorldImpl::interrupted() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  auto last = asked_at_.load(std::memory_order_relaxed);
  if (now - last < std::chrono::nanoseconds(milliseconds(5)).count()) return false;
  if (!asked_at_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return false;
  return base::interrupted();
}

int WorldImpl::default_device() {
  const auto& driver = device_libraries().driver().driver;
  return driver ? parts_.host_rank % driver->devices() : 0;
}

void WorldImpl::add_periodic_task(std::weak_ptr<call::PeriodicTask> task) {
  progress_->add_periodic_task(std::move(task));
}

void WorldImpl::look_again() noexcept { progress_->look_again(); }

void WorldImpl::finish_at_exit(std::weak_ptr<call::Core> core) {
  ExitList::instance().add_with_gpus(std::move(core));
}

void WorldImpl::watch(std::shared_ptr<call::Core> calls) { progress_->add(std::move(calls)); }

bool WorldImpl::is_idle() const noexcept { return progress_->is_idle(); }

}  // namespace hocket::world
