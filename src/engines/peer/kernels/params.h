// The parameters of the kernels: the group's memory and the data of one call. They are values, and
// a launch passes them by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// An array and its division among channels and rounds. Both ends of a link divide in the same way;
// see cuts.h.
//
// As packets: channel c < channels moves the groups [c * unit, (c + 1) * unit), kGroupsOfSlot of
// them in each round. As chunks: chunk i has `unit` bytes; channel i % channels moves it in round
// i / channels.
//
//   packets   | channel 0: unit groups       | channel 1: unit groups       | ...
//             | round 0 | round 1 | ...      | round 0 | round 1 | ...      |
//   chunks    | channel 0 | channel 1 | ... | channel 0 | channel 1 | ... |
//             |<--------- round 0 --------->|<--------- round 1 --------->|
struct CutArray {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t unit = 0;
  std::uint32_t channels = 0;
};

// Convert between a rank and its number among the peers of another rank.
constexpr int peer_number(int rank, int among) noexcept { return rank < among ? rank : rank - 1; }
constexpr int rank_of_peer(int peer, int among) noexcept { return peer < among ? peer : peer + 1; }

// The parameters that are equal for all calls of a lane, above all the staging areas as this rank
// maps them. Kernels compute the addresses of links and slots when they need them. Passing the
// addresses would cost more: each cache line of parameters costs a tenth of the time of a small
// call.
struct LaneParams {
  std::byte* staging = nullptr;           // this rank's staging area
  std::byte* staging_of[kMaxPeers] = {};  // the peers' areas; unused entries repeat the last one
  HostWords* host = nullptr;
  std::uint64_t limit_ns = 0;  // time limit of each wait; 0: no limit
  std::uint8_t rank = 0;
  std::uint8_t peers = 0;
  std::uint8_t lane = kCollectives;
  std::uint8_t unused = 0;
  std::uint32_t call = 0;  // number of the call, for waiting_word. It is the last member, so that
                           // all compilers place the members of derived types alike.

  HOCKET_ANYWHERE int size() const { return peers + 1; }
  HOCKET_ANYWHERE Header* header() const { return reinterpret_cast<Header*>(staging); }
  HOCKET_ANYWHERE std::uint32_t* dead() const { return &header()->dead; }
  // Return this rank's link with peer j, and the peer's link with this rank.
  HOCKET_ANYWHERE Link* here(int on, int channel, int j) const {
    return reinterpret_cast<Link*>(staging + Layout::link(on, channel, j));
  }
  HOCKET_ANYWHERE Link* there(int on, int channel, int j) const {
    return reinterpret_cast<Link*>(staging_of[j] + Layout::link(on, channel, number_at(j)));
  }
  // Return the slot of a step to peer j, in the peer's staging area, and from peer j, in this
  // rank's area.
  HOCKET_ANYWHERE std::byte* packets_to(int channel, int j, std::uint64_t step) const {
    return staging_of[j] + Layout::packets(size(), lane, channel, number_at(j), step);
  }
  HOCKET_ANYWHERE std::byte* packets_from(int channel, int j, std::uint64_t step) const {
    return staging + Layout::packets(size(), lane, channel, j, step);
  }
  HOCKET_ANYWHERE std::byte* chunk_to(int on, int channel, int j, std::uint64_t step) const {
    return staging_of[j] + Layout::chunk(size(), on, channel, number_at(j), step);
  }
  HOCKET_ANYWHERE std::byte* chunk_from(int on, int channel, int j, std::uint64_t step) const {
    return staging + Layout::chunk(size(), on, channel, j, step);
  }

 private:
  // Returns this rank's number among the peers of peer j.
  HOCKET_ANYWHERE int number_at(int j) const { return j < rank ? rank - 1 : rank; }
};

// The number of blocks in each channel of a reduction by chunks whose results go to other ranks.
// One block sends, one reduces and forwards, and one collects results. A rank sends its data before
// results overwrite it.
inline constexpr std::uint32_t kWithResults = 3;

// The data of a small call to or from one peer, with one vector in each thread.
struct SmallPiece {
  std::byte* at = nullptr;
  std::uint32_t bytes = 0;
};

// The parameters of a small call whose pieces lie at equal distances. Such calls are all small
// calls except v-forms and launches with several messages. The parameters fill two cache lines.
struct SmallParams : LaneParams {
  FoldCode fold;
  // One bit for each peer that this rank sends to or receives from. In reductions a rank sends to
  // the ranks that reduce, and `receives` is not used: a rank that `keeps` receives from all peers.
  std::uint8_t sends = 0;
  std::uint8_t receives = 0;
  // In exchanges: this rank copies its own piece. In reductions: this rank reduces.
  std::uint8_t keeps = 0;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_bytes = 0, out_bytes = 0;    // bytes of one piece
  std::uint32_t in_stride = 0, out_stride = 0;  // bytes from one rank's piece to the next rank's;
                                                // 0: there is only one piece

