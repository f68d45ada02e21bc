#include "engines/peer/cuts.h"

#include <algorithm>

namespace hocket::engines::peer {
namespace {

static_assert(kChunkBlock / static_cast<int>(kLanesOfGroup) >= kMaxPeers);

constexpr std::uint64_t pieces(std::uint64_t whole, std::uint64_t piece) noexcept {
  return (whole + piece - 1) / piece;
}

// Calls `cut` for each part of a call that has bytes.
template <typename Cut>
void for_parts(Params& p, const Cut& cut) {
  for (std::uint32_t j = 0; j < p.peers; ++j) {
    if (p.send[j].bytes > 0) cut(p.send[j]);
    if (p.receive[j].bytes > 0) cut(p.receive[j]);
  }
  if (p.kept.bytes > 0) cut(p.kept);
  if (p.kept_to.bytes > 0) cut(p.kept_to);
}

bool overlap(const CutArray& a, const CutArray& b) {
  return a.bytes > 0 && b.bytes > 0 && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

// Returns whether any target of data overlaps data that this rank still has to send.
bool overwrites(const Params& p) {
  for (std::uint32_t j = 0; j < p.peers; ++j) {
    if (overlap(p.kept_to, p.send[j])) return true;
    for (std::uint32_t k = 0; k < p.peers; ++k) {
      if (overlap(p.receive[k], p.send[j])) return true;
    }
  }
  return false;
}

}  // namespace

void cut_small(Step& step) {
  std::uint64_t most = 1;
  const auto see = [&](std::uint64_t bytes) { most = std::max(most, vectors_in(bytes)); };
  if (takes_small(step.protocol)) {
    const SmallParams& p = step.small;
    if (p.sends != 0 || p.keeps != 0) see(p.in_bytes);
    if (p.receives != 0) see(p.out_bytes);
  } else {
    for_parts(step.params, [&](const CutArray& part) { see(part.bytes); });
  }
  step.blocks = static_cast<int>(pieces(most, kSmallThreads));
  step.threads = static_cast<int>(
      std::min<std::uint64_t>(kSmallThreads, pieces(most, kLanesOfGroup) * kLanesOfGroup));
}

void cut_packets(Step& step, const PeerTuning& tuning) {
  Params& p = step.params;
  const std::uint32_t most = std::min(tuning.channels, tuning.blocks);
  std::uint32_t channels = 1;
  std::uint64_t longest = 0;
  if (step.protocol == Protocol::kAllReducePackets) {  // divides all parts like the longest part
    for_parts(p, [&](const CutArray& part) { longest = std::max(longest, part.bytes); });
  }
  for_parts(p, [&](CutArray& part) {
    const std::uint64_t vectors = vectors_in(std::max(part.bytes, longest));
    const auto groups = static_cast<std::uint32_t>(pieces(vectors, kVectorsOfGroup));
    part.channels = std::clamp(static_cast<std::uint32_t>(pieces(groups, tuning.groups)), 1u, most);
    part.unit = static_cast<std::uint32_t>(pieces(groups, part.channels));
    p.rounds = std::max(p.rounds, static_cast<std::uint32_t>(pieces(part.unit, kGroupsOfSlot)));
    p.groups = std::max(p.groups, std::min(part.unit, kGroupsOfSlot));
    channels = std::max(channels, part.channels);
  });
  // A reduction uses one warp for each group. An exchange uses one warp for each group and peer.
  const std::uint32_t warps = p.groups * (folds(step.protocol) ? 1u : p.peers);
  step.blocks = static_cast<int>(channels);
  step.threads = std::min(packet_block(p.size()), static_cast<int>(warps * kLanesOfGroup));
}

void cut_chunks(Step& step, const PeerTuning& tuning) {
  Params& p = step.params;
  const bool is_direct = step.protocol == Protocol::kExchangeDirect;
  if (p.roles != kWithResults) p.roles = !is_direct && overwrites(p) ? 1 : 2;
  // The channels must be equal on all ranks, but a channel may have one block on some ranks and two
  // on others. So the limit assumes two blocks.
  const bool is_wide = p.roles == kWithResults;
  const std::uint32_t most =
      std::min(is_wide ? std::min(tuning.channels, tuning.wide_channels) : tuning.channels,
               std::max(tuning.blocks / (is_wide ? kWithResults : 2), 1u));
  // The bytes that the threads of a block move with one vector each.
  constexpr std::uint64_t kAtOnce = std::uint64_t{kChunkBlock} * kVectorBytes;
  std::uint32_t channels = 1;
  for_parts(p, [&](CutArray& part) {
    part.channels = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(pieces(part.bytes, tuning.least_chunk), 1, most));
    const std::uint64_t wanted = pieces(part.bytes, std::uint64_t{part.channels} * tuning.turns);
    const std::uint64_t room = std::min(tuning.most_chunk, chunk_bytes(p.lane, p.size()));
    part.unit = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(pieces(wanted, kAtOnce) * kAtOnce, kAtOnce, room));
    const std::uint64_t chunks = pieces(part.bytes, part.unit);
    p.rounds = std::max(p.rounds, static_cast<std::uint32_t>(pieces(chunks, part.channels)));
    channels = std::max(channels, part.channels);
  });
  step.blocks = static_cast<int>(channels * p.roles);
  step.threads = kChunkBlock;
}

}  // namespace hocket::engines::peer
