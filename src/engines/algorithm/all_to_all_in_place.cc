#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

// Exchanges parts of equal length with a peer, in pieces. A piece is copied to `copy` before it is
// sent, because the peer's piece takes its place. Both ranks divide the part into the same pieces.
engine::Task swap_part(Endpoint at,
                       int peer,
                       std::span<std::byte> part,
                       std::span<std::byte> copy) {
  for (std::size_t i = 0; i < messages_for(part.size(), copy.size()); ++i) {
    const Range range = piece({0, part.size()}, copy.size(), i);
    const std::span<std::byte> ours = part.subspan(range.first, range.length);
    const std::span<std::byte> kept = copy.first(range.length);
    place(kept, ours);
    Message received = at.recv(peer, ours);
    Message sent = at.send(peer, kept);
    co_await at.completed(received, sent);
  }
}

}  // namespace

engine::Task in_place_all_to_all(Endpoint at, Array inout, std::size_t scratch_bytes) {
  const std::size_t size = whole_elements(scratch_bytes, at.element());
  const Scratch memory(size);
  const std::span<std::byte> kept{memory.get(), size};
  for (int round = 0; round < rounds_of(at.size()); ++round) {
    const int peer = partner(at.rank(), round, at.size());
    if (peer != at.rank()) co_await swap_part(at, peer, inout.part(peer), kept);
  }
}

}  // namespace hocket::algorithm
