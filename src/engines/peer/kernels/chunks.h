// Chunks: pieces of large arrays. All threads of a block move a chunk together.
#pragma once

#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

// The bytes of a part that one channel moves in one round. `first` is a multiple of kVectorBytes. A
// stretch may be empty.
struct Stretch {
  std::uint64_t first = 0;
  std::uint32_t bytes = 0;
};
HOCKET_ANYWHERE Stretch stretch_of(const CutArray& part, int channel, std::uint32_t round) {
  const auto c = static_cast<std::uint32_t>(channel);
  if (c >= part.channels) return {};
  const std::uint64_t first = (static_cast<std::uint64_t>(round) * part.channels + c) * part.unit;
  if (first >= part.bytes) return {};
  const std::uint64_t left = part.bytes - first;
  return {first, left < part.unit ? static_cast<std::uint32_t>(left) : part.unit};
}

// Number of vectors that a thread keeps in flight.
inline constexpr int kUnderWay = 8;

// The threads of a block that move the same chunk. `thread` is this thread's number among the
// `threads` threads of the team. A value.
struct Team {
  std::uint32_t thread = 0;
  std::uint32_t threads = 1;
};
// Returns the team of all threads of a block.
template <typename Machine>
HOCKET_ANYWHERE Team whole(const Machine& m) {
  return {static_cast<std::uint32_t>(m.thread()), static_cast<std::uint32_t>(m.threads())};
}

// Calls act(move, team) for each moves[j] that is not empty. There is one move for each peer j. On
// a GPU the block's warps divide the moves among themselves. So the accesses to all peers' memory
// are in flight at the same time.
template <typename Machine, typename Act>
HOCKET_ANYWHERE void for_moves(const Block<Machine>& block, const Move* moves, const Act& act) {
  const int peers = block.p.peers;
  if constexpr (!Machine::kWide) {
    for (int j = 0; j < peers; ++j) {
      if (moves[j].bytes > 0) act(moves[j], whole(block.m));
    }
  } else {
    std::uint32_t count = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kMaxPeers; ++j) count += j < peers && moves[j].bytes > 0 ? 1 : 0;
    if (count == 0) return;
    const Team all = whole(block.m);
    const std::uint32_t warp = all.thread / kLanesOfGroup, warps = all.threads / kLanesOfGroup;
    const std::uint32_t turn = warp % count;
    int mine = 0;
    std::uint32_t before = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kMaxPeers; ++j) {
      if (j >= peers || moves[j].bytes == 0) continue;
      if (before++ == turn) mine = j;
    }
    act(moves[mine],
        Team{warp / count * kLanesOfGroup + all.thread % kLanesOfGroup,
             (warps - turn + count - 1) / count * kLanesOfGroup});
  }
}

// Calls store(i, load(i)) for each vector i of `bytes` bytes. Works in batches, so that many loads
// are in flight.
template <typename Load, typename Store>
HOCKET_ANYWHERE void for_vectors(Team team,
                                 std::uint32_t bytes,
                                 const Load& load,
                                 const Store& store) {
  const auto vectors = static_cast<std::uint32_t>(vectors_in(bytes));
  for (std::uint32_t i = team.thread; i < vectors; i += kUnderWay * team.threads) {
    Vector v[kUnderWay];
    HOCKET_UNROLL
    for (std::uint32_t u = 0; u < kUnderWay; ++u) {
      if (i + u * team.threads < vectors) v[u] = load(i + u * team.threads);
    }
    HOCKET_UNROLL
    for (std::uint32_t u = 0; u < kUnderWay; ++u) {
      if (i + u * team.threads < vectors) store(i + u * team.threads, v[u]);
    }
  }
}

// Calls `act` with a function that loads vectors of a user's array, or stores vectors to it.
// Aligned and unaligned arrays have separate functions.
template <typename Act>
HOCKET_ANYWHERE void with_loads(const std::byte* from, std::uint32_t bytes, const Act& act) {
  if (is_plain(from, bytes)) {
    act([&](std::uint32_t i) {
      return load_aligned<Vector>(from + std::uint64_t{i} * kVectorBytes);
    });
  } else {
    act([&](std::uint32_t i) { return load_vector(from, bytes, i); });
  }
}
template <typename Act>
HOCKET_ANYWHERE void with_stores(std::byte* to, std::uint32_t bytes, const Act& act) {
  if (is_plain(to, bytes)) {
    act([&](std::uint32_t i, const Vector& v) {
      store_aligned(to + std::uint64_t{i} * kVectorBytes, v);
    });
  } else {
    act([&](std::uint32_t i, const Vector& v) { store_vector(to, bytes, i, v); });
  }
}

// Copy a chunk: from a user's array to a slot (put), from a slot to a user's array (take), and
// between users' arrays (copy).
template <typename Machine>
HOCKET_ANYWHERE void put_chunk(Machine& m, Team team, const Move& move) {
  with_loads(move.from, move.bytes, [&](const auto& load) {
    for_vectors(team, move.bytes, load, [&](std::uint32_t i, const Vector& v) {
      m.store_staged(move.to + std::uint64_t{i} * kVectorBytes, v);
    });
  });
}
template <typename Machine>
HOCKET_ANYWHERE void take_chunk(Machine& m, Team team, const Move& move) {
  const auto load = [&](std::uint32_t i) {
    return m.load_staged(move.from + std::uint64_t{i} * kVectorBytes);
  };
  with_stores(
      move.to, move.bytes, [&](const auto& store) { for_vectors(team, move.bytes, load, store); });
}
HOCKET_ANYWHERE void copy_chunk(Team team, const Move& move) {
  if (is_plain(move.from, move.bytes) && is_plain(move.to, move.bytes)) {
    for_vectors(
        team,
        move.bytes,
        [&](std::uint32_t i) {
          return load_aligned<Vector>(move.from + std::uint64_t{i} * kVectorBytes);
        },
        [&](std::uint32_t i, const Vector& v) {
          store_aligned(move.to + std::uint64_t{i} * kVectorBytes, v);
        });
  } else {
    for_vectors(
        team,
        move.bytes,
        [&](std::uint32_t i) { return load_vector(move.from, move.bytes, i); },
        [&](std::uint32_t i, const Vector& v) { store_vector(move.to, move.bytes, i, v); });
  }
}

}  // namespace hocket::engines::peer
