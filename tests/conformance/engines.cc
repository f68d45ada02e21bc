#include "engines.h"

#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "cases.h"
#include "engines/algorithm/algorithm_engine.h"
#include "engines/algorithm/hierarchy_engine.h"
#include "engines/local/provider.h"
#include "engines/shm/shm_engine.h"
#include "engines/shm/shm_point_to_point.h"
#include "engines/ucx/ucx_point_to_point.h"
#include "fake_engine/provider.h"
#include "foundation/os/segment.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "peer_on_host.h"

namespace hocket::conformance {
namespace {

// Messages between threads, made by a provider, with an engine on top.
class ThreadsTeam final : public Team {
 public:
  // `hosts`: the pretended host of each rank; empty: all on one.
  struct Options {
    int size = 1;
    std::vector<int> hosts;
    bool ordered = true;
  };
  using Make = std::function<std::unique_ptr<engine::CollectiveEngine>(
      engine::PointToPoint& messages, const engine::GroupFacts& facts)>;

  ThreadsTeam(std::unique_ptr<engine::Provider> provider, Options options, const Make& make)
      : options_(std::move(options)), provider_(std::move(provider)) {
    for (int rank = 0; rank < options_.size; ++rank) {
      messages_.push_back(
          provider_->make_messages({.facts = {.rank = rank, .size = options_.size, .hosts = {}},
                                    .block = &block_,
                                    .ring = [](int) {}}));
      engines_.push_back(make(*messages_.back(),
                              {.rank = rank,
                               .size = options_.size,
                               .hosts = options_.hosts,
                               .one_host = options_.hosts.empty()}));
    }
  }
  EngineRank make_rank(int rank) override {
    const auto r = static_cast<std::size_t>(rank);
    return {.rank = rank,
            .size = options_.size,
            .engine = engines_[r].get(),
            .messages = messages_[r].get(),
            .ordered = options_.ordered};
  }

 private:
  const Options options_;
  std::unique_ptr<engine::Provider> provider_;
  std::byte block_{};  // for its address
  std::vector<std::unique_ptr<engine::PointToPoint>> messages_;
  std::vector<std::unique_ptr<engine::CollectiveEngine>> engines_;
};

// The floor over an engine's messages between threads.
template <typename Provider>
EngineCase threads_case(std::string name, const algorithm::Tuning& tuning) {
  const auto make = [tuning](engine::PointToPoint& messages, const engine::GroupFacts& facts) {
    return std::make_unique<algorithm::AlgorithmEngine>(messages, facts, tuning);
  };
  return {
      .name = std::move(name), .run = [=](int size, const Body& body) {
        const ThreadsTeam::Options options{.size = size, .hosts = {}, .ordered = tuning.ordered};
        return run_threads(
            size, std::make_unique<ThreadsTeam>(std::make_unique<Provider>(), options, make), body);
      }};
}
EngineCase local_case(std::string name, const algorithm::Tuning& tuning) {
  return threads_case<engines::local::LocalProvider>(std::move(name), tuning);
}

// Each of these cases forces one algorithm for each collective: the i-th that the collective has.
// Small pieces make pipelines even of short arrays.
EngineCase forced_case(int i) {
  algorithm::Tuning tuning{.ordered = false, .scratch_bytes = 4000, .chunk_bytes = 600};
  for (const engine::Kind kind : kKinds) {
    const auto ways = algorithm::ways_of(kind);
    tuning.forced.set(kind, ways[static_cast<std::size_t>(i) % ways.size()].algorithm);
  }
  return local_case("local_way_" + std::to_string(i), tuning);
}

// --- Several hosts, pretended: messages between threads ----------------------------------------

// The host of each rank.
using Placement = int (*)(int rank, int size);

// In levels where that is offered, else straight.
class Levels final : public engine::CollectiveEngine {
 public:
  Levels(engine::PointToPoint& messages,
         const engine::GroupFacts& facts,
         const algorithm::HierarchyTuning& tuning)
      : levels_(messages, facts, tuning), straight_(messages, facts, {.ordered = false}) {}
  std::string_view name() const noexcept override { return "levels"; }
  std::optional<engine::Score> score(const engine::Signature& s) const noexcept override {
    return straight_.score(s);
  }
  engine::Task start(const engine::Call& call) override {
    return levels_.score(call.signature) ? levels_.start(call) : straight_.start(call);
  }

