#include "engines/movement/moves.h"

#include <algorithm>

namespace hocket::movement {

using engine::Call;
using engine::DeviceMessage;
using engine::Flow;
using engine::Has;
using engine::Part;
using Way = engine::DeviceMessage::Way;

namespace {

// Limit of the messages in one round, in each direction.
constexpr int kAtOnce = 32;
// Alignment of the pieces of a broadcast in bytes, because GPUs move whole cache lines.
constexpr std::size_t kLine = 512;

// Returns the piece of a broadcast of `bytes` bytes that the root sends to its receiver `number`.
Part piece_of(std::size_t bytes, int number, int receivers) {
  const std::size_t n = static_cast<std::size_t>(receivers);
  const std::size_t each = ((bytes + n - 1) / n + kLine - 1) / kLine * kLine;
  const std::size_t first = std::min(bytes, each * static_cast<std::size_t>(number));
  return {first, std::min(each, bytes - first)};
}

// Plans the moves of one rank in a call.
class Builder {
 public:
  Builder(const Call& call, int rank, int size)
      : call_(call),
        rank_(rank),
        size_(size),
        in_(const_cast<std::byte*>(static_cast<const std::byte*>(call.in))),
        out_(static_cast<std::byte*>(call.out)) {}

  Moves build() {
    const engine::KindRow& row = engine::row_of(call_.signature.kind);
    switch (row.flow) {
      case Flow::kFromRoot:
        row.gives == Has::kAll ? scatter() : broadcast();
        break;
      case Flow::kToRoot:
        gather();
        break;
      case Flow::kAmongAll:
        exchange();
        break;
      case Flow::kBetweenTwo:
        break;
    }
    std::erase_if(moves_.rounds, [](const auto& round) { return round.empty(); });
    if (moves_.own.to == moves_.own.from) moves_.own = {};
    return std::move(moves_);
  }

 private:
  bool is_root() const noexcept { return rank_ == call_.signature.root; }
  std::vector<DeviceMessage>& round() { return moves_.rounds.emplace_back(); }
  static void add(
      std::vector<DeviceMessage>& round, Way way, int peer, std::byte* data, std::size_t bytes) {
    if (bytes != 0) round.push_back({way, peer, data, bytes});
  }

  // The root sends a different piece to each other rank. Then these ranks exchange the pieces. So
  // the root sends the array only once.
  void broadcast() {
    const int root = call_.signature.root;
    const std::size_t bytes = bytes_of(call_.signature);
    const auto number = [&](int rank) { return (rank - root - 1 + size_) % size_; };
    const auto piece = [&](int rank) { return piece_of(bytes, number(rank), size_ - 1); };
    auto& first = round();
    if (is_root()) {
      moves_.own = {out_, in_, bytes};
      for (int i = 1; i < size_; ++i) {
        const int peer = (root + i) % size_;
        add(first, Way::kSend, peer, in_ + piece(peer).offset, piece(peer).bytes);
      }
      return;
    }
    const Part own = piece(rank_);
    add(first, Way::kReceive, root, out_ + own.offset, own.bytes);
    auto& second = round();
    for (int i = 1; i < size_; ++i) {
      const int from = (rank_ - i + size_) % size_;
      const int to = (rank_ + i) % size_;
      if (from != root) {
        add(second, Way::kReceive, from, out_ + piece(from).offset, piece(from).bytes);
      }
      if (to != root) add(second, Way::kSend, to, out_ + own.offset, own.bytes);
    }
  }

  void gather() {
    auto& only = round();
    if (!is_root()) return add(only, Way::kSend, call_.signature.root, in_, own_bytes(call_));
    for (int peer = 0; peer < size_; ++peer) {
      const Part part = part_of(call_, call_.out_parts, peer);
      if (peer == rank_) {
        moves_.own = {out_ + part.offset, in_, part.bytes};
      } else {
        add(only, Way::kReceive, peer, out_ + part.offset, part.bytes);
      }
    }
  }

  void scatter() {
    auto& only = round();
    if (!is_root()) return add(only, Way::kReceive, call_.signature.root, out_, own_bytes(call_));
    for (int peer = 0; peer < size_; ++peer) {
      const Part part = part_of(call_, call_.in_parts, peer);
      if (peer == rank_) {
        moves_.own = {out_, in_ + part.offset, part.bytes};
      } else {
        add(only, Way::kSend, peer, in_ + part.offset, part.bytes);
      }
    }
  }

  // Plans all_gather and all_to_all: each rank exchanges data with every rank. Each rank begins
  // with a different peer.
  void exchange() {
    const bool same = engine::row_of(call_.signature.kind).gives == Has::kShare;
    const auto sent = [&](int peer) {
      return same ? Part{0, own_bytes(call_)} : part_of(call_, call_.in_parts, peer);
    };
    const auto received = [&](int peer) { return part_of(call_, call_.out_parts, peer); };
    moves_.own = {out_ + received(rank_).offset, in_ + sent(rank_).offset, received(rank_).bytes};
    for (int first = 1; first < size_; first += kAtOnce) {
      auto& one = round();
      for (int i = first; i < std::min(first + kAtOnce, size_); ++i) {
        const int from = (rank_ - i + size_) % size_;
        const int to = (rank_ + i) % size_;
        add(one, Way::kReceive, from, out_ + received(from).offset, received(from).bytes);
        add(one, Way::kSend, to, in_ + sent(to).offset, sent(to).bytes);
      }
    }
  }

  const Call& call_;
  int rank_;
  int size_;
  std::byte* in_;
  std::byte* out_;
  Moves moves_;
};

}  // namespace

Moves moves_of(const Call& call, int rank, int size) { return Builder(call, rank, size).build(); }

}  // namespace hocket::movement
