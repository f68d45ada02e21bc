// One collective call, described by a value. Every rank computes its input and its expected result
// from that value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/call.h"
#include "engines.h"
#include "hocket/types.h"
#include "reference.h"

namespace hocket::conformance {

struct Case {
  engine::Kind kind = engine::Kind::kBarrier;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  // As in engine::Signature; in the v-forms the parts have up to so many elements.
  std::size_t count = 0;
  int root = 0;
  bool in_place = false;
  bool on_odd_ranks = false;  // only these work in place then, where each may choose
  bool at_own_part = false;   // reduce_scatter in place: the result goes there, not to the front
  Data data = Data::kRandom;
  std::uint64_t seed = 0;
};

std::string describe(const Case& c);
bool has_root(engine::Kind kind);
bool reduces(engine::Kind kind);

// A part of a rank's result: `count` elements from `at` on. They are the elements that `source`
// gave, from `source_at` on. If source is -1, they are the reduction over all ranks, or over the
// first `ranks`.
struct Slice {
  std::size_t at = 0;
  std::size_t count = 0;
  int source = -1;
  std::size_t source_at = 0;
  int ranks = 0;  // 0: all
};

// A case as seen by one rank. Positions are elements.
struct Shape {
  bool has_in = false, has_out = false;
  std::size_t in_count = 0, out_count = 0;
  // In place: both lie in one buffer, `in` from in_at, `out` from out_at.
  bool one_buffer = false;
  std::size_t in_at = 0, out_at = 0;
  std::vector<std::size_t> in_counts, in_places, out_counts, out_places;  // v-forms
  std::size_t own_count = 0;                                              // v-forms
  std::vector<Slice> result;
};
Shape shape_of(const Case& c, int rank, int size);

// A call with its memory, which is poisoned outside the arrays.
class Buffers {
 public:
  Buffers(const Case& c, int rank, int size, std::uint64_t sequence);
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  const engine::Call& call() const { return call_; }
  // The error in the result, or an empty string.
  std::string check() const;
  // Overwrites everything; `is_scribbled` tells whether anybody has written since.
  void scribble();
  bool is_scribbled() const;

 private:
  std::byte* in() const;
  std::byte* out() const;
  std::string check_surroundings() const;

  Case case_;
  int size_;
  int rank_;
  Shape shape_;
  std::vector<std::byte> in_memory_, out_memory_;
  std::vector<std::byte> in_before_;
  std::vector<std::size_t> positions_;  // of the parts, in bytes
  engine::Call call_;
};

// The same case, or where its result depends on the order of adding up, one with exact sums.
Case in_any_order(Case c);

// Makes the call on this rank and checks its result; throws the error. An engine that keeps no
// order runs `in_any_order` of the case.
void run_case(const EngineRank& self, const Case& c, std::uint64_t sequence);

// Cases of one kind for `size` ranks: all dtypes, ops, counts, roots, in place and not.
std::vector<Case> sweep(engine::Kind kind, int size);
// A case of any kind of these that is a collective.
Case random_case(std::uint64_t seed,
                 int size,
                 engine::KindSet kinds = engine::KindSet::where(engine::is_carried));

inline constexpr engine::Kind kKinds[] = {
    engine::Kind::kBarrier,
    engine::Kind::kBroadcast,
    engine::Kind::kReduce,
    engine::Kind::kAllReduce,
    engine::Kind::kScan,
    engine::Kind::kExscan,
    engine::Kind::kReduceScatter,
    engine::Kind::kAllGather,
    engine::Kind::kGather,
    engine::Kind::kScatter,
    engine::Kind::kAllToAll,
    engine::Kind::kReduceScatterV,
    engine::Kind::kAllGatherV,
    engine::Kind::kGatherV,
    engine::Kind::kScatterV,
    engine::Kind::kAllToAllV,
};

}  // namespace hocket::conformance