  // Returns whether this rank sends the same data to all peers.
  HOCKET_ANYWHERE bool has_one_source() const { return in_stride == 0; }
  HOCKET_ANYWHERE SmallPiece source() const { return {in, in_bytes}; }
  // Returns the target of this rank's part of a reduction.
  HOCKET_ANYWHERE SmallPiece reduced() const { return {out, in_bytes}; }
  HOCKET_ANYWHERE SmallPiece piece_to(int j) const {
    const std::uint32_t bytes = (sends >> j & 1) != 0 ? in_bytes : 0;
    return {in + static_cast<std::size_t>(in_stride) * rank_at(j), bytes};
  }
  HOCKET_ANYWHERE SmallPiece piece_from(int j) const {
    const std::uint32_t bytes = (receives >> j & 1) != 0 ? out_bytes : 0;
    return {out + static_cast<std::size_t>(out_stride) * rank_at(j), bytes};
  }
  // Return the piece that this rank keeps, and the place to which it copies the piece.
  HOCKET_ANYWHERE SmallPiece own() const {
    return {in + static_cast<std::size_t>(in_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  HOCKET_ANYWHERE SmallPiece own_to() const {
    return {out + static_cast<std::size_t>(out_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  // Return one bit for each peer to which this rank gives data, or from which it takes data, at
  // byte `place` of the pieces.
  HOCKET_ANYWHERE std::uint32_t gives(std::uint32_t place) const {
    return place < in_bytes ? sends : 0u;
  }
  HOCKET_ANYWHERE std::uint32_t takes(std::uint32_t place) const {
    return place < out_bytes ? receives : 0u;
  }

 private:
  HOCKET_ANYWHERE unsigned rank_at(int j) const {
    return static_cast<unsigned>(rank_of_peer(j, rank));
  }
};
static_assert(sizeof(SmallParams) == 128);

// The parameters of a reduction of whole, aligned vectors in equal parts. Each rank reduces `part`
// vectors, and the last rank reduces the rest, which is not empty. All parts are divided alike:
// channel c moves the groups [c * unit, (c + 1) * unit) of each part, kGroupsOfSlot of them in each
// round.
struct EvenParams : LaneParams {
  FoldCode fold;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t vectors = 0;
  std::uint32_t part = 0;
  std::uint32_t unit = 0;
  // 2 in an all_reduce, in which the results go to all ranks. 1 in a reduce_scatter; `out` is then
  // the address of the result minus the offset of this rank's part.
  std::uint32_t hops = 0;

  HOCKET_ANYWHERE std::uint32_t rounds() const {
    return (unit + kGroupsOfSlot - 1) / kGroupsOfSlot;
  }
  HOCKET_ANYWHERE std::uint32_t part_of(int of) const {
    return of == static_cast<int>(peers) ? vectors - part * peers : part;
  }
};
static_assert(sizeof(EvenParams) == 128);

// The parameters of all other calls.
struct Params : LaneParams {
  // In exchanges: the data to and from each peer. This rank copies `kept` to `kept_to`.
  //
  // In reductions: send[j] is this rank's data for the part that peer j reduces, and `kept` its
  // data for the part that it reduces itself. receive[j] is the target for the result of peer j,
  // and `kept_to` the target for this rank's own result.
  CutArray send[kMaxPeers] = {};
  CutArray receive[kMaxPeers] = {};
  CutArray kept;
  CutArray kept_to;
  // If this rank writes directly into the peers' arrays: the address in the array of each peer for
  // the data from this rank.
  std::byte* direct[kMaxPeers] = {};
  std::uint32_t rounds = 0;   // largest number of rounds of any part in any channel
  std::uint32_t roles = 1;    // chunks: number of blocks in each channel, 1 to kWithResults
  std::uint32_t groups = 0;   // packets: largest number of groups of any part in a round
  std::uint32_t same = 0;     // not 0: all entries of `send` are the same array
  std::uint32_t enter = 0;    // not 0: results go directly to the peers' arrays, by `direct`
  std::uint32_t forward = 0;  // one bit for each peer that gets the result of this rank's part
  // The ranks whose data this rank combines in its part: one bit for each peer, and 1 if this rank
  // itself is a source.
  std::uint32_t sources = 0;
  std::uint32_t own_source = 0;
  FoldCode fold;

  // Return the data as pieces of a small call; see the functions of SmallParams.
  HOCKET_ANYWHERE bool has_one_source() const { return same != 0; }
  HOCKET_ANYWHERE SmallPiece source() const { return piece(send[0]); }
  HOCKET_ANYWHERE SmallPiece piece_to(int j) const { return piece(send[j]); }
  HOCKET_ANYWHERE SmallPiece piece_from(int j) const { return piece(receive[j]); }
  HOCKET_ANYWHERE SmallPiece own() const { return piece(kept); }
  HOCKET_ANYWHERE SmallPiece own_to() const { return piece(kept_to); }
  HOCKET_ANYWHERE std::uint32_t gives(std::uint32_t place) const { return with_more(send, place); }
  HOCKET_ANYWHERE std::uint32_t takes(std::uint32_t place) const {
    return with_more(receive, place);
  }

 private:
  static HOCKET_ANYWHERE SmallPiece piece(const CutArray& part) {
    return {part.at, static_cast<std::uint32_t>(part.bytes)};
  }
  static HOCKET_ANYWHERE std::uint32_t with_more(const CutArray (&parts)[kMaxPeers],
                                                 std::uint32_t than) {
    std::uint32_t peers = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kMaxPeers; ++j) peers |= parts[j].bytes > than ? 1u << j : 0u;
    return peers;
  }
};
// A kernel may have at most 4 KiB of parameters. The limit here is lower, because they cost time.
static_assert(sizeof(Params) <= 1024);

}  // namespace hocket::engines::peer
