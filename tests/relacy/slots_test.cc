// Collectives through slots and chunks (engines/shm/shm_group.h, small.cc, small_among_many.cc,
// exchange.h, move.cc, reductions.cc): no rank overwrites data that another still reads, however
// far ranks run ahead.
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include "engines/shm/collectives.h"
#include "engines/shm/shm_group.h"
#include "host.h"
#include "scenario.h"

namespace hocket::engines::shm {
namespace {

using engine::Call;
using engine::Kind;

// All ranks call the same here.
class NoMismatch final : public engine::Consistency {
  void confirm(int, std::uint64_t) override { HOCKET_CHECK(false); }
};

// Some calls of `Calls::kKinds`, each of which has results that no other has.
template <typename Calls>
class Ranks : public relacy::Program {
 public:
  static constexpr int kThreads = Calls::kRanks;

  Ranks() {
    const std::size_t bytes = ShmGroup::bytes(kThreads, true) + 4096;
    memory_.reset(static_cast<std::byte*>(std::calloc(bytes, 1)));
    relacy::share(memory_.get(), bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.get());
    std::byte* aligned = memory_.get() + (4096 - at % 4096) % 4096;
    for (int rank = 0; rank < kThreads; ++rank) {
      groups_.push_back(std::make_unique<ShmGroup>(
          host_.group(rank),
          consistency_,
          aligned,
          engine::GroupFacts{.rank = rank, .size = kThreads, .hosts = {}},
          true));
    }
  }