 private:
  algorithm::HierarchyEngine levels_;
  algorithm::AlgorithmEngine straight_;
};

EngineCase hosts_case(std::string name,
                      Placement placement,
                      const algorithm::HierarchyTuning& tuning) {
  const auto make = [tuning](engine::PointToPoint& messages, const engine::GroupFacts& facts) {
    return std::make_unique<Levels>(messages, facts, tuning);
  };
  return {.name = std::move(name), .run = [=](int size, const Body& body) {
            ThreadsTeam::Options options{.size = size, .hosts = {}, .ordered = false};
            for (int rank = 0; rank < size; ++rank) {
              options.hosts.push_back(placement(rank, size));
            }
            return run_threads(
                size,
                std::make_unique<ThreadsTeam>(
                    std::make_unique<engines::local::LocalProvider>(), std::move(options), make),
                body);
          }};
}

// Two hosts, the first with more ranks.
int two_blocks(int rank, int size) { return rank < (2 * size + 2) / 3 ? 0 : 1; }
// Hosts of different sizes, not in blocks, the third with one rank; arbitrary numbers.
int scattered_hosts(int rank, int /*size*/) {
  constexpr std::array kHosts{7, 2, 2, 7, 5, 2, 7, 7};
  return kHosts[static_cast<std::size_t>(rank) % kHosts.size()];
}
// In turns: equal numbers where that goes.
int in_turns(int rank, int /*size*/) { return rank % 2; }

// --- Shared memory -----------------------------------------------------------------------------

using control::GroupControl;
using control::HostControl;
using engines::shm::ManyRanks;
using engines::shm::ShmEngine;
using engines::shm::ShmGroup;
using engines::shm::ShmPointToPoint;

// All ranks call the same here.
class NoMismatch final : public engine::Consistency {
 public:
  void confirm(int peer, std::uint64_t sequence) override {
    throw std::runtime_error("call " + std::to_string(sequence) + " of rank " +
                             std::to_string(peer) + " is taken for another one");
  }
};

// A segment with one group in it.
struct ShmMemory {
  std::shared_ptr<os::Segment> segment;
  std::uint64_t offset = 0;  // of the group: control part, chunks, channels

  static std::size_t chunks_at(int size) { return round_to_page(GroupControl::bytes(size)); }
  static std::size_t channels_at(int size) {
    return chunks_at(size) + round_to_page(ShmGroup::bytes(size, true));
  }
  static std::size_t group_bytes(int size) {
    return channels_at(size) + round_to_page(ShmPointToPoint::bytes(size));
  }
  static std::size_t segment_bytes(int size) {
    return HostControl::segment_bytes({.ranks = size, .stripe_bytes = stripe_bytes(size)});
  }
  static ShmMemory make(os::Segment made, int size) {
    ShmMemory memory{.segment = std::make_shared<os::Segment>(std::move(made))};
    HostControl::format(*memory.segment, {.ranks = size, .stripe_bytes = stripe_bytes(size)});
    HostControl host(memory.segment, 0);
    std::vector<int> places(static_cast<std::size_t>(size));
    std::iota(places.begin(), places.end(), 0);
    memory.offset = host.memory.allocate(group_bytes(size), places);
    GroupControl::format(host.memory.at(memory.offset), places);
    return memory;
  }

 private:
  static std::size_t round_to_page(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }
  static std::size_t stripe_bytes(int size) { return round_to_page(group_bytes(size)) + (1 << 20); }
};

// One rank's end of it.
class ShmRank {
 public:
  ShmRank(const ShmMemory& memory, int rank, int size, const ManyRanks& many = {})
      : host_ranks_(static_cast<std::size_t>(size)),
        host_(memory.segment, rank),
        control_((std::iota(host_ranks_.begin(), host_ranks_.end(), 0), host_),
                 host_.memory.at(memory.offset),
                 rank,
                 host_ranks_),
        facts_{.rank = rank, .size = size, .hosts = {}},
        engine_(control_,
                consistency_,
                host_.memory.at(memory.offset) + ShmMemory::chunks_at(size),
                facts_,
                many),
        messages_(control_, host_.memory.at(memory.offset) + ShmMemory::channels_at(size)),
        floor_(messages_, facts_) {}

