#include "arrays/pool/pool.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "calls/compose/providers.h"
#include "foundation/base/enumerator.h"
#include "foundation/cuda/driver.h"
#include "foundation/os/machine/processor_set.h"

namespace hocket::pool {
namespace {

InitOptions team_options(const PoolOptions& options) {
  return {.deadline = options.deadline,
          .engines = options.engines,
          .library_folders = options.library_folders};
}

}  // namespace

Pool::Pool(int workers, const PoolOptions& options)
    : options_(options),
      resources_(joining::team_resources(team_options(options), compose::make_providers)) {
  if (workers < 1) {
    throw InvalidArgument(fmt::format("workers is {}, expected at least 1", workers));
  }
  joining::require_team_of(workers);
  base::require_enumerator(
      options.pinning, PoolOptions::Pinning::kNone, "pinning", "PoolOptions::Pinning");
  if (!options_.devices.empty()) open_lanes();
  if (options_.pinning == PoolOptions::Pinning::kShare && !has_gpus()) {
    processors_ = os::ProcessorSet::allowed().numbers();
  }
  states_.resize(static_cast<std::size_t>(workers));
  everybody_.resize(states_.size());
  std::iota(everybody_.begin(), everybody_.end(), 0);
  for (const int i : everybody_) {
    states_[static_cast<std::size_t>(i)].index = i;
    states_[static_cast<std::size_t>(i)].size = workers;
    if (has_gpus()) states_[static_cast<std::size_t>(i)].lane = &lane(i);
  }
  const joining::ThreadTeam team =
      make_team();  // refuses too many workers before any thread exists
  crew_ = std::make_unique<Crew>(workers, [this](int member) { begin(member); });
  for (WorkerState& state : states_) state.crew = crew_.get();
  join(team);
}

Pool::~Pool() {
  if (!forks_.forked()) return;
  // In a forked child the threads do not exist. So their objects cannot be destroyed, and are
  // leaked.
  static_cast<void>(crew_.release());
  for (WorkerState& state : states_) {
    if (state.world) new World(std::move(*state.world));
  }
}

void Pool::open_lanes() {
  const cuda::FoundDriver& found = resources_.device_libraries->driver();
  if (!found.driver) throw DeviceError("there is no GPU for a pool's workers: " + found.why_not);
  for (const int device : options_.devices) {
    if (device < 0 || device >= found.driver->devices()) {
      throw InvalidArgument(fmt::format("device {} is not there; this process sees GPUs 0 to {}",
                                        device,
                                        found.driver->devices() - 1));
    }
    lanes_.push_back(std::make_unique<DeviceLane>(found.driver, device));
  }
}

void Pool::begin(int member) {
  if (has_gpus()) {
    lane(member).make_current();
    return;
  }
  const std::size_t n = states_.size();
  const std::size_t processors = processors_.size();
  if (processors < n) return;
  const auto i = static_cast<std::size_t>(member);
  const std::size_t first = i * processors / n;
  os::ProcessorSet own;
  for (std::size_t k = first; k < (i + 1) * processors / n; ++k) own.add(processors_[k]);
  static_cast<void>(own.restrict_this_thread());  // the kernel may refuse
}

joining::ThreadTeam Pool::make_team() const { return {size(), team_options(options_), resources_}; }

void Pool::join(const joining::ThreadTeam& team) {
  groups_.clear();
  grouped_ = 0;
  crew_->run(
      everybody_,
      [&](int member) {
        WorkerState& state = states_[static_cast<std::size_t>(member)];
        state.world.reset();
        state.world.emplace(team.join(member));
      },
      [](const std::string&) {});
  broken_ = false;
}

DeviceLane& Pool::lane(int worker) const {
  if (worker < 0 || static_cast<std::size_t>(worker) >= lanes_.size()) {
    throw InvalidArgument(has_gpus()
                              ? fmt::format("worker is {}, expected 0 to {}", worker, size() - 1)
                              : "workers of the host have no streams");
  }
  return *lanes_[static_cast<std::size_t>(worker)];
}

int Pool::device_of(ConstArrayView array) const {
  if (array.memory() != MemoryKind::kCuda || lanes_.empty()) return kAnyDevice;
  if (array.device() != kAnyDevice) return array.device();
  return cuda::whereabouts(lanes_.front()->driver(), array.data()).device;
}

void Pool::require_open() const {
  if (forks_.forked()) {
    throw InvalidArgument(
        "the pool was made before this process was forked, and its threads stayed behind; make one "
        "after the fork");
  }
  if (is_closed()) throw InvalidArgument("the pool is closed");
  if (crew_->is_member(std::this_thread::get_id())) {
    throw InvalidArgument(
        "a worker cannot call its own pool, which waits for it; use the worker's communicator");
  }
}

void Pool::check_call(std::span<const int> workers, std::span<const StreamRef> streams) const {
  require_open();
  std::set<int> seen;
  for (const int worker : workers) {
    if (worker < 0 || worker >= size()) {
      throw InvalidArgument(
          fmt::format("worker {} is not there; there are 0 to {}", worker, size() - 1));
    }
    if (!seen.insert(worker).second) {
      throw InvalidArgument(fmt::format("worker {} is given twice", worker));
    }
  }
  require_streams(streams);
}

void Pool::require_streams(std::span<const StreamRef> streams) const {
  if (streams.empty() || streams.size() == lanes_.size()) return;
  throw InvalidArgument(
      has_gpus()
          ? fmt::format("{} streams are given for {} workers; one on each worker's GPU is expected",
                        streams.size(),
                        size())
          : "streams are given, and workers of the host have none");
}

void Pool::run_one(WorkerState& state, const Body& body) {
  if (state.lane == nullptr) {
    body(state);
    return;
  }
  try {
    state.lane->enter(lanes_);
    body(state);
  } catch (...) {
    // Waits also for work that a failed worker has put on its streams, if possible.
    const std::exception_ptr error = std::current_exception();
    try {
      state.lane->leave();
    } catch (const DeviceError&) {
    }
    std::rethrow_exception(error);
  }
  state.lane->leave();
}

void Pool::run(std::span<const int> workers, const Body& body, const PoolCallOptions& options) {
  const std::span<const StreamRef> streams = options.streams;
  check_call(workers, streams);
  base::require_enumerator(
      options.start, PoolCallOptions::Start::kInTurn, "start", "PoolCallOptions::Start");
  if (workers.empty()) return;
  if (broken_) join(make_team());
  const auto caller = [&](std::size_t i) { return streams.empty() ? StreamRef() : streams[i]; };
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->announce(caller(i));
  const auto one = [&](int member) { run_one(states_[static_cast<std::size_t>(member)], body); };
  const auto conclude = [&] {
    for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->conclude(caller(i), lanes_);
  };
  try {
    crew_->run(workers, one, [this](const std::string& reason) { stop(reason); }, options.start);
  } catch (...) {
    conclude();
    throw;
  }
  conclude();
}

void Pool::stop(const std::string& reason) {
  broken_ = true;
  for (WorkerState& state : states_) {
    if (state.world && state.world->communicator().impl())
      state.world->communicator().abort(reason);
  }
}

void Pool::make_groups(int neighbours) {
  if (broken_) join(make_team());
  if (grouped_ == neighbours) return;
  groups_.clear();
  groups_.resize(states_.size());
  run([&](WorkerState& state) {
    groups_[static_cast<std::size_t>(state.index)] =
        state.world->communicator().split({.color = state.index / neighbours, .key = state.index});
  });
  grouped_ = neighbours;
}

void Pool::close() {
  if (is_closed()) return;
  if (crew_->is_member(std::this_thread::get_id())) require_open();
  crew_.reset();
  groups_.clear();
  for (WorkerState& state : states_) state.world.reset();
}

}  // namespace hocket::pool
