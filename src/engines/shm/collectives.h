// The collectives over a ShmGroup. Each function returns a task that keeps a copy of its call.
// shm_engine.cc chooses among the functions and says when each is the fastest.
#pragma once

#include "engine/call.h"
#include "engine/task.h"
#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {

// The kinds that this engine has code for. A new kind must be added here.
inline constexpr engine::KindSet kCarries =
    engine::kCommonKinds | engine::KindSet{engine::Kind::kScan, engine::Kind::kExscan};

// Returns whether this rank gets the result.
inline bool receives(const ShmGroup& group, const engine::Call& call) {
  return call.signature.kind != engine::Kind::kReduce || group.rank() == call.signature.root;
}

// Carries a regular call through slots. A rank's data must fit into one slot.
engine::Task small(ShmGroup& group, engine::Call call);
// Carries a small call without a task, if all ranks arrive shortly. Returns whether the call is
// complete; see CollectiveEngine::attempt.
bool attempt_small(ShmGroup& group, const engine::Call& call);
// Returns how many bytes of its slot a rank fills in a call through slots.
std::size_t slot_bytes(const engine::Signature& signature, int size) noexcept;

// The algorithm of a small call. kAtOnce: every rank reads the slots of all ranks that it needs.
// All others: some ranks first combine or collect the data of other ranks; see
// small_among_many.cc.
enum class SmallWay : std::uint8_t { kAtOnce, kInRows, kInParts, kCollected };
// Limits of the algorithms: the least number of ranks, and the least bytes of all ranks' arrays
// together. All ranks of a group use the same limits. docs/notes/performance.md has the figures.
struct ManyRanks {
  int seconds_ranks = 6;  // smaller groups have no second slots
  int rows_ranks = 12;
  int scan_width = 4;  // ranks in a row
  int collected_ranks = 16;
  int all_reduce_ranks = 6;
  std::size_t all_reduce_total = 8 * 1024;
  int reduce_ranks = 24;
  std::size_t reduce_total = 32 * 1024;
  std::size_t reduce_part = 128;  // the least bytes that one rank combines in a reduce
};
SmallWay small_way_of(const engine::Signature& signature, int size, const ManyRanks& many) noexcept;
// Do the same as `small` and `attempt_small`, by the algorithm `way`.
engine::Task small_among_many(ShmGroup& group,
                              const engine::Call& call,
                              SmallWay way,
                              const ManyRanks& many);
bool attempt_among_many(ShmGroup& group,
                        const engine::Call& call,
                        SmallWay way,
                        const ManyRanks& many);

// Moves data through chunks, for any size and for the v-forms.
engine::Task move(ShmGroup& group, const engine::Call& call);
// Returns whether move_by_both_ends carries the call. The answer is the same on all ranks.
bool copies_by_both_ends(const ShmGroup& group, const engine::Signature& signature) noexcept;
// Carries gather, scatter, and broadcast between two ranks. In each transfer, both ends make a part
// of the copies; see both_ends.cc.
engine::Task move_by_both_ends(ShmGroup& group, engine::Call call);
// Reduces with one meeting: every rank stages its whole input and reads the inputs of all ranks.
// This waits least and reads most.
engine::Task one_shot_reduce(ShmGroup& group, const engine::Call& call);
// Reduces with two meetings: every rank reduces one part of each chunk, and the other ranks copy
// the result.
engine::Task two_shot_reduce(ShmGroup& group, engine::Call call);
engine::Task reduce_scatter(ShmGroup& group, const engine::Call& call);
// Computes prefixes along a chain: each rank passes its partial result to the next rank.
engine::Task scan(ShmGroup& group, engine::Call call);
// Computes prefixes by parts: every rank combines one part of each chunk for all ranks.
engine::Task scan_by_parts(ShmGroup& group, engine::Call call);

// Returns whether the ranks expose their inputs of a reduction. The answer is the same on all
// ranks.
bool exposes_reduced(const ShmGroup& group, const engine::Signature& signature) noexcept;
// Reduce inputs that all ranks expose. `exposed_reduce` carries all_reduce and reduce.
engine::Task exposed_reduce(ShmGroup& group, engine::Call call);
engine::Task exposed_reduce_scatter(ShmGroup& group, engine::Call call);
// Returns whether each rank of a reduce writes its part of the result to the root's array.
bool writes_result(const ShmGroup& group, const engine::Signature& signature) noexcept;
engine::Task exposed_reduce_to_root(ShmGroup& group, engine::Call call);

// Carry calls on symmetric arrays, without staging.
engine::Task symmetric_all_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_move(ShmGroup& group, engine::Call call);
engine::Task symmetric_swap(ShmGroup& group, engine::Call call);

}  // namespace hocket::engines::shm