  // Has all ranks read each other's arrays, which are processes that come here.
  void read_arrays() {
    host_.arrive(facts_.rank);
    host_.wait_for_all(host_ranks_, base::Deadline::in(std::chrono::seconds(20)));
    const std::string refusal = host_.peer_memory.agree_on_single_copy(
        base::SingleCopy::kAlways, base::Deadline::in(std::chrono::seconds(20)));
    if (host_.peer_memory.single_copy() != base::SingleCopy::kAlways)
      throw std::runtime_error(refusal);
  }
  EngineRank make_rank(bool floor) {
    return {.rank = facts_.rank,
            .size = facts_.size,
            .engine = floor ? static_cast<engine::CollectiveEngine*>(&floor_) : &engine_,
            .messages = &messages_};
  }

 private:
  std::vector<int> host_ranks_;
  HostControl host_;
  GroupControl control_;
  NoMismatch consistency_;
  engine::GroupFacts facts_;
  ShmEngine engine_;
  ShmPointToPoint messages_;
  algorithm::AlgorithmEngine floor_;
};

// kAmongMany: small calls go in groups of any size as they do among many ranks.
enum class Carried { kDirectly, kAmongMany, kByMessages };

class ShmThreads final : public Team {
 public:
  ShmThreads(int size, Carried carried) : floor_(carried == Carried::kByMessages) {
    const ShmMemory memory =
        ShmMemory::make(os::Segment::create_private(ShmMemory::segment_bytes(size)), size);
    constexpr ManyRanks kAlways{.seconds_ranks = 2,
                                .rows_ranks = 2,
                                .scan_width = 2,
                                .collected_ranks = 2,
                                .all_reduce_ranks = 2,
                                .all_reduce_total = 0,
                                .reduce_ranks = 2,
                                .reduce_total = 0,
                                .reduce_part = 48};
    const ManyRanks many = carried == Carried::kAmongMany ? kAlways : ManyRanks{};
    for (int rank = 0; rank < size; ++rank) {  // before a group asks for the others'
      HostControl(memory.segment, rank).processors.set_may_spin(carried == Carried::kAmongMany);
    }
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<ShmRank>(memory, rank, size, many));
    }
  }
  EngineRank make_rank(int rank) override {
    return ranks_[static_cast<std::size_t>(rank)]->make_rank(floor_);
  }

 private:
  bool floor_;
  std::vector<std::unique_ptr<ShmRank>> ranks_;
};

enum class Copies { kTwo, kOne };

class ShmProcess final : public Team {
 public:
  // The parent's mapping is not inherited; its file descriptor is.
  ShmProcess(const ShmMemory& parents, int rank, int size, Copies copies)
      : rank_({.segment = std::make_shared<os::Segment>(os::Segment::map(
                   os::Fd(dup(parents.segment->fd().get())), parents.segment->size())),
               .offset = parents.offset},
              rank,
              size) {
    if (copies == Copies::kOne) rank_.read_arrays();
  }
  EngineRank make_rank(int) override { return rank_.make_rank(false); }

 private:
  ShmRank rank_;
};

EngineCase shm_threads(std::string name, Carried carried) {
  return {.name = std::move(name), .run = [carried](int size, const Body& body) {
            return run_threads(size, std::make_unique<ShmThreads>(size, carried), body);
          }};
}

EngineCase shm_processes(std::string name, Copies copies) {
  return {.name = std::move(name), .run = [copies](int size, const Body& body) {
            const ShmMemory memory =
                ShmMemory::make(os::Segment::create(ShmMemory::segment_bytes(size)), size);
            return run_processes(
                size,
                [&](int rank) { return std::make_unique<ShmProcess>(memory, rank, size, copies); },
                body);
          }};
}

