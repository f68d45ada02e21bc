// Reductions of arrays that all ranks expose; see exposure.h. Each rank reduces one part of all
// arrays, block by block, and reads the peers' blocks through the kernel. The data is combined in
// ascending rank order.
#include <array>
#include <cerrno>
#include <optional>

#include "engines/algorithm/scratch.h"
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"
#include "foundation/os/process/process_memory.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Task;
using engine::until;

namespace {

// A block is kBlock bytes of each rank's array, or fewer if all blocks together would exceed
// kAllBlocks. A block is long enough for an efficient read. All ranks' blocks stay in a core's
// private cache.
constexpr std::size_t kBlock = std::size_t{32} << 10;
constexpr std::size_t kAllBlocks = std::size_t{512} << 10;
// A result of this size in bytes does not stay in a core's cache beside the input. So the rank
// writes it past the caches.
constexpr std::size_t kStreamFrom = std::size_t{4} << 20;
// Bytes of the result that each rank computes in one step. They must fit into a chunk.
constexpr std::size_t kStepPart = std::size_t{64} << 10;

std::size_t block_bytes(int size) {
  const std::size_t share = kAllBlocks / static_cast<std::size_t>(size) / 4096 * 4096;
  return std::clamp<std::size_t>(share, 4096, kBlock);
}

// Reads and reduces the blocks of all ranks' arrays at one position. Owned by one task.
class Blocks {
 public:
  Blocks(ShmGroup& group, const Call& call)
      : group_(group), call_(call), length_(block_bytes(group.size())) {
    memory_ = algorithm::Scratch(length_ * static_cast<std::size_t>(group.size()));
  }

  std::size_t length() const { return length_; }  // bytes
  struct Unreadable {
    int peer;
    int error;
  };
  // Reads `bytes` bytes of all peers' arrays from `offset`; see read_exposed. Returns the first
  // peer whose array cannot be read.
  std::optional<Unreadable> read(std::size_t offset, std::size_t bytes) {
    for (int i = 1; i < group_.size(); ++i) {
      const int peer = (group_.rank() + i) % group_.size();
      std::byte* const to = memory_.get() + length_ * static_cast<std::size_t>(peer);
      group_.sources()[peer] = to;
      const int error = group_.read(*group_.exposed(peer, call_), to, offset, bytes);
      if (error != 0) return Unreadable{peer, error};
    }
    return std::nullopt;
  }
  void reduce(std::span<void* const> outs, std::size_t offset, std::size_t bytes) {
    group_.sources()[group_.rank()] = static_cast<const std::byte*>(call_.in) + offset;
    group_.kernel(call_, core::Stores::kCached)(outs.data(),
                                                static_cast<int>(outs.size()),
                                                group_.sources(),
                                                group_.size(),
                                                bytes / size_of(call_.signature.dtype),
                                                group_.size());
  }

 private:
  ShmGroup& group_;
  const Call& call_;
  std::size_t length_;
  algorithm::Scratch memory_;
};

// Exposes `bytes` bytes of this rank's input. If the kernel cannot read the input for peers,
// exposes a copy instead, which `kept` holds. If `output` is not null, exposes it, too.
void expose(ShmGroup& group,
            const Call& call,
            std::size_t bytes,
            algorithm::Scratch& kept,
            std::byte* output = nullptr) {
  const void* array = call.in;
  if (!os::others_may_read(array, bytes)) {
    kept = algorithm::Scratch(bytes);
    core::copy(kept.get(), array, bytes, core::Stores::kCached);
    array = kept.get();
  }
  group.begin_staging(call);
  group.expose(call, array);
  if (output != nullptr) group.expose_output(call, output);
  group.stage(call, 1);
}

// Waits until every peer has exposed its array, and compares the calls.
Task meet(ShmGroup& group, const Call& call) {
  for (int i = 1; i < group.size(); ++i) {
    const int peer = (group.rank() + i) % group.size();
    if (!group.staged(peer, call, 1)) {
      co_await until([&] { return group.staged(peer, call, 1); });
    }
    group.check_staged(peer, call);
    if (!group.exposed(peer, call)) co_await give_up_reading(peer, ESRCH);
  }
}

}  // namespace

