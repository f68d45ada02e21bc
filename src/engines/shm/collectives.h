// The collectives over a ShmGroup, each a task that keeps a copy of its call. What each is for is
// said where they are chosen, in shm_engine.cc.
#pragma once

#include "engine/call.h"
#include "engine/task.h"
#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {

// What there is code for: a kind that is new is not among these until there is some for it.
inline constexpr engine::KindSet kCarries =
    engine::kCommonKinds | engine::KindSet{engine::Kind::kScan, engine::Kind::kExscan};

// Whether this rank gets the result.
inline bool receives(const ShmGroup& group, const engine::Call& call) {
  return call.signature.kind != engine::Kind::kReduce || group.rank() == call.signature.root;
}

// Through slots, any regular kind: what a rank gives fits into one.
engine::Task small(ShmGroup& group, engine::Call call);
// The same without a task, where everybody comes within moments; see CollectiveEngine::attempt.
bool attempt_small(ShmGroup& group, const engine::Call& call);
// Bytes of its slot that a rank would fill in such a call.
std::size_t slot_bytes(const engine::Signature& signature, int size) noexcept;

// Through chunks, any size, the v-forms too.
engine::Task move(ShmGroup& group, const engine::Call& call);
// Every rank stages all of its input and reads all of everybody's: least waiting, most reading.
engine::Task one_shot_reduce(ShmGroup& group, const engine::Call& call);
// Every rank reduces one part of each chunk, and the others copy its result.
engine::Task two_shot_reduce(ShmGroup& group, engine::Call call);
engine::Task reduce_scatter(ShmGroup& group, const engine::Call& call);
// What is combined so far goes from each rank to the next one.
engine::Task scan(ShmGroup& group, engine::Call call);
// Every rank combines one part of each chunk for all.
engine::Task scan_by_parts(ShmGroup& group, engine::Call call);

// Whether all ranks expose what they reduce together. The same on all ranks.
bool exposes_reduced(const ShmGroup& group, const engine::Signature& signature) noexcept;
// The same on arrays that all ranks expose: a call that reduces a whole array, and reduce_scatter.
engine::Task exposed_reduce(ShmGroup& group, engine::Call call);
engine::Task exposed_reduce_scatter(ShmGroup& group, engine::Call call);

// On symmetric arrays: no staging.
engine::Task symmetric_all_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_reduce(ShmGroup& group, engine::Call call);
engine::Task symmetric_move(ShmGroup& group, engine::Call call);
engine::Task symmetric_swap(ShmGroup& group, engine::Call call);

}  // namespace hocket::engines::shm
