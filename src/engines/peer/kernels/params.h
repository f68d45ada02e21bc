// What a kernel is told: the group's memory and one call on it. A value, passed by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// An array and how it is cut. Both ends of a link cut alike, as the cut follows from the bytes.
//
// As packets: channel c < channels has groups [c * unit, (c + 1) * unit), kGroupsOfSlot a round.
// As chunks: chunk i, of `unit` bytes, is of channel i % channels and round i / channels.
struct CutArray {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t unit = 0;
  std::uint32_t channels = 0;
};

// The number of a rank among the peers of another.
constexpr int peer_number(int rank, int among) noexcept { return rank < among ? rank : rank - 1; }
constexpr int rank_of_peer(int peer, int among) noexcept { return peer < among ? peer : peer + 1; }

// Where a lane's links are, in the staging areas as mapped here; the same for all calls. Addresses
// are worked out where they are needed: each cache line of parameters that a kernel reads costs a
// tenth of a small call.
struct LaneParams {
  std::byte* staging = nullptr;  // this rank's
  std::byte* staging_of[kMaxPeers] =
      {};  // the peers'; that of one of them where there is no such peer
  HostWords* host = nullptr;
  std::uint64_t limit_ns = 0;  // how long anything is waited for; 0: for ever
  std::uint8_t rank = 0;
  std::uint8_t peers = 0;
  std::uint8_t lane = kCollectives;
  std::uint8_t unused = 0;
  std::uint32_t call = 0;  // see HostWords. The last: what follows in a derived type lies the same
                           // for all compilers

  HOCKET_ANYWHERE int size() const { return peers + 1; }
  HOCKET_ANYWHERE Header* header() const { return reinterpret_cast<Header*>(staging); }
  HOCKET_ANYWHERE std::uint32_t* dead() const { return &header()->dead; }
  // This rank's link with peer j, and the peer's with this rank.
  HOCKET_ANYWHERE Link* here(int on, int channel, int j) const {
    return reinterpret_cast<Link*>(staging + Layout::link(on, channel, j));
  }
  HOCKET_ANYWHERE Link* there(int on, int channel, int j) const {
    return reinterpret_cast<Link*>(staging_of[j] + Layout::link(on, channel, number_at(j)));
  }
  // Slots of what goes to peer j and comes from it.
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
  // This rank's number among the peers of peer j.
  HOCKET_ANYWHERE int number_at(int j) const { return j < rank ? rank - 1 : rank; }
};

// Reductions by chunks whose results go on to other ranks: a block sends, one reduces and forwards,
// one collects. What the results overwrite has been sent before.
inline constexpr std::uint32_t kWithResults = 3;

// Small calls: a piece is what goes to a peer, or comes from it, a vector a thread.
struct SmallPiece {
  std::byte* at = nullptr;
  std::uint32_t bytes = 0;
};

// Small calls whose pieces lie at equal distances: all but v-forms and bundles of messages. Two
// cache lines.
struct SmallParams : LaneParams {
  FoldCode fold;
  // A bit a peer that something is sent to, or received from. Reductions send to those that
  // reduce; what they receive follows from `keeps`.
  std::uint8_t sends = 0;
  std::uint8_t receives = 0;
  // Exchanges: whether the own piece is to be copied. Reductions: whether this rank reduces.
  std::uint8_t keeps = 0;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_bytes = 0, out_bytes = 0;    // of a piece
  std::uint32_t in_stride = 0, out_stride = 0;  // from a rank's piece to the next; 0: there is one

  // Whether all that goes out is the same, and where it is.
  HOCKET_ANYWHERE bool has_one_source() const { return in_stride == 0; }
  HOCKET_ANYWHERE SmallPiece source() const { return {in, in_bytes}; }
  // Where the own part of a reduction goes.
  HOCKET_ANYWHERE SmallPiece reduced() const { return {out, in_bytes}; }
  HOCKET_ANYWHERE SmallPiece piece_to(int j) const {
    const std::uint32_t bytes = (sends >> j & 1) != 0 ? in_bytes : 0;
    return {in + static_cast<std::size_t>(in_stride) * rank_at(j), bytes};
  }
  HOCKET_ANYWHERE SmallPiece piece_from(int j) const {
    const std::uint32_t bytes = (receives >> j & 1) != 0 ? out_bytes : 0;
    return {out + static_cast<std::size_t>(out_stride) * rank_at(j), bytes};
  }
  // The own part, and where it goes.
  HOCKET_ANYWHERE SmallPiece own() const {
    return {in + static_cast<std::size_t>(in_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  HOCKET_ANYWHERE SmallPiece own_to() const {
    return {out + static_cast<std::size_t>(out_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  // A bit a peer that something goes to, or comes from, at a place in the pieces.
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

// A reduction of whole vectors. Each rank reduces `part` vectors, the last one what is left, which
// is something. All parts are cut alike: channel c has groups [c * unit, (c + 1) * unit) of each,
// kGroupsOfSlot a round.
struct EvenParams : LaneParams {
  FoldCode fold;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t vectors = 0;
  std::uint32_t part = 0;
  std::uint32_t unit = 0;
  // all_reduce: 2, the results go to all ranks. reduce_scatter: 1; `out` is where the result would
  // lie if there were those of all parts.
  std::uint32_t hops = 0;

  HOCKET_ANYWHERE std::uint32_t rounds() const {
    return (unit + kGroupsOfSlot - 1) / kGroupsOfSlot;
  }
  HOCKET_ANYWHERE std::uint32_t part_of(int of) const {
    return of == static_cast<int>(peers) ? vectors - part * peers : part;
  }
};
static_assert(sizeof(EvenParams) == 128);

struct Params : LaneParams {
  // Exchanges: what goes to each peer and comes from it; `kept` is copied to `kept_to`.
  // Reductions: send[j] is this rank's data of the part that peer j reduces, `kept` of the part
  // that it reduces itself; receive[j] is where peer j's result is wanted, kept_to where the own
  // one is.
  CutArray send[kMaxPeers] = {};
  CutArray receive[kMaxPeers] = {};
  CutArray kept;
  CutArray kept_to;
  // Where peers' arrays are entered directly: the peer's address of what it receives from here.
  std::byte* direct[kMaxPeers] = {};
  std::uint32_t rounds = 0;   // the most of any part in any channel
  std::uint32_t roles = 1;    // chunks: how many blocks share a channel's work; 1 to kWithResults
  std::uint32_t groups = 0;   // packets: the most groups of any part in a round
  std::uint32_t same = 0;     // not 0: all of `send` are one array
  std::uint32_t enter = 0;    // not 0: `direct` is used
  std::uint32_t forward = 0;  // a bit a peer that wants the result of this rank's part
  // Whose data a part is made of: a bit a peer; and not 0: this rank's too.
  std::uint32_t sources = 0;
  std::uint32_t own_source = 0;
  FoldCode fold;

  // As pieces of a small call.
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
// Kernels take 4 KiB of parameters.
static_assert(sizeof(Params) <= 1024);

}  // namespace hocket::engines::peer
