// Prefix reductions (scan and exscan) of any size through chunks. `scan` works along a chain of
// ranks, `scan_by_parts` divides each chunk among all ranks. Both combine the data in ascending
// rank order.
#include "engines/algorithm/partial.h"
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using algorithm::Partial;
using engine::Call;
using engine::Kind;
using engine::Task;
using engine::until;

namespace {

// Returns the bytes of one step of a chain. With short steps, the last ranks of a long chain start
// sooner. But each step costs a meeting of two ranks.
std::size_t step_bytes(const ShmGroup& group, std::size_t bytes) {
  if (group.size() < 4) return kChunkBytes;
  if (group.is_crowded()) return kChunkBytes / (group.size() < 8 ? 2 : 4);
  constexpr std::size_t kLeast = 4 * 1024;
  constexpr std::size_t kMost = 32 * 1024;
  const auto half = static_cast<std::size_t>(group.size() / 2);
  return std::clamp(bytes / half, kLeast, kMost) / kLeast * kLeast;
}

// One rank's link in the chain: it combines the previous rank's partial result with its own data. A
// value.
class ScanStep {
 public:
  ScanStep(ShmGroup& group, const Call& call)
      : group_(&group),
        call_(&call),
        partial_(call.signature.dtype,
                 call.signature.op,
                 engine::combined(call.signature.kind, group.rank(), group.size())),
        exclusive_(call.signature.kind == Kind::kExscan),
        hears_(group.rank() > 0),
        tells_(group.rank() + 1 < group.size()),
        is_long_(bytes_of(call.signature) >= Stager::kReducedFrom),
        step_(step_bytes(group, bytes_of(call.signature)) / partial_.element()) {}

  // Return whether there is a previous rank, from which this rank hears partial results, and a next
  // rank, which it tells its own.
  bool hears() const { return hears_; }
  bool tells() const { return tells_; }
  std::uint64_t steps() const { return steps_for(call_->signature.count, step_); }

  // Carries out step k. The previous rank must have staged its partial result of this step, and
  // this rank's chunk must be free. Works in blocks, each of which stays in the cache between the
  // operations on it.
  void pass(std::uint64_t k) const {
    const StepRange range = range_of(k, step_, call_->signature.count);
    const std::size_t narrow = size_of(call_->signature.dtype);
    const std::size_t wide = partial_.element();
    const auto* in = static_cast<const std::byte*>(call_->in) + range.first * narrow;
    auto* out = static_cast<std::byte*>(call_->out);
    if (out != nullptr) out += range.first * narrow;
    const std::byte* before =
        hears_ ? group_->chunk(group_->rank() - 1, call_->sequence, k) : nullptr;
    std::byte* onwards = tells_ ? group_->chunk(group_->rank(), call_->sequence, k) : nullptr;
    const std::size_t most = kBlockBytes / wide;
    for (std::size_t at = 0; at < range.length; at += most) {
      const std::size_t count = std::min(most, range.length - at);
      pass_block(before == nullptr ? nullptr : before + at * wide,
                 in + at * narrow,
                 out == nullptr ? nullptr : out + at * narrow,
                 onwards == nullptr ? nullptr : onwards + at * wide,
                 count);
    }
  }

 private:
  void pass_block(const std::byte* before,
                  const std::byte* in,
                  std::byte* out,
                  std::byte* onwards,
                  std::size_t count) const {
    const std::byte* upto = in;
    if (tells_ || !exclusive_) upto = combine(before, in, out, count);
    if (tells_)
      group_->stager(Readers::kSeveral).copy(onwards, upto, count * partial_.element(), is_long_);
    if (out != nullptr) partial_.finish(out, exclusive_ ? before : upto, count);
  }
  // Combines the data of all ranks up to this one into a partial result. Returns its address, which
  // may be `out`.
  const std::byte* combine(const std::byte* before,
                           const std::byte* in,
                           std::byte* out,
                           std::size_t count) const {
    if (before == nullptr && partial_.is_plain()) return in;
    std::byte* const sum = partial_.is_plain() && !exclusive_ ? out : group_->block();
    if (partial_.is_plain()) {
      partial_.fold(sum, before, in, count);
    } else {
      partial_.load(sum, in, count);
      if (before != nullptr) partial_.fold(sum, before, sum, count);
    }
    return sum;
  }

  ShmGroup* group_;
  const Call* call_;
  Partial partial_;
  bool exclusive_;
  bool hears_;
  bool tells_;
  bool is_long_;
  std::size_t step_;  // elements
};

// One rank's part of the work in scan_by_parts: one part of every chunk, which this rank combines
// for all ranks. A value.
class ScanPart {
 public:
  ScanPart(ShmGroup& group, const Call& call)
      : group_(&group), call_(&call), partial_(of(group.size())), element_(size_of(dtype())) {}

