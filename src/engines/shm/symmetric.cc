// Calls on symmetric arrays. Every rank reads the arrays of all ranks directly, and in an
// all_reduce also writes them. All ranks meet twice in a call: when all arrays are ready, and when
// all arrays have been read. An all_to_all adds one meeting for each round after the first.
#include <span>

#include "engines/algorithm/scratch.h"
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Task;
using engine::until;

namespace {

// Bytes of one round of symmetric_swap. A rank that works in place copies its data of the round
// twice. With this size the data is still in the caches at the second copy.
constexpr std::size_t kSwapBytes = std::size_t{2} << 20;

// Announces stage `step` of the call, and waits until all ranks have announced it.
Task meet(ShmGroup& group, const Call& call, std::uint64_t step) {
  group.stage(call, step);
  for (int peer = 0; peer < group.size(); ++peer) {
    if (peer == group.rank()) continue;
    if (!group.staged(peer, call, step)) {
      co_await until([&] { return group.staged(peer, call, step); });
    }
    if (step == 1) group.check_staged(peer, call);
  }
}

// Reduces `count` elements of all ranks' inputs, from byte `offset` on. Writes the result to each
// of `outs`.
void reduce_peers(ShmGroup& group,
                  const Call& call,
                  std::span<void* const> outs,
                  std::size_t offset,
                  std::size_t count,
                  core::Stores stores) {
  const std::size_t end = offset + count * size_of(call.signature.dtype);
  for (int i = 0; i < group.size(); ++i) {
    group.sources()[i] = group.peer_in(i, call, end) + offset;
  }
  group.kernel(call, stores)(outs.data(),
                             static_cast<int>(outs.size()),
                             group.sources(),
                             group.size(),
                             count,
                             group.size());
}

}  // namespace

// Each rank reduces its part of the arrays and writes the result into the outputs of all ranks.
// Only this rank reads this part of the inputs, so the call also works in place.
Task symmetric_all_reduce(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  co_await until([&] { return group.may_write(call); });
  group.begin_sharing(call);
  co_await meet(group, call, 1);

  const auto& s = call.signature;
  const std::size_t element = size_of(s.dtype);
  const std::size_t line = std::max<std::size_t>(1, control::kCacheLine / element);
  const auto n = static_cast<std::size_t>(group.size());
  const std::size_t part = ((s.count + line - 1) / line + n - 1) / n * line;
  const StepRange mine = range_of(static_cast<std::uint64_t>(group.rank()), part, s.count);
  const core::Stores stores = stores_for(bytes_of(s));
  // Blocks are so short that the ranks' data is still in the caches when the result is written to
  // all outputs.
  const std::size_t block =
      (stores == core::Stores::kStreaming ? kChunkBytes : kChunkBytes / 4) / element;
  const std::span<void*> outs(group.outs(), n);
  for (std::size_t at = 0; at < mine.length; at += block) {
    const std::size_t count = std::min(block, mine.length - at);
    const std::size_t offset = (mine.first + at) * element;
    for (std::size_t i = 0; i < n; ++i) {  // this rank's output first
      const int peer = static_cast<int>((static_cast<std::size_t>(group.rank()) + i) % n);
      outs[i] = group.peer_out(peer, call, bytes_of(s)) + offset;
    }
    reduce_peers(group, call, outs, offset, count, stores);
  }
  co_await meet(group, call, 2);
  group.saw_everybody(call);
}

Task symmetric_reduce(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const auto& s = call.signature;
  const std::size_t bytes = bytes_of(s);
  const bool scatters = engine::has_parts(s.kind);
  // If a reduce_scatter works in place, the result lies at the front of the input. There it would
  // overwrite data that rank 0 may not have read yet. So the result waits in scratch memory.
  const bool waits = scatters && call.out == call.in && group.rank() != 0;
  const algorithm::Scratch kept(waits ? bytes : 0);
  co_await until([&] { return group.may_write(call); });
  group.begin_sharing(call);
  co_await meet(group, call, 1);

  if (scatters || group.rank() == s.root) {
    const std::size_t offset = scatters ? static_cast<std::size_t>(group.rank()) * bytes : 0;
    void* const out = waits ? kept.get() : call.out;
    reduce_peers(group, call, {&out, 1}, offset, s.count, stores_for(bytes));
  }
  co_await meet(group, call, 2);
  if (waits) core::copy(call.out, kept.get(), bytes, stores_for(bytes));
  group.saw_everybody(call);
}

Task symmetric_move(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  co_await until([&] { return group.may_write(call); });
  const auto& s = call.signature;
  const std::size_t bytes = bytes_of(s);
  const bool from_root = engine::is_rooted(s.kind);
  if (from_root && s.root == group.rank() && call.out != call.in) {
    core::copy(call.out, call.in, bytes, core::Stores::kCached);
  }
  group.begin_sharing(call);
  co_await meet(group, call, 1);

  const auto n = static_cast<std::size_t>(group.size());
  auto* out = static_cast<std::byte*>(call.out);
  const auto fetch = [&](std::byte* to, const std::byte* from, std::size_t total) {
    if (to != from) core::copy(to, from, bytes, stores_for(total));
  };
  if (from_root) {
    if (s.root != group.rank()) fetch(out, group.peer_out(s.root, call, bytes), bytes);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % n;
      fetch(out + peer * bytes, group.peer_in(static_cast<int>(peer), call, bytes), n * bytes);
    }
  }
  co_await meet(group, call, 2);
  group.saw_everybody(call);
}

// An all_to_all in rounds, each of which moves a piece of every part. A rank that works in place
// keeps the data of a round in scratch memory until all ranks have read the pieces of the round. So
// no rank needs to know which ranks work in place.
Task symmetric_swap(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  const auto n = static_cast<std::size_t>(group.size());
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t piece =
      std::max<std::size_t>(1, kSwapBytes / n / control::kCacheLine) * control::kCacheLine;
  const bool in_place = call.out == call.in;
  const algorithm::Scratch kept(in_place ? n * std::min(bytes, piece) : 0);
  auto* const out = static_cast<std::byte*>(call.out);
  const auto rank = static_cast<std::size_t>(group.rank());
  const std::size_t mine = rank * bytes;
  const core::Stores stores = stores_for(n * bytes);
  co_await until([&] { return group.may_write(call); });
  group.begin_sharing(call);
  co_await meet(group, call, 1);

  const std::uint64_t rounds = steps_for(bytes, piece);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const StepRange range = range_of(round, piece, bytes);
    for (std::size_t i = in_place ? 1 : 0; i < n; ++i) {  // in place, this rank's own part stays
      const std::size_t peer = (rank + i) % n;
      std::byte* const to =
          in_place ? kept.get() + peer * range.length : out + peer * bytes + range.first;
      const std::byte* const from = group.peer_in(static_cast<int>(peer), call, mine + bytes);
      core::copy(
          to, from + mine + range.first, range.length, in_place ? core::Stores::kCached : stores);
    }
    co_await meet(group, call, round + 2);
    for (std::size_t i = 1; in_place && i < n; ++i) {
      const std::size_t peer = (rank + i) % n;
      core::copy(
          out + peer * bytes + range.first, kept.get() + peer * range.length, range.length, stores);
    }
  }
  group.saw_everybody(call);
}

}  // namespace hocket::engines::shm
