// The collectives over a ShmGroup. Each is a task that keeps a copy of its call. shm_engine.cc
// chooses among them and says when each is best.
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
// Does the same without a task, if all ranks arrive shortly; see CollectiveEngine::attempt.
bool attempt_small(ShmGroup& group, const engine::Call& call);
// Returns the bytes of a slot that a rank fills in such a call.
std::size_t slot_bytes(const engine::Signature& signature, int size) noexcept;

// Moves data through chunks, for any size and for the v-forms.
engine::Task move(ShmGroup& group, const engine::Call& call);
// Returns whether both ends of each transfer copy. The answer is the same on all ranks.
bool copies_by_both_ends(const ShmGroup& group, const engine::Signature& signature) noexcept;
// Carries gather, scatter, and broadcast to one peer in that way.
engine::Task move_by_both_ends(ShmGroup& group, engine::Call call);
// Reduces with one meeting: every rank stages all of its input and reads all inputs. It waits least
// and reads most.
engine::Task one_shot_reduce(ShmGroup& group, const engine::Call& call);
// Reduces with two meetings: every rank reduces one part of each chunk, and the others copy its
// result.
engine::Task two_shot_reduce(ShmGroup& group, engine::Call call);
engine::Task reduce_scatter(ShmGroup& group, const engine::Call& call);
// Computes prefixes along a chain: each rank passes its partial result to the next rank.
engine::Task scan(ShmGroup& group, engine::Call call);
// Computes prefixes by parts: every rank combines one part of each chunk for all ranks.
engine::Task scan_by_parts(ShmGroup& group, engine::Call call);

// Returns whether all ranks expose their inputs of a reduction. The answer is the same on all
// ranks.
bool exposes_reduced(const ShmGroup& group, const engine::Signature& signature) noexcept;
// Reduce inputs that all ranks expose: to whole arrays, or by reduce_scatter.
engine::Task exposed_reduce(ShmGroup& group, engine::Call call);
engine::Task exposed_reduce_scatter(ShmGroup& group, engine::Call call);
// Returns whether the ranks write their parts of a reduce's result to the root's array.
bool writes_result(const ShmGroup& group, const engine::Signature& signature) noexcept;
engine::Task exposed_reduce_to_root(ShmGroup& group, engine::Call call);

// Work on symmetric arrays, without staging.
engine::Task symmetric_all_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_move(ShmGroup& group, engine::Call call);
engine::Task symmetric_swap(ShmGroup& group, engine::Call call);

}  // namespace hocket::engines::shm
