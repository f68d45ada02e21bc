// Prefix reductions of any size through chunks, in ascending rank order.
#include "algorithm/partial.h"
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using algorithm::Partial;
using engine::Call;
using engine::Kind;
using engine::Task;
using engine::until;

namespace {

// A chain of many ranks begins sooner with short steps; each costs a meeting.
std::size_t step_bytes(int size) {
  return kChunkBytes / static_cast<std::size_t>(std::clamp(size / 2, 1, 4));
}

// One rank's link of the chain, for one step after the other. A value.
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
        step_(step_bytes(group.size()) / partial_.element()) {}

  bool hears() const { return hears_; }
  bool tells() const { return tells_; }
  std::uint64_t steps() const { return steps_for(call_->signature.count, step_); }

  // Step k: what the rank before has combined is there, and room for what goes on. A block at a
  // time, which stays in the cache between what is done with it.
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
  // What ranks up to this one bring, as a partial result, somewhere; perhaps in `out`.
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

}  // namespace

// In step k a rank waits for what the one before has combined, combines it with its own, and leaves
// it to the one after it, which has done with step k - kChunks.
Task scan(ShmGroup& group, Call call) {
  const Turn turn(group, call);
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
