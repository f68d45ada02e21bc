#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

// A rank posts the receives of all chunks at the beginning, because each chunk has its own position
// in the array. It forwards each chunk when the chunk has arrived.
engine::Task tree_broadcast(
    Endpoint at, Whole array, int root, TreeShape shape, std::size_t chunk_bytes) {
  const int number = wrap(at.rank() - root, at.size());
  const TreePlace place_in_tree = tree_place(shape, number, at.size());
  const std::span<std::byte> out{array.out, array.bytes};
  const std::size_t chunk = whole_elements(chunk_bytes, at.element());
  const std::size_t chunks = messages_for(array.bytes, chunk);
  const auto chunk_of = [&](std::size_t i) {
    const Range range = piece({0, array.bytes}, chunk, i);
    return out.subspan(range.first, range.length);
  };
  std::vector<Message> coming;
  std::vector<Message> going;
  if (number == 0) {
    place(out, {array.in, array.bytes});
  } else {
    const int parent = wrap(place_in_tree.parent + root, at.size());
    coming.reserve(chunks);
    for (std::size_t i = 0; i < chunks; ++i) coming.push_back(at.recv(parent, chunk_of(i)));
  }
  for (std::size_t i = 0; i < chunks; ++i) {
    if (number != 0) co_await at.completed(coming[i]);
    for (const int child : place_in_tree.children) {
      going.push_back(at.send(wrap(child + root, at.size()), chunk_of(i)));
    }
  }
  co_await at.completed(going);
}

}  // namespace hocket::algorithm
