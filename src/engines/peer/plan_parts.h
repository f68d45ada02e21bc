// The two parts of `plan`, movement and reductions, and the helpers that both use.
#pragma once

#include "engines/peer/plan.h"

namespace hocket::engines::peer {

// Plans broadcast, all_gather, gather, scatter, all_to_all and their v-forms.
std::vector<Step> plan_movement(const engine::Call& call,
                                const Member& member,
                                const PeerTuning& tuning,
                                PeerOuts outs);

// Plans all_reduce, reduce, reduce_scatter and its v-form, and a large broadcast with more than two
// ranks.
std::vector<Step> plan_reduction(const engine::Call& call,
                                 const Member& member,
                                 const PeerTuning& tuning,
                                 PeerOuts outs);

// Return the parameters of a kernel on a lane, with only the lane's members filled in.
inline Params params_of(const Member& member, int lane) {
  Params p;
  static_cast<LaneParams&>(p) = member.lanes[lane];
  return p;
}
inline SmallParams small_of(const Member& member, int lane) {
  SmallParams p;
  static_cast<LaneParams&>(p) = member.lanes[lane];
  return p;
}
// Return the bit of one peer, and the bits of all peers.
inline std::uint8_t bit_of(int rank, const LaneParams& p) {
  return static_cast<std::uint8_t>(1u << peer_number(rank, p.rank));
}
inline std::uint8_t all_peers(const LaneParams& p) {
  return static_cast<std::uint8_t>((1u << p.peers) - 1);
}
inline Step copy_step(void* to, const void* from, std::size_t bytes) {
  return {.copy_to = static_cast<std::byte*>(to),
          .copy_from = static_cast<const std::byte*>(from),
          .copy_bytes = bytes};
}
// Returns a part of an array, or an empty part if it has no bytes. The result is not const,
// although kernels only read arrays that are sent.
inline CutArray part_at(const void* array, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return {};
  auto* at = static_cast<std::byte*>(const_cast<void*>(array));
  return {.at = at != nullptr ? at + offset : nullptr, .bytes = bytes};
}

}  // namespace hocket::engines::peer
