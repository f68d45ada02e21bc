// The parameters of a kernel: the group's memory and one call. They are values, passed by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// An array and its cut. Both ends of a link cut in the same way, because the cut depends only on
// the bytes.
//
// As packets: channel c < channels has the groups [c * unit, (c + 1) * unit), kGroupsOfSlot in each
// round. As chunks: chunk i, of `unit` bytes, belongs to channel i % channels and round i /
// channels.
struct CutArray {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t unit = 0;
  std::uint32_t channels = 0;
};

// Convert between a rank and its number among the peers of another rank.
constexpr int peer_number(int rank, int among) noexcept { return rank < among ? rank : rank - 1; }
constexpr int rank_of_peer(int peer, int among) noexcept { return peer < among ? peer : peer + 1; }

// The links of a lane in the staging areas, as mapped here, equal for all calls. Addresses are
// computed when they are needed: each cache line of parameters that a kernel reads costs a tenth of
// a small call.
struct LaneParams {
  std::byte* staging = nullptr;           // this rank's
  std::byte* staging_of[kMaxPeers] = {};  // the peers'; missing peers repeat one
  HostWords* host = nullptr;
  std::uint64_t limit_ns = 0;  // limit of each wait; 0: none
  std::uint8_t rank = 0;
  std::uint8_t peers = 0;
  std::uint8_t lane = kCollectives;
  std::uint8_t unused = 0;
  std::uint32_t call = 0;  // see HostWords; the last member, so that all compilers place a derived
                           // type's members alike

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
  // Return the slots of data to and from peer j.
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

// The number of roles in a reduction by chunks with results for other ranks. One block sends, one
// reduces and forwards, and one collects. Data is sent before results overwrite it.
inline constexpr std::uint32_t kWithResults = 3;

// The data of a small call to or from one peer, with one vector in each thread.
struct SmallPiece {
  std::byte* at = nullptr;
  std::uint32_t bytes = 0;
};

// The parameters of a small call whose pieces lie at equal distances: all calls except v-forms and
// sets of messages. They fill two cache lines.
struct SmallParams : LaneParams {
  FoldCode fold;
  // One bit for each peer that this rank sends to or receives from. Reductions send to the ranks
  // that reduce; `keeps` determines what they receive.
  std::uint8_t sends = 0;
  std::uint8_t receives = 0;
  // For exchanges: this rank's own piece is copied. For reductions: this rank reduces.
  std::uint8_t keeps = 0;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t in_bytes = 0, out_bytes = 0;    // of one piece
  std::uint32_t in_stride = 0, out_stride = 0;  // from one rank's piece to the next; 0: there is
                                                // one piece

  // Returns whether all outgoing data is the same.
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
  // Return this rank's own part and its target.
  HOCKET_ANYWHERE SmallPiece own() const {
    return {in + static_cast<std::size_t>(in_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  HOCKET_ANYWHERE SmallPiece own_to() const {
    return {out + static_cast<std::size_t>(out_stride) * rank, keeps != 0 ? in_bytes : 0};
  }
  // Return one bit for each peer that gets data, or gives data, at a place in the pieces.
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

// A reduction of whole vectors. Each rank reduces `part` vectors, and the last rank reduces the
// rest, which is not empty. All parts have equal cuts: channel c has the groups [c * unit, (c + 1)
// * unit) of each part, kGroupsOfSlot in each round.
struct EvenParams : LaneParams {
  FoldCode fold;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint32_t vectors = 0;
  std::uint32_t part = 0;
  std::uint32_t unit = 0;
  // 2 for all_reduce: the results go to all ranks. 1 for reduce_scatter: `out` is then the address
  // of the result minus the offset of this rank's part.
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
  // For exchanges: the data to and from each peer. `kept` is copied to `kept_to`.
  //
  // For reductions: send[j] is this rank's data of the part that peer j reduces, and `kept` its
  // data of its own part. receive[j] is the target of peer j's result, and kept_to the target of
  // its own result.
  CutArray send[kMaxPeers] = {};
  CutArray receive[kMaxPeers] = {};
  CutArray kept;
  CutArray kept_to;
  // The address at the peer of the data that it receives from this rank, if peers' arrays are
  // written directly.
  std::byte* direct[kMaxPeers] = {};
  std::uint32_t rounds = 0;   // largest number of rounds of any part in any channel
  std::uint32_t roles = 1;    // chunks: number of blocks that share a channel; 1 to kWithResults
  std::uint32_t groups = 0;   // packets: largest number of groups of any part in a round
  std::uint32_t same = 0;     // not 0: all of `send` are one array
  std::uint32_t enter = 0;    // not 0: `direct` is used
  std::uint32_t forward = 0;  // one bit for each peer that gets the result of this rank's part
  // The ranks whose data a part consists of: one bit for each peer, and whether this rank is one.
  std::uint32_t sources = 0;
  std::uint32_t own_source = 0;
  FoldCode fold;

  // Return the data as pieces of a small call.
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
// Kernels take at most 4 KiB of parameters.
static_assert(sizeof(Params) <= 1024);

}  // namespace hocket::engines::peer
