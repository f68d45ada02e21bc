#include <algorithm>
#include <array>

#include "cases.h"

namespace hocket::conformance {

using engine::Kind;

namespace {

constexpr std::array<std::size_t, 7> kCounts{0, 1, 2, 3, 7, 64, 1000};
// Elements of the largest arrays; fewer for the dtypes whose reference is slow.
constexpr std::size_t kLarge = 300'000;
constexpr std::size_t kFairlyLarge = 50'000;

// True for kinds whose count is the elements of the whole array; false for a count per rank.
bool counts_whole(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kAllReduce ||
         kind == Kind::kScan || kind == Kind::kExscan;
}

class Sweep {
 public:
  Sweep(Kind kind, int size) : size_(size) { base_.kind = kind; }

  // With each root in turn, and in place for every other call of the like.
  void add(Case c) {
    c.seed = mix(++added_ * 31 + static_cast<std::uint64_t>(c.kind));
    if (has_root(c.kind)) c.root = static_cast<int>(added_ % static_cast<std::uint64_t>(size_));
    cases_.push_back(c);
  }
  void add_both(Case c) {
    c.in_place = false;
    add(c);
    c.in_place = true;
    add(c);
    if (c.kind == Kind::kReduceScatter) {
      c.at_own_part = true;
      add(c);
    }
    if (cases_.size() % 4 != 0) return;
    c.on_odd_ranks = true;
    add(c);
  }

  // Few dtypes, thoroughly.
  void thoroughly(DType dtype, ReduceOp op) {
    Case c = base_;
    c.dtype = dtype;
    c.op = op;
    for (const std::size_t count : kCounts) {
      c.count = count;
      for (int i = 0; i < (has_root(c.kind) ? std::min(size_, 3) : 1); ++i) add_both(c);
    }
  }
  // Every dtype and op, each with one of the counts.
  void everywhere() {
    std::size_t next = 0;
    for (int d = 0; d < kDTypeCount; ++d) {
      for (int o = 0; o < (reduces(base_.kind) ? kReduceOpCount : 1); ++o) {
        Case c = base_;
        c.dtype = static_cast<DType>(d);
        c.op = static_cast<ReduceOp>(o);
        if (reduces(c.kind) && !is_defined(c.op, c.dtype)) continue;
        c.count = kCounts[1 + next++ % (kCounts.size() - 1)];
        if (reduces(c.kind)) {
          c.in_place = next % 2 == 0;
          c.at_own_part = c.in_place && c.kind == Kind::kReduceScatter && next % 4 == 0;
          add(c);
        } else {
          add_both(c);
        }
        if (reduces(c.kind) && c.op <= ReduceOp::kMax) {
          c.data = Data::kExact;
          c.count = 33;
          c.in_place = false;
          add(c);
        }
      }
    }
  }
  void largely(DType dtype, ReduceOp op, std::size_t most) {
    Case c = base_;
    c.dtype = dtype;
    c.op = op;
    c.count = counts_whole(c.kind) ? most : most / static_cast<std::size_t>(size_) + 1;
    add_both(c);
  }

  std::vector<Case> take() { return std::move(cases_); }

 private:
  Case base_;
  int size_;
  std::uint64_t added_ = 0;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> sweep(Kind kind, int size) {
  Sweep sweep(kind, size);
  sweep.thoroughly(DType::kFloat32, ReduceOp::kSum);
  sweep.thoroughly(DType::kBFloat16, ReduceOp::kAvg);
  sweep.everywhere();
  sweep.largely(DType::kFloat32, ReduceOp::kSum, kLarge);
  sweep.largely(DType::kComplex128, ReduceOp::kProduct, kFairlyLarge);
  sweep.largely(DType::kFloat8E4M3, ReduceOp::kMin, kFairlyLarge);
  return sweep.take();
}

Case random_case(std::uint64_t seed, int size, engine::KindSet kinds) {
  std::uint64_t state = mix(seed);
  const auto below = [&state](std::size_t n) {
    state = mix(state);
    return state % n;
  };
  Case c;
  do {
    c.kind = kKinds[below(std::size(kKinds))];
  } while (!kinds.has(c.kind));
  c.dtype = static_cast<DType>(below(kDTypeCount));
  c.op = static_cast<ReduceOp>(below(kReduceOpCount));
  if (!is_defined(c.op, c.dtype)) c.op = ReduceOp::kSum;
  const std::size_t scale = std::array<std::size_t, 4>{4, 100, 2000, 20'000}[below(4)];
  c.count = below(scale);
  c.root = static_cast<int>(below(static_cast<std::size_t>(size)));
  c.in_place = below(2) == 0;
  c.on_odd_ranks = c.in_place && below(4) == 0;
  c.at_own_part = c.in_place && c.kind == Kind::kReduceScatter && below(2) == 0;
  c.seed = mix(state);
  return c;
}

}  // namespace hocket::conformance