// --- UCX ---------------------------------------------------------------------------------------

namespace ucx = engines::ucx;

// Each rank has its own worker, like processes on different hosts.
class UcxTeam final : public Team {
 public:
  UcxTeam(const std::shared_ptr<const ucx::UcxLibrary>& library, int size, ucx::Bulk bulk) {
    std::vector<std::vector<std::byte>> addresses;
    ucx::Members members{.group = 7,
                         .world_ranks = std::vector<int>(static_cast<std::size_t>(size))};
    std::iota(members.world_ranks.begin(), members.world_ranks.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      fabrics_.push_back(std::make_shared<ucx::Fabric>(
          library, ucx::FabricOptions{.bulk = bulk, .direct_from = 1024}));
      addresses.push_back(fabrics_.back()->address());
    }
    for (int rank = 0; rank < size; ++rank) {
      const auto& fabric = fabrics_[static_cast<std::size_t>(rank)];
      fabric->meet(addresses);
      members.rank = rank;
      messages_.push_back(std::make_unique<ucx::UcxPointToPoint>(fabric, members));
      const engine::GroupFacts facts{.rank = rank, .size = size, .hosts = {}};
      engines_.push_back(std::make_unique<algorithm::AlgorithmEngine>(
          *messages_.back(), facts, algorithm::Tuning{}));
    }
    // A rank that is through may have messages that have not left.
    helper_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const auto& fabric : fabrics_) {
          if (fabric->pending()) fabric->progress();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  // All at once, and until all are through, as connections take both ends.
  ~UcxTeam() override {
    std::atomic<std::size_t> through{0};
    std::vector<std::jthread> threads;
    for (const auto& fabric : fabrics_) {
      threads.emplace_back([this, &fabric, &through] {
        fabric->flush(base::Deadline::in(std::chrono::seconds(5)));
        ++through;
        while (through < fabrics_.size()) {
          fabric->progress();
          std::this_thread::yield();
        }
      });
    }
  }
  EngineRank make_rank(int rank) override {
    const auto r = static_cast<std::size_t>(rank);
    return {.rank = rank,
            .size = static_cast<int>(fabrics_.size()),
            .engine = engines_[r].get(),
            .messages = messages_[r].get()};
  }

 private:
  std::vector<std::shared_ptr<ucx::Fabric>> fabrics_;
  std::vector<std::unique_ptr<ucx::UcxPointToPoint>> messages_;
  std::vector<std::unique_ptr<algorithm::AlgorithmEngine>> engines_;
  std::jthread helper_;
};

// None where there is no UCX.
std::vector<EngineCase> ucx_cases() {
  const auto library = ucx::UcxLibrary::find().library;
  if (!library) return {};
  const auto make = [&](std::string name, ucx::Bulk bulk) {
    return EngineCase{.name = std::move(name), .run = [library, bulk](int size, const Body& body) {
                        return run_threads(
                            size, std::make_unique<UcxTeam>(library, size, bulk), body);
                      }};
  };
  return {make("ucx", ucx::Bulk::kAuto), make("ucx_direct", ucx::Bulk::kDirect)};
}

// --- GPU kernels, as the host runs them --------------------------------------------------------

constexpr std::chrono::seconds kPeerLimit{20};

// A task that has ended.
engine::Task nothing_left() { co_return; }

class PeerOnHost final : public engine::CollectiveEngine {
 public:
  PeerOnHost(const peer::Member& member, const peer::PeerTuning& tuning, int threads)
      : member_(member), tuning_(tuning), threads_(threads) {}
  std::string_view name() const noexcept override { return "peer"; }
  std::optional<engine::Score> score(const engine::Signature&) const noexcept override {
    return engine::Score{};
  }
  engine::Task start(const engine::Call& call) override {
    for (const peer::Step& step : peer::plan(call, member_, tuning_)) {
      run_on_host(step, threads_);
    }
    if (member_.lanes[0].host->verdict != 0) {
      throw std::runtime_error("gave up " + describe(call.signature) + "; missing, a bit a peer: " +
                               std::to_string(member_.lanes[0].host->missing));
    }
    return nothing_left();
  }

