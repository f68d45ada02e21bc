#include <algorithm>
#include <array>
#include <utility>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/partial.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

// Number of chunks in progress: one chunk arrives, one is reduced, and one is sent.
constexpr std::size_t kScanDepth = 3;

// The memory and messages of one chunk in progress on this rank. A resource of one task.
struct ScanStage {
  std::byte* before = nullptr;  // the combined data of all ranks before this one
  std::byte* upto = nullptr;    // the combined data of all ranks up to this one
  Message coming;
  Message going;
};

}  // namespace

engine::Task gathered_scan(Endpoint at, Reduction reduction, Whole array) {
  const auto n = static_cast<std::size_t>(at.size());
  const Scratch blocks(n * array.bytes);
  place({blocks.get(), array.bytes}, {array.in, array.bytes});
  co_await bruck_all_gather(at, blocks.get(), array.bytes);
  if (array.out == nullptr) co_return;
  std::vector<const void*> sources(static_cast<std::size_t>(reduction.ranks));
  for (int rank = 0; rank < reduction.ranks; ++rank) {
    const auto ahead = static_cast<std::size_t>(wrap(rank - at.rank(), at.size()));
    sources[static_cast<std::size_t>(rank)] = blocks.get() + ahead * array.bytes;
  }
  reduction(array.out, sources, array.bytes);
}

// Handles the array in chunks. Chunk i uses stage i modulo kScanDepth.
engine::Task chain_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix) {
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const bool hears = at.rank() > 0;
  const bool tells = at.rank() + 1 < at.size();
  const bool exclusive = prefix == engine::Prefix::kExclusive;
  const std::size_t count = array.bytes / at.element();
  const std::size_t chunk =
      std::min(std::max<std::size_t>(count, 1),
               whole_elements(reduction.chunk_bytes, at.element()) / at.element());
  const std::size_t chunks = messages_for(count, chunk);
  const std::size_t lane = chunk * partial.element();
  const Scratch memory(2 * kScanDepth * lane);
  std::array<ScanStage, kScanDepth> stages;
  std::byte* next = memory.get();
  for (ScanStage& stage : stages) {
    stage.before = std::exchange(next, next + lane);
    stage.upto = std::exchange(next, next + lane);
  }
  const auto post = [&](std::size_t i) {
    if (!hears || i >= chunks) return;
    const std::size_t bytes = piece({0, count}, chunk, i).length * partial.element();
    ScanStage& stage = stages[i % kScanDepth];
    stage.coming = partly.recv(at.rank() - 1, {stage.before, bytes});
  };
  for (std::size_t i = 0; i + 1 < kScanDepth; ++i) post(i);
  for (std::size_t i = 0; i < chunks; ++i) {
    const Range range = piece({0, count}, chunk, i);
    ScanStage& stage = stages[i % kScanDepth];
    post(i + kScanDepth - 1);
    // `going` is the send of the stage's previous chunk, `coming` the receive of this chunk.
    co_await partly.completed(stage.going, stage.coming);
    if (tells || !exclusive) {
      partial.load(stage.upto, array.in + range.first * at.element(), range.length);
      if (hears) partial.fold(stage.upto, stage.before, stage.upto, range.length);
    }
    if (array.out != nullptr) {
      partial.finish(array.out + range.first * at.element(),
                     exclusive ? stage.before : stage.upto,
                     range.length);
    }
    if (tells) {
      stage.going = partly.send(at.rank() + 1, {stage.upto, range.length * partial.element()});
    }
  }
  for (ScanStage& stage : stages) co_await partly.completed(stage.going);
}

// After the round of distance d, `upto` combines the data of the last 2 d ranks up to this rank. If
// there are fewer ranks, it combines all of them. `before` combines the same ranks except this
// rank.
engine::Task doubling_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix) {
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const bool exclusive = prefix == engine::Prefix::kExclusive;
  const std::size_t count = array.bytes / at.element();
  const std::size_t bytes = count * partial.element();
  const Scratch memory((exclusive ? 3 : 2) * bytes);
  std::byte* upto = memory.get();
  std::byte* theirs = upto + bytes;
  std::byte* before = exclusive ? theirs + bytes : nullptr;
  partial.load(upto, array.in, count);
  for (int distance = 1; distance < at.size(); distance *= 2) {
    const bool hears = at.rank() >= distance;
    Message in, sent;
    if (hears) in = partly.recv(at.rank() - distance, {theirs, bytes});
    if (at.rank() + distance < at.size()) {
      sent = partly.send(at.rank() + distance, {upto, bytes});
    }
    co_await partly.completed(in, sent);
    if (!hears) continue;
    partial.fold(upto, theirs, upto, count);
    if (exclusive && distance > 1) partial.fold(before, theirs, before, count);
    if (exclusive && distance == 1) std::swap(before, theirs);
  }
  if (array.out != nullptr) partial.finish(array.out, exclusive ? before : upto, count);
}

}  // namespace hocket::algorithm