// An all_reduce or a reduce, in steps. In each step every rank reduces its part, and gives the
// result to the other ranks through its chunk.
Task exposed_reduce(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  algorithm::Scratch kept;
  const Exposing exposing(group);
  const int size = group.size();
  const int rank = group.rank();
  const std::size_t element = size_of(call.signature.dtype);
  const std::size_t bytes = bytes_of(call.signature);
  const std::size_t step_bytes = kStepPart * static_cast<std::size_t>(size);
  const std::uint64_t steps = steps_for(bytes, step_bytes);
  const bool takes = receives(group, call);
  const core::Stores stores =
      bytes >= kStreamFrom ? core::Stores::kStreaming : core::Stores::kCached;
  auto* const out = static_cast<std::byte*>(call.out);
  Blocks blocks(group, call);

  co_await until([&] { return group.may_write(call); });
  expose(group, call, bytes, kept);
  co_await meet(group, call);
  for (std::uint64_t k = 0; k < steps; ++k) {
    if (k >= kChunks) co_await until([&] { return group.all_done(call, k - kChunks + 1); });
    const StepRange range = range_of(k, step_bytes, bytes);
    const auto part_bytes = [&](int part) {
      const StepRange p = part_of(part, size, range.length / element, element);
      return StepRange{range.first + p.first * element, p.length * element};
    };
    const StepRange mine = part_bytes(rank);
    std::byte* const results = group.chunk(rank, call.sequence, k);
    for (std::size_t done = 0; done < mine.length; done += blocks.length()) {
      const std::size_t at = mine.first + done;
      const std::size_t length = std::min(blocks.length(), mine.length - done);
      if (const auto failed = blocks.read(at, length)) {
        co_await give_up_reading(failed->peer, failed->error);
      }
      const std::array<void*, 2> outs{results + done, out + at};
      blocks.reduce(std::span(outs).first(takes ? 2 : 1), at, length);
    }
    group.reduced(call, k + 1);
    for (int i = 1; takes && i < size; ++i) {
      const int peer = (rank + i) % size;
      if (!group.is_reduced(peer, call, k + 1)) {
        co_await until([&] { return group.is_reduced(peer, call, k + 1); });
      }
      const StepRange part = part_bytes(peer);
      core::copy(out + part.first, group.chunk(peer, call.sequence, k), part.length, stores);
    }
    group.done(call, k + 1);
  }
  for (int peer = 0; peer < size; ++peer) {  // wait until the peer has read this rank's array
    if (peer == rank || group.is_reduced(peer, call, steps)) continue;
    co_await until([&] { return group.is_reduced(peer, call, steps); });
  }
  group.saw_everybody(call);
}

// A reduce. Each rank writes its part of the result to the root's array, block by block.
Task exposed_reduce_to_root(ShmGroup& group, Call call) {
  const CallScope scope(group, call);
  algorithm::Scratch kept;
  algorithm::Scratch staged;  // the root's result, if the kernel cannot write to its array
  const Exposing exposing(group);
  const int size = group.size();
  const int rank = group.rank();
  const int root = call.signature.root;
  const std::size_t element = size_of(call.signature.dtype);
  const std::size_t bytes = bytes_of(call.signature);
  auto* out = static_cast<std::byte*>(call.out);
  Blocks blocks(group, call);

  co_await until([&] { return group.may_write(call); });
  if (rank == root && !os::others_may_write(out, bytes)) {
    staged = algorithm::Scratch(bytes);
    out = staged.get();
  }
  expose(group, call, bytes, kept, rank == root ? out : nullptr);
  co_await meet(group, call);
  const auto target = group.exposed_output(root, call);
  if (rank != root && !target) co_await give_up_reading(root, ESRCH);
  const StepRange part = part_of(rank, size, bytes / element, element);
  const StepRange mine{part.first * element, part.length * element};
  std::byte* const result = group.chunk(rank, call.sequence, 0);
  for (std::size_t done = 0; done < mine.length; done += blocks.length()) {
    const std::size_t at = mine.first + done;
    const std::size_t length = std::min(blocks.length(), mine.length - done);
    if (const auto failed = blocks.read(at, length)) {
      co_await give_up_reading(failed->peer, failed->error);
    }
    void* const to = rank == root ? out + at : result;
    blocks.reduce({&to, 1}, at, length);
    if (rank == root) continue;
    const int error = group.write(*target, result, at, length);
    if (error != 0) co_await give_up_reading(root, error);
  }
  group.reduced(call, 1);
  // A peer reads this rank's array until it has written its part of the result.
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank || group.is_reduced(peer, call, 1)) continue;
    co_await until([&] { return group.is_reduced(peer, call, 1); });
  }
  if (staged.get() != nullptr) core::copy(call.out, out, bytes, stores_for(bytes));
  group.saw_everybody(call);
}

Task exposed_reduce_scatter(ShmGroup& group, Call call) {
  const CallScope turn(group, call);
  algorithm::Scratch kept;
  const Exposing exposing(group);
  const int size = group.size();
  const int rank = group.rank();
  const ShmParts parts = parts_of(call);
  std::size_t total = 0;
  for (int peer = 0; peer < size; ++peer) {
    total = std::max(total, parts.offset(peer) + parts.bytes(peer));
  }
  const auto* const in = static_cast<const std::byte*>(call.in);
  const std::size_t own = parts.bytes(rank);
  // A result that lies in this rank's input would overwrite data that peers have not read yet.
  const bool in_place = call.out >= in && call.out < in + total;
  const algorithm::Scratch result(in_place ? own : 0);
  std::byte* const out = in_place ? result.get() : static_cast<std::byte*>(call.out);
  Blocks blocks(group, call);

  co_await until([&] { return group.may_write(call); });
  expose(group, call, total, kept);
  co_await meet(group, call);
  for (std::size_t done = 0; done < own; done += blocks.length()) {
    const std::size_t at = parts.offset(rank) + done;
    const std::size_t length = std::min(blocks.length(), own - done);
    if (const auto failed = blocks.read(at, length)) {
      co_await give_up_reading(failed->peer, failed->error);
    }
    void* const to = out + done;
    blocks.reduce({&to, 1}, at, length);
  }
  group.done(call, ShmGroup::kAllChunks);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank || group.has_done(peer, call, 1)) continue;
    co_await until([&] { return group.has_done(peer, call, 1); });
  }
  if (in_place) core::copy(call.out, out, own, stores_for(own));
  group.saw_everybody(call);
}

}  // namespace hocket::engines::shm