 private:
  peer::Member member_;
  peer::PeerTuning tuning_;
  int threads_;  // of a block
};

class PeerTeam final : public Team {
 public:
  PeerTeam(int size, const peer::PeerTuning& tuning, int threads, std::uint64_t step)
      : staging_(size) {
    staging_.start_at(step);
    for (int rank = 0; rank < size; ++rank) {
      engines_.push_back(
          std::make_unique<PeerOnHost>(staging_.member(rank, kPeerLimit), tuning, threads));
    }
  }
  EngineRank make_rank(int rank) override {
    return {.rank = rank,
            .size = static_cast<int>(engines_.size()),
            .engine = engines_[static_cast<std::size_t>(rank)].get()};
  }

 private:
  HostStaging staging_;
  std::vector<std::unique_ptr<PeerOnHost>> engines_;
};

// `threads`: of a block. `step`: which the links count from.
EngineCase peer_case(std::string name,
                     const peer::PeerTuning& tuning,
                     int threads = 1,
                     std::uint64_t step = 0) {
  return {.name = std::move(name),
          .run =
              [=](int size, const Body& body) {
                return run_threads(
                    size, std::make_unique<PeerTeam>(size, tuning, threads, step), body);
              },
          .has_messages = false,
          .carries = peer::kCarries};
}

}  // namespace

const std::vector<EngineCase>& engine_cases() {
  static const std::vector<EngineCase> cases = [] {
    std::vector<EngineCase> all{
        local_case("local", {}),
        threads_case<engines::mail::MailProvider>("mail", {}),
        // The cheapest algorithm, with any order of the sum.
        local_case("local_unordered", {.network = algorithm::kTcp, .ordered = false}),
        forced_case(0),
        forced_case(1),
        forced_case(2),
        forced_case(3),
        forced_case(4),
        forced_case(5),
        hosts_case("hosts_blocks", two_blocks, {.short_bytes = 0}),
        hosts_case("hosts_scattered", scattered_hosts, {.short_bytes = 1000}),
        hosts_case("hosts_in_turns", in_turns, {.short_bytes = 0}),
        shm_threads("shm_threads", Carried::kDirectly),
        shm_threads("shm_among_many", Carried::kAmongMany),
        shm_threads("shm_messages", Carried::kByMessages),
        shm_processes("shm", Copies::kTwo),
        shm_processes("shm_single_copy", Copies::kOne),
        // Each protocol gets its share of the sizes. Then the protocols for large arrays run at all
        // sizes, GPUs have no NVLink, and packets go in many rounds, by blocks of several threads.
        // Counters of steps, flags and sweeps wrap around. Ranks meet first in some calls, or in
        // all.
        peer_case("peer",
                  {.one_hop = 3000,
                   .two_hops = 100'000,
                   .scattered = 2000,
                   .packets = 2000,
                   .small = 500,
                   .relays = 20'000,
                   .direct = 2000,
                   .meeting = 5000}),
        peer_case("peer_chunks",
                  {.one_hop = 0,
                   .two_hops = 0,
                   .scattered = 0,
                   .packets = 0,
                   .relays = 0,
                   .direct = 0,
                   .meeting = 0,
                   .most_chunk = 16384,
                   .channels = 2},
                  1,
                  (std::uint64_t{1} << 32) - 2),
        peer_case("peer_without_lines",
                  peer::with_room({.small = 500, .relays = 20'000, .lines = false}, 7),
                  1,
                  (std::uint64_t{1} << 30) - 2),
        peer_case("peer_packets",
                  {.one_hop = 0,
                   .two_hops = 1 << 22,
                   .scattered = 1 << 22,
                   .to_one = 1 << 22,
                   .packets = 1 << 22,
                   .small = 0,
                   .channels = 1},
                  2,
                  (std::uint64_t{1} << 31) - 3),
    };
    for (EngineCase& each : ucx_cases()) all.push_back(std::move(each));
    return all;
  }();
  return cases;
}

}  // namespace hocket::conformance
