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
struct Part {
  std::byte* at = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t unit = 1;
  std::uint32_t channels = 0;
};

struct Params {
  // The group: the ranks' staging areas as mapped here, this rank's words in host memory.
  std::byte* staging[kMaxRanks] = {};
  HostWords* host = nullptr;
  std::uint64_t limit_ns = 0;  // how long anything is waited for; 0: for ever
  std::uint8_t rank = 0;
  std::uint8_t size = 1;
  std::uint8_t lane = kCollectives;

  // The call. Exchanges: what goes to each rank and comes from it; to and from itself: a copy.
  // Reductions: send[q] is this rank's data of the part that rank q reduces.
  std::uint8_t same = 0;     // all of `send` are one array
  std::uint8_t enter = 0;    // peers' arrays are written to where they are, through `direct`
  std::uint32_t rounds = 0;  // the most of any part in any channel
  std::uint32_t groups = 0;  // packets: the most groups of any part in a round
  Part send[kMaxRanks] = {};
  // Reductions: receive[q] is where rank q's result is wanted; bytes are 0 where it is not.
  Part receive[kMaxRanks] = {};
  // Where peers' arrays are entered directly: the peer's address of what it receives from here.
  std::byte* direct[kMaxRanks] = {};

  // Reductions.
  std::byte* out = nullptr;   // of this rank's part, send[rank]; null: it is not wanted here
  std::uint32_t forward = 0;  // a bit a peer that wants the result of this rank's part
  FoldCode fold;
  std::uint8_t sources[kMaxRanks] = {};  // in the order of the fold
  std::uint8_t source_count = 0;
};
// Kernels take 4 KiB of parameters.
static_assert(sizeof(Params) <= 1024);

}  // namespace hocket::engines::peer
