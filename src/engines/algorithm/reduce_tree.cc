#include <array>
#include <utility>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/partial.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

// Number of chunks in progress: one chunk arrives, one is reduced, and one is sent.
constexpr std::size_t kTreeDepth = 3;

// The memory and messages of one chunk in progress on this rank. A resource of one task.
struct TreeStage {
  std::vector<std::byte*> from;  // for the partial results of each child
  std::vector<Message> coming;   // the receive from each child
  std::byte* sum = nullptr;      // for this rank's partial result
  Message going;                 // the send to the parent
};

}  // namespace

// Reduces the array in chunks. Chunk i uses stage i modulo kTreeDepth.
//
//   stage 0   chunk 0   chunk 3   ...
//   stage 1   chunk 1   chunk 4
//   stage 2   chunk 2   chunk 5
engine::Task tree_reduce(Endpoint at,
                         Reduction reduction,
                         Whole array,
                         int root,
                         TreeShape shape,
                         std::size_t chunk_bytes) {
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const int number = wrap(at.rank() - root, at.size());
  const TreePlace in_tree = tree_place(shape, number, at.size());
  const std::size_t count = array.bytes / at.element();
  const std::size_t chunk = std::min(std::max<std::size_t>(count, 1),
                                     whole_elements(chunk_bytes, at.element()) / at.element());
  const std::size_t chunks = messages_for(count, chunk);
  const std::size_t lane = chunk * partial.element();
  const auto lanes = in_tree.children.size() + 1;
  const Scratch memory(kTreeDepth * lanes * lane);
  std::array<TreeStage, kTreeDepth> stages;
  std::byte* next = memory.get();
  for (TreeStage& stage : stages) {
    stage.sum = std::exchange(next, next + lane);
    for (std::size_t c = 0; c + 1 < lanes; ++c)
      stage.from.push_back(std::exchange(next, next + lane));
    stage.coming.resize(lanes - 1);
  }
  const auto post = [&](std::size_t i) {
    if (i >= chunks) return;
    const std::size_t bytes = piece({0, count}, chunk, i).length * partial.element();
    TreeStage& stage = stages[i % kTreeDepth];
    for (std::size_t c = 0; c + 1 < lanes; ++c) {
      const int child = wrap(in_tree.children[c] + root, at.size());
      stage.coming[c] = partly.recv(child, {stage.from[c], bytes});
    }
  };
  for (std::size_t i = 0; i + 1 < kTreeDepth; ++i) post(i);
  for (std::size_t i = 0; i < chunks; ++i) {
    const Range range = piece({0, count}, chunk, i);
    TreeStage& stage = stages[i % kTreeDepth];
    post(i + kTreeDepth - 1);
    co_await partly.completed(stage.going);  // the send of the stage's previous chunk
    const std::byte* own = array.in + range.first * at.element();
    // If the array's elements already are partial results, the first fold reads them directly from
    // the array.
    const std::byte* so_far = own;
    if (!partial.is_plain()) {
      partial.load(stage.sum, own, range.length);
      so_far = stage.sum;
    }
    for (std::size_t c = lanes - 1; c-- > 0;) {  // the child with the smallest subtree comes first
      co_await partly.completed(stage.coming[c]);
      partial.fold(stage.sum, so_far, stage.from[c], range.length);
      so_far = stage.sum;
    }
    if (number == 0) {
      partial.finish(array.out + range.first * at.element(), so_far, range.length);
    } else {
      const int parent = wrap(in_tree.parent + root, at.size());
      stage.going = partly.send(parent, {so_far, range.length * partial.element()});
    }
  }
  for (TreeStage& stage : stages) co_await partly.completed(stage.going);
}

}  // namespace hocket::algorithm
