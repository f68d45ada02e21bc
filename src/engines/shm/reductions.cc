// Reductions of any size through chunks. They combine the data in ascending rank order.
#include <chrono>
#include <optional>

#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Task;
using engine::until;

namespace {

// Chooses the kind of stores of one long call, and measures its duration; see LongStores. A value.
class LongCall {
 public:
  LongCall(ShmGroup& group, const Call& call) : bytes_(bytes_of(call.signature)) {
    is_long_ = bytes_ >= Stager::kReducedFrom;
    if (!is_long_ || call.signature.kind != Kind::kAllReduce) return;
    stores_ = &group.long_stores(bytes_);
    stores_->begin();
  }

  // Returns whether staged data is written past the caches. Applies only if the last cache is
  // shared; see Stager.
  bool is_streaming() const noexcept {
    return stores_ != nullptr ? stores_->is_streaming() : is_long_;
  }
  void all_have_come() noexcept {
    if (stores_ != nullptr) begun_ = Clock::now();
  }
  void has_ended() noexcept {
    if (stores_ == nullptr) return;
    const std::chrono::duration<double, std::nano> took = Clock::now() - begun_;
    stores_->took(took.count() / static_cast<double>(bytes_));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t bytes_;
  bool is_long_;
  LongStores* stores_ = nullptr;
  Clock::time_point begun_;
};

// So many bytes of each array are claimed before they are reduced. All their cache lines can be in
// flight at the same time.
constexpr std::size_t kClaimedBytes = std::size_t{2} << 10;

// A taker that collects the addresses of all ranks' chunks in a step, and then reduces them
// together with this rank's input. See exchange.h.
struct TakeReduced {
  ShmGroup* group;
  Call call;
  std::byte* out;        // destination of this rank's result
  const std::byte* own;  // this rank's input for this result
  std::size_t bytes;     // length of the result
  std::size_t piece;     // bytes of the result in each step
  bool each;             // chunks are cut into one piece for each reader
  core::Stores stores;
  std::optional<LongCall> timed = {};
  bool claims = false;  // this rank claims the lines of this step's chunks

