#include "comm/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <numeric>

#include "base/interrupt.h"
#include "base/log.h"
#include "comm/progress.h"
#include "comm/witness.h"

namespace hocket::comm {

using base::Deadline;

namespace {

// Worlds to take leave of when the process exits without having closed them, so that others can
// tell that from a death. The process's, like exit itself.
class ExitList {
 public:
  static ExitList& instance() {
    static ExitList* const list = [] {
      std::atexit([] { instance().leave_all(); });
      return new ExitList;  // outlives all destructors
    }();
    return *list;
  }
  void add(std::weak_ptr<WorldImpl> world) {
    const std::lock_guard lock(mutex_);
    std::erase_if(worlds_, [](const auto& entry) { return entry.expired(); });
    worlds_.push_back(std::move(world));
  }

 private:
  void leave_all() {
    std::vector<std::weak_ptr<WorldImpl>> worlds;
    {
      const std::lock_guard lock(mutex_);
      worlds.swap(worlds_);
    }
    for (const auto& entry : worlds) {
      const auto world = entry.lock();
      if (world && !world->forked()) world->host().leave();
    }
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<WorldImpl>> worlds_;
};

}  // namespace

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
  witness_ = std::make_shared<Witness>(host_);
  // Ranks that are threads do not die one by one.
  progress_ = std::make_unique<ProgressThread>(host_, parts_.threads ? nullptr : witness_);

  std::vector<int> neighbours;  // world ranks of this host, by host rank
  for (std::size_t i = 0; i < parts_.hosts.size(); ++i) {
    if (parts_.hosts[i] == parts_.hosts[static_cast<std::size_t>(rank)]) {
      neighbours.push_back(static_cast<int>(i));
    }
  }
  if (parts_.host_rank == 0) {
    const int local = static_cast<int>(neighbours.size());
    const std::uint64_t block = host_->allocate(group_bytes(parts_.engines, local), local);
    format_group(host_->at(block), local);
    host_->publish_world(block);
  }
  host_->arrive(rank);
  host_->wait_for_all(neighbours, deadline);
  progress_->look_again();
}

Communicator WorldImpl::make_communicator() {
  Membership members{.name = "world",
                     .rank = parts_.launch.rank,
                     .world_ranks = std::vector<int>(parts_.hosts.size()),
                     .hosts = parts_.hosts,
                     .host_ranks = parts_.host_ranks};
  std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
  return Communicator(std::make_shared<CommunicatorImpl>(
      shared_from_this(), std::move(members), host_->published_world()));
}

WorldImpl::~WorldImpl() {
  if (forked()) {
    // The parent's thread and memory are not here.
    static_cast<void>(progress_.release());
    new std::shared_ptr<control::HostControl>(host_);
    return;
  }
  if (!host_) return;
  host_->leave();
  progress_.reset();
}

void WorldImpl::leave() noexcept {
  if (forked()) return;
  const std::vector<std::string> left = device_blocks_.left();
  if (!left.empty()) {
    base::log(
        base::LogLevel::kWarning,
        fmt::format("symmetric memory of GPUs that is still held as the job ends: {}; drop its "
                    "views, or symmetric.free it, before",
                    fmt::join(left, ", ")));
  }
  host_->leave();
  // A goodbye waits for the store's answer, and the store may have been that of a rank that died,
  // whose connection lasts for as long as its memory is being freed.
  bool all_lived = true;
  for (int i = 0; i < host_->ranks(); ++i) {
    all_lived &= host_->state(i) != control::RankState::kDied;
  }
  if (parts_.store && all_lived) parts_.store->close();
  parts_.store.reset();
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

void WorldImpl::attend(std::weak_ptr<Attended> attended) { progress_->attend(std::move(attended)); }

void WorldImpl::look_again() noexcept { progress_->look_again(); }

void WorldImpl::watch(std::shared_ptr<CommunicatorImpl> communicator) {
  progress_->add(std::move(communicator));
}

}  // namespace hocket::comm