  // Replaces the data of this part in each rank's chunk by that rank's result. `bytes` is the
  // length of the data in each chunk.
  void combine(std::uint64_t step, std::size_t bytes) const {
    const StepRange part = part_of(group_->rank(), group_->size(), bytes / element_, element_);
    const std::size_t most = kBlockBytes / 2 / partial_.element();
    for (std::size_t done = 0; done < part.length; done += most) {
      const std::size_t first = (part.first + done) * element_;
      const std::size_t count = std::min(most, part.length - done);
      const auto given = [&](int rank) {
        return group_->chunk(rank, call_->sequence, step) + first;
      };
      if (call_->signature.kind == Kind::kExscan) {
        combine_before(given, count);
      } else if (partial_.is_plain() && !is_average()) {
        for (int i = 1; i < group_->size(); ++i) {
          partial_.fold(given(i), given(i - 1), given(i), count);
        }
      } else {
        combine_upto(given, count);
      }
    }
  }

 private:
  DType dtype() const { return call_->signature.dtype; }
  bool is_average() const { return call_->signature.op == ReduceOp::kAvg; }
  Partial of(int ranks) const { return {dtype(), call_->signature.op, ranks}; }
  // Returns the Partial that converts the complete sum of `rank` to its result. For an average it
  // divides by the number of ranks in the sum.
  Partial ending(int rank) const {
    if (!is_average()) return partial_;
    return of(engine::combined(call_->signature.kind, rank, group_->size()));
  }
  template <typename Given>
  void combine_upto(const Given& given, std::size_t count) const {
    std::byte* const sum = group_->block();
    for (int i = 0; i < group_->size(); ++i) {
      if (i == 0) {
        partial_.load(sum, given(i), count);
      } else {
        partial_.fold_in(sum, given(i), count);
      }
      ending(i).finish(given(i), sum, count);
    }
  }
  // Carries out an exscan: a rank's result excludes its own data, so the first rank has no result.
  template <typename Given>
  void combine_before(const Given& given, std::size_t count) const {
    std::byte* const sum = group_->block();
    std::byte* const result = sum + kBlockBytes / 2;
    partial_.load(sum, given(0), count);
    for (int i = 1; i < group_->size(); ++i) {
      ending(i).finish(result, sum, count);
      partial_.fold_in(sum, given(i), count);
      core::copy(given(i), result, count * element_, core::Stores::kCached);
    }
  }

  ShmGroup* group_;
  const Call* call_;
  Partial partial_;
  std::size_t element_;  // bytes of an element of the array
};

}  // namespace

// Every rank stages a chunk of its data. Then each rank combines one part of all chunks, in place.
// At the end every rank copies its results from its own chunk:
//
//                       part 0      part 1      part 2
//   chunk of rank 0   [a0        | a1        | a2        ]   results of rank 0
//   chunk of rank 1   [a0+b0     | a1+b1     | a2+b2     ]   results of rank 1
//   chunk of rank 2   [a0+b0+c0  | a1+b1+c1  | a2+b2+c2  ]   results of rank 2
//   combined by        rank 0      rank 1      rank 2
Task scan_by_parts(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const int size = group.size();
  const int rank = group.rank();
  const ScanPart part(group, call);
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t most = chunk_bytes(call.signature, size);
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  if (engine::combined(call.signature.kind, rank, size) == 0) out = nullptr;

  co_await until([&] { return group.may_write(call); });
  group.begin_staging(call);
  const std::uint64_t steps = steps_for(bytes, most);
  for (std::uint64_t k = 0; k < steps; ++k) {
    const StepRange range = range_of(k, most, bytes);
    std::byte* const own = group.chunk(rank, call.sequence, k);
    group.stager(Readers::kSeveral).copy(own, in + range.first, range.length, false);
    group.stage(call, k + 1);
    for (int i = 1; i < size; ++i) {
      const int peer = (rank + i) % size;
      if (!group.staged(peer, call, k + 1)) {
        co_await until([&] { return group.staged(peer, call, k + 1); });
      }
      if (k == 0) group.check_staged(peer, call);
    }
    part.combine(k, range.length);
    group.reduced(call, k + 1);
    for (int i = 1; i < size; ++i) {
      const int peer = (rank + i) % size;
      if (!group.is_reduced(peer, call, k + 1)) {
        co_await until([&] { return group.is_reduced(peer, call, k + 1); });
      }
    }
    if (out != nullptr) core::copy(out + range.first, own, range.length, core::Stores::kCached);
  }
}

// In step k a rank waits for the partial result of the previous rank and combines it with its own
// data. It leaves the new partial result in its chunk for the next rank. Before it writes to the
// chunk, it waits until the next rank has finished step k - kChunks.
Task scan(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const ScanStep link(group, call);
  const int rank = group.rank();
  if (link.tells()) {
    co_await until([&] { return group.may_write(call); });
    group.begin_staging(call);
  }
  const std::uint64_t steps = link.steps();
  for (std::uint64_t k = 0; k < steps; ++k) {
    if (link.hears()) {
      if (!group.staged(rank - 1, call, k + 1)) {
        co_await until([&] { return group.staged(rank - 1, call, k + 1); });
      }
      if (k == 0) group.check_staged(rank - 1, call);
    }
    if (link.tells() && k >= kChunks) {
      co_await until([&] { return group.has_done(rank + 1, call, k - kChunks + 1); });
    }
    link.pass(k);
    if (link.tells()) group.stage(call, k + 1);
    if (link.hears() && k + 1 < steps) group.done(call, k + 1);
  }
}

}  // namespace hocket::engines::shm