  std::uint64_t steps() const { return steps_for(bytes, piece); }
  bool from(int, std::uint64_t) const { return true; }
  void take(int peer, const Staged& chunk, std::uint64_t) {
    const std::size_t whole = chunk_bytes(call.signature, group->size());
    const std::size_t first =
        each ? ChunkPieces{whole, peer, group->size()}.offset(group->rank()) : 0;
    group->sources()[peer] = chunk.bytes.data() + first;
    claims |= chunk.claimable;
  }
  void finish(std::uint64_t step) {
    if (timed && step == 0) timed->all_have_come();
    take_all(step);
    if (timed && step + 1 == steps()) timed->has_ended();
  }
  void take_all(std::uint64_t step) {
    const StepRange range = range_of(step, piece, bytes);
    const void** sources = group->sources();
    sources[group->rank()] = own + range.first;
    if (!std::exchange(claims, false)) return reduce(range, stores);
    for (std::size_t done = 0; done < range.length; done += kClaimedBytes) {
      const std::size_t length = std::min(kClaimedBytes, range.length - done);
      for (int i = 0; i < group->size(); ++i) {
        if (i != group->rank()) core::claim(sources[i], length);
      }
      reduce({range.first + done, length}, core::Stores::kCached);
      for (int i = 0; i < group->size(); ++i) {
        sources[i] = static_cast<const std::byte*>(sources[i]) + length;
      }
    }
  }
  void reduce(const StepRange& range, core::Stores how) const {
    const core::ReduceKernel kernel = group->kernel(call, how);
    void* const to = out + range.first;
    kernel(&to,
           1,
           group->sources(),
           group->size(),
           range.length / size_of(call.signature.dtype),
           group->size());
  }
};

}  // namespace

Task one_shot_reduce(ShmGroup& group, const Call& call) {
  const std::size_t bytes = bytes_of(call.signature);
  const bool takes = receives(group, call);
  const auto* in = static_cast<const std::byte*>(call.in);
  // The root of a reduce reads its own input directly.
  const bool gives = call.signature.kind != Kind::kReduce || !takes;
  const LongCall timed(group, call);
  const std::size_t chunk = chunk_bytes(call.signature, group.size());
  GiveShared give{.data = in, .bytes = gives ? bytes : 0, .piece = {chunk, Sizes::kAgreed}};
  give.long_from = timed.is_streaming() ? 0 : bytes + 1;
  if (!takes) return exchange(group, call, give, TakeNothing{});
  return exchange(group,
                  call,
                  give,
                  TakeReduced{.group = &group,
                              .call = call,
                              .out = static_cast<std::byte*>(call.out),
                              .own = in,
                              .bytes = bytes,
                              .piece = chunk,
                              .each = false,
                              .stores = stores_for(bytes),
                              .timed = timed});
}

Task reduce_scatter(ShmGroup& group, const Call& call) {
  const ShmParts parts = parts_of(call);
  const auto* in = static_cast<const std::byte*>(call.in);
  const std::size_t own = parts.bytes(group.rank());
  const ChunkPieces pieces{chunk_bytes(call.signature, group.size()), group.rank(), group.size()};
  GiveParts give = GiveParts::make(call.in, parts, pieces, Sizes::kAgreed);
  give.long_from = Stager::kReducedFrom / static_cast<std::size_t>(group.size());
  return exchange(group,
                  call,
                  give,
                  TakeReduced{.group = &group,
                              .call = call,
                              .out = static_cast<std::byte*>(call.out),
                              .own = in + parts.offset(group.rank()),
                              .bytes = own,
                              .piece = pieces.bytes(),
                              .each = true,
                              .stores = stores_for(own)});
}

// In step k the ranks stage chunk k, reduce chunk k - 1 in parts, and gather the results. Each rank
// reduces one part, for which it reads its own input directly from its array. It leaves the result
// at the position of this part in its own chunk, where the peers copy it.
//
//   step        0         1          2
//   stage       chunk 0   chunk 1    chunk 2
//   reduce                chunk 0    chunk 1
//   gather                chunk 0    chunk 1
Task two_shot_reduce(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const int size = group.size();
  const int rank = group.rank();
  const std::size_t element = size_of(call.signature.dtype);
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t chunk_length = chunk_bytes(call.signature, size);
  const std::uint64_t steps = steps_for(bytes, chunk_length);
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  const bool takes = receives(group, call);
  const core::ReduceKernel kernel = group.kernel(call, core::Stores::kCached);
  const core::Stores stores = stores_for(bytes);
  LongCall timed(group, call);
  const bool streams = timed.is_streaming();
  Stager& stager = group.stager(Readers::kSeveral);
  const auto part_bytes = [&](int part, std::size_t chunk_bytes) {
    const StepRange p = part_of(part, size, chunk_bytes / element, element);
    return StepRange{p.first * element, p.length * element};
  };

  co_await until([&] { return group.may_write(call); });
  group.begin_staging(call);
  for (std::uint64_t k = 0; k <= steps; ++k) {
    if (k < steps) {
      if (k >= kChunks) co_await until([&] { return group.all_done(call, k - kChunks + 1); });
      const StepRange range = range_of(k, chunk_length, bytes);
      const StepRange mine = part_bytes(rank, range.length);
      std::byte* chunk = group.chunk(rank, call.sequence, k);
      const auto give = [&](std::size_t first, std::size_t end) {
        stager.copy(chunk + first, in + range.first + first, end - first, streams);
      };
      give(0, mine.first);
      give(mine.first + mine.length, range.length);
      group.stage(call, k + 1);
    }
    if (k == 0) continue;
    const StepRange range = range_of(k - 1, chunk_length, bytes);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      if (!group.staged(peer, call, k)) {
        co_await until([&] { return group.staged(peer, call, k); });
      }
      if (k == 1) group.check_staged(peer, call);
    }
    if (k == 1) timed.all_have_come();
    const StepRange mine = part_bytes(rank, range.length);
    // Each block is copied to this rank's chunk and to its result while the block is in the cache.
    for (std::size_t done = 0; done < mine.length; done += kBlockBytes) {
      const std::size_t at = mine.first + done;
      const std::size_t length = std::min(kBlockBytes, mine.length - done);
      for (int i = 0; i < size; ++i) {
        group.sources()[i] =
            (i == rank ? in + range.first : group.chunk(i, call.sequence, k - 1)) + at;
      }
      void* const block = group.block();
      kernel(&block, 1, group.sources(), size, length / element, size);
      stager.copy(group.chunk(rank, call.sequence, k - 1) + at, group.block(), length, streams);
      if (takes) core::copy(out + range.first + at, group.block(), length, stores);
    }
    group.reduced(call, k);
    for (int i = 1; takes && i < size; ++i) {
      const int peer = (rank + i) % size;  // each rank begins with a different peer
      if (!group.is_reduced(peer, call, k)) {
        co_await until([&] { return group.is_reduced(peer, call, k); });
      }
      const StepRange part = part_bytes(peer, range.length);
      core::copy(out + range.first + part.first,
                 group.chunk(peer, call.sequence, k - 1) + part.first,
                 part.length,
                 stores);
    }
    if (k < steps) group.done(call, k);
  }
  timed.has_ended();
}

}  // namespace hocket::engines::shm
