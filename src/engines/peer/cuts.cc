#include "engines/peer/cuts.h"

#include <algorithm>

namespace hocket::engines::peer {
namespace {

constexpr int kPacketThreads = 256;
constexpr int kChunkThreads = 512;

constexpr std::uint64_t pieces(std::uint64_t whole, std::uint64_t piece) noexcept {
  return (whole + piece - 1) / piece;
}

template <typename Cut>
void for_parts(Params& p, const Cut& cut) {
  for (int q = 0; q < p.size; ++q) {
    if (p.send[q].bytes > 0) cut(p.send[q]);
    if (p.receive[q].bytes > 0) cut(p.receive[q]);
  }
}

std::uint32_t most_channels(const Params& p, const Tuning& tuning) {
  return std::min(tuning.channels, static_cast<std::uint32_t>(channels_of(p.lane)));
}

}  // namespace

void cut_packets(Step& step, const Tuning& tuning) {
  Params& p = step.params;
  std::uint32_t blocks = 1;
  for_parts(p, [&](Part& part) {
    const auto groups = static_cast<std::uint32_t>(pieces(vectors_in(part.bytes), kVectorsOfGroup));
    part.channels = std::clamp(
        static_cast<std::uint32_t>(pieces(groups, tuning.groups)), 1u, most_channels(p, tuning));
    part.unit = static_cast<std::uint32_t>(pieces(groups, part.channels));
    p.rounds = std::max(p.rounds, static_cast<std::uint32_t>(pieces(part.unit, kGroupsOfSlot)));
    p.groups = std::max(p.groups, std::min(part.unit, kGroupsOfSlot));
    blocks = std::max(blocks, part.channels);
  });
  // A warp a group, and a peer where they get different things.
  const std::uint32_t warps = p.groups * (folds(step.protocol) ? 1u : p.size);
  step.blocks = static_cast<int>(blocks);
  step.threads = std::min(kPacketThreads, static_cast<int>(warps * kLanesOfGroup));
}

void cut_chunks(Step& step, const Tuning& tuning) {
  Params& p = step.params;
  std::uint32_t blocks = 1;
  for_parts(p, [&](Part& part) {
    part.channels = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        pieces(part.bytes, tuning.least_chunk), 1, most_channels(p, tuning)));
    // Whole times what the threads of a block move at once, where there is enough.
    const std::uint64_t at_once = kChunkThreads * kVectorBytes;
    const std::uint64_t wanted = pieces(part.bytes, std::uint64_t{part.channels} * tuning.turns);
    part.unit = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(pieces(wanted, at_once) * at_once, at_once, kChunkBytes));
    const std::uint64_t chunks = pieces(part.bytes, part.unit);
    p.rounds = std::max(p.rounds, static_cast<std::uint32_t>(pieces(chunks, part.channels)));
    blocks = std::max(blocks, part.channels);
  });
  step.blocks = static_cast<int>(blocks);
  step.threads = kChunkThreads;
}

}  // namespace hocket::engines::peer
