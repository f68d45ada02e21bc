// What a kernel is told: the group's memory and one call on it. A value, passed by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// An array and how it is cut. Both ends of a link cut alike, as the cut follows from the bytes.
//
// As vectors: `unit` of them, channel c has [c * kSmallThreads, (c + 1) * kSmallThreads).
// As packets: channel c < channels has groups [c * unit, (c + 1) * unit), kGroupsOfSlot a round.
// As chunks: chunk i, of `unit` bytes, is of channel i % channels and round i / channels.
struct Part {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t unit = 0;
  std::uint32_t channels = 0;
};

// Where a lane's links are, in the staging areas as mapped here. All arrays are by peer, and of
// channel 0. The same for all calls.
struct LaneParams {
  Link* here = nullptr;         // this rank's links; that of peer j is here[j]
  Link* there[kMaxPeers] = {};  // the peers' links with this rank
  std::byte* packets_to[kMaxPeers] = {};
  std::byte* packets_from[kMaxPeers] = {};
  std::byte* chunks_to[kMaxPeers] = {};
  std::byte* chunks_from[kMaxPeers] = {};
  std::uint32_t* dead = nullptr;  // Header::dead
  HostWords* host = nullptr;
  std::uint64_t limit_ns = 0;  // how long anything is waited for; 0: for ever
  std::uint32_t packet_stride = 0;
  std::uint32_t chunk_stride = 0;
  std::uint32_t chunk_bytes = 0;  // of a slot
  std::uint32_t chunk_slots = 1;
  std::uint32_t rank = 0;
  std::uint32_t peers = 0;
};

struct Params : LaneParams {
  // Exchanges: what goes to each peer and comes from it; `kept` is copied to `kept_to`.
  // Reductions: send[j] is this rank's data of the part that peer j reduces, `kept` of the part
  // that it reduces itself; receive[j] is where peer j's result is wanted, kept_to where the own
  // one is.
  Part send[kMaxPeers] = {};
  Part receive[kMaxPeers] = {};
  Part kept;
  Part kept_to;
  // Where peers' arrays are entered directly: the peer's address of what it receives from here.
  std::byte* direct[kMaxPeers] = {};
  std::uint32_t rounds = 0;   // the most of any part in any channel
  std::uint32_t groups = 0;   // packets: the most groups of any part in a round
  std::uint32_t same = 0;     // not 0: all of `send` are one array
  std::uint32_t enter = 0;    // not 0: `direct` is used
  std::uint32_t forward = 0;  // a bit a peer that wants the result of this rank's part
  // Whose data a part is made of: a bit a peer; and not 0: this rank's too.
  std::uint32_t sources = 0;
  std::uint32_t own_source = 0;
  FoldCode fold;
};
// Kernels take 4 KiB of parameters.
static_assert(sizeof(Params) <= 1024);

// The number of a rank among the peers of another.
constexpr int peer_number(int rank, int among) noexcept { return rank < among ? rank : rank - 1; }
constexpr int rank_of_peer(int peer, int among) noexcept { return peer < among ? peer : peer + 1; }

}  // namespace hocket::engines::peer