  void thread(int rank) override {
    std::uint64_t sequence = 0;
    for (const Kind kind : Calls::kKinds) make(rank, kind, ++sequence);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static constexpr std::size_t kCount = Calls::kCount;
  static std::int64_t value(int rank, std::uint64_t sequence) {
    return static_cast<std::int64_t>(1000 * sequence) + (1 << rank);
  }

  void make(int rank, Kind kind, std::uint64_t sequence) {
    const int root = Calls::root(sequence);
    const bool gathers = kind == Kind::kAllGather || kind == Kind::kGather;
    std::vector<std::int64_t> in(kCount, value(rank, sequence));
    std::vector<std::int64_t> out(kCount * (gathers ? kThreads : 1));
    Call call{.signature = {.kind = kind,
                            .dtype = DType::kInt64,
                            .op = ReduceOp::kSum,
                            .root = root,
                            .count = kCount},
              .sequence = sequence,
              .fingerprint = 31 * sequence};
    const bool gives = kind != Kind::kBroadcast || rank == root;
    const bool takes = (kind != Kind::kGather && kind != Kind::kReduce) || rank == root;
    call.in = gives ? in.data() : nullptr;
    call.out = takes ? out.data() : nullptr;
    run(*groups_[static_cast<std::size_t>(rank)], call);
    if (!takes) return;
    for (std::size_t i = 0; i < out.size(); i += kCount) {
      const int from = gathers ? static_cast<int>(i / kCount) : root;
      std::int64_t expected = value(from, sequence);
      if (kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kScan) {
        expected = 0;
        const int end = kind == Kind::kScan ? rank + 1 : kThreads;
        for (int r = 0; r < end; ++r) expected += value(r, sequence);
      }
      HOCKET_CHECK(out[i] == expected && out[i + kCount / 2] == expected &&
                   out[i + kCount - 1] == expected);
    }
  }

  void run(ShmGroup& group, const Call& call) {
    const bool is_small = slot_bytes(call.signature, kThreads) <= kSlotBytes;
    const ManyRanks many{.seconds_ranks = 0,
                         .rows_ranks = Calls::kManyFrom,
                         .scan_width = 2,
                         .collected_ranks = Calls::kManyFrom,
                         .all_reduce_ranks = Calls::kManyFrom,
                         .all_reduce_total = 0,
                         .reduce_ranks = Calls::kManyFrom,
                         .reduce_total = 0,
                         .reduce_part = 48};
    const SmallWay way = small_way_of(call.signature, kThreads, many);
    if (is_small && attempt_among_many(group, call, way, many)) return;
    engine::Task task = is_small ? small_among_many(group, call, way, many)
                        : call.signature.kind == Kind::kAllReduce ? two_shot_reduce(group, call)
                                                                  : shm::move(group, call);
    while (task.step() == engine::Poll::kPending) relacy::yield();
  }

  relacy::Host host_{kThreads};
  NoMismatch consistency_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<std::unique_ptr<ShmGroup>> groups_;
};

// Two slots in turn. No slot is overwritten too early, though no rank asks.
struct AmongAll {
  static constexpr int kRanks = 2;
  static constexpr int kManyFrom = 100;
  static constexpr std::size_t kCount = 130;
  static constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kAllGather, Kind::kAllReduce};
  static int root(std::uint64_t) { return 0; }
};
struct AmongThree : AmongAll {
  static constexpr int kRanks = 3;
};
// A root that runs ahead as far as there are slots, and no further.
struct Rooted {
  static constexpr int kRanks = 2;
  static constexpr int kManyFrom = 100;
  static constexpr std::size_t kCount = 130;
  static constexpr Kind kKinds[] = {Kind::kBroadcast,
                                    Kind::kBroadcast,
                                    Kind::kBroadcast,
                                    Kind::kBroadcast,
                                    Kind::kBroadcast,
                                    Kind::kBroadcast};
  static int root(std::uint64_t) { return 0; }
};
struct RootedBothWays : Rooted {
  static constexpr int kRanks = 3;
  static constexpr Kind kKinds[] = {
      Kind::kBroadcast, Kind::kGather, Kind::kBroadcast, Kind::kReduce};
  static int root(std::uint64_t sequence) { return static_cast<int>(sequence % 2); }
};
// Each rank combines a part.
struct InParts : AmongAll {
  static constexpr int kRanks = 3;
  static constexpr int kManyFrom = 2;
  static constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kAllReduce, Kind::kAllReduce};
};
// The root takes parts from the others, or collects elements of them, and roots take turns.
struct ReducedInParts : InParts {
  static constexpr Kind kKinds[] = {
      Kind::kReduce, Kind::kReduce, Kind::kReduce, Kind::kAllReduce, Kind::kReduce};
  static int root(std::uint64_t sequence) { return static_cast<int>(sequence % 3); }
};
struct Collected : ReducedInParts {
  static constexpr std::size_t kCount = 3;
};
// Two rows: of two ranks, and of one.
struct InRows : InParts {
  static constexpr Kind kKinds[] = {
      Kind::kScan, Kind::kScan, Kind::kScan, Kind::kScan, Kind::kScan, Kind::kScan};
};
// Chunks in turn: five steps a call, in which each chunk is filled more than once.
struct ThroughChunks {
  static constexpr int kRanks = 2;
  static constexpr int kManyFrom = 100;
  static constexpr std::size_t kCount = 5 * kChunkBytes / 8 - 3;
  static constexpr Kind kKinds[] = {
      Kind::kBroadcast, Kind::kAllGather, Kind::kBroadcast, Kind::kBroadcast};
  static int root(std::uint64_t) { return 1; }
};
struct ReducedChunks : ThroughChunks {
  static constexpr Kind kKinds[] = {Kind::kAllReduce, Kind::kBroadcast, Kind::kBroadcast};
};

// One step a call, so that a root runs ahead until the parity of a chunk comes round.
struct OneChunk : ThroughChunks {
  static constexpr std::size_t kCount = 2 * kSlotBytes / 8;
  static constexpr Kind kKinds[] = {
      Kind::kBroadcast, Kind::kBroadcast, Kind::kBroadcast, Kind::kBroadcast};
};

const relacy::Harmless kKnownAnyway = {
    {"ShmGroup::finish", "who has seen everybody in a call knows that the one before has ended"}};
const relacy::Harmless kRoomEnough = {{"ShmGroup::finish", "there are as many slots as calls"}};

TEST(Slots, AmongAll) {
  relacy::holds_and_needs_all<Ranks<AmongAll>>(kKnownAnyway, kKnownAnyway, 300);
}
TEST(Slots, AmongThree) {
  relacy::holds_and_needs_all<Ranks<AmongThree>>(kKnownAnyway, kKnownAnyway, 300);
}
TEST(Slots, ARootRunsAhead) { relacy::holds_and_needs_all<Ranks<Rooted>>({}, {}, 300); }
TEST(Slots, RootsOfBothKinds) {
  relacy::holds_and_needs_all<Ranks<RootedBothWays>>(kRoomEnough, kRoomEnough, 300);
}
TEST(Slots, InParts) {
  relacy::holds_and_needs_all<Ranks<InParts>>(kKnownAnyway, kKnownAnyway, 300);
}
TEST(Slots, ReducedInParts) {
  relacy::holds_and_needs_all<Ranks<ReducedInParts>>(kRoomEnough, kRoomEnough, 300);
}
TEST(Slots, Collected) {
  relacy::holds_and_needs_all<Ranks<Collected>>(kRoomEnough, kRoomEnough, 300);
}
TEST(Slots, InRows) { relacy::holds_and_needs_all<Ranks<InRows>>({}, {}, 300); }
// A rank in a step of a call has finished the step before.
const relacy::Harmless kSaidByTheNext = {{"ShmGroup::finish", "a later word says the same"},
                                         {"ShmGroup::raise_floor", "the same"}};
TEST(Chunks, InTurn) {
  relacy::holds_and_needs_all<Ranks<ThroughChunks>>(kSaidByTheNext, kSaidByTheNext, 60);
}
TEST(Chunks, Reduced) {
  relacy::holds_and_needs_all<Ranks<ReducedChunks>>(kSaidByTheNext, kSaidByTheNext, 60);
}
TEST(Chunks, ARootRunsAhead) { relacy::holds_and_needs_all<Ranks<OneChunk>>({}, {}, 300); }

}  // namespace
}  // namespace hocket::engines::shm
