#include "engines/peer/plan.h"

#include <algorithm>

#include "engines/peer/plan_parts.h"

namespace hocket::engines::peer {

using engine::Call;
using engine::Kind;

namespace {

// Plans a call in a group of one rank: the output is a copy of the input.
std::vector<Step> plan_alone(const Call& call) {
  std::size_t bytes = engine::own_bytes(call);
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  if (call.in_parts.bytes != nullptr) bytes = call.in_parts.bytes[0];
  if (call.signature.kind == Kind::kBarrier || bytes == 0) return {};
  if (call.in_parts.bytes != nullptr) in += call.in_parts.offsets[0];
  if (call.out_parts.bytes != nullptr) out += call.out_parts.offsets[0];
  if (in == out) return {};
  return {copy_step(out, in, bytes)};
}

// Returns whether the ranks first meet in a kernel of one block. Without this meeting, the many
// blocks of a long call would wait for a late peer, and meanwhile occupy multiprocessors that the
// program's kernels need. All ranks get the same answer.
bool meets_first(const engine::Signature& s, const Member& member, const PeerTuning& tuning) {
  if (is_listed(s.kind) || engine::row_of(s.kind).flow != engine::Flow::kAmongAll) return false;
  const int parts = engine::has_parts(s.kind) ? member.size : 1;
  return engine::bytes_of(s) * static_cast<std::size_t>(parts) >= tuning.meeting;
}

}  // namespace

PeerTuning default_tuning(int size) noexcept {
  PeerTuning tuning;
  if (size == 2) {
    tuning.one_hop = 512 * 1024;
    tuning.scattered = 8 << 20;
    tuning.to_one = 8 << 20;
    tuning.messages = 8 << 20;
  }
  return tuning;
}

PeerTuning with_room(PeerTuning tuning, std::uint32_t blocks) noexcept {
  tuning.blocks = std::min(tuning.blocks, blocks);
  tuning.small = std::min(tuning.small, std::size_t{blocks} * kSmallThreads * kVectorBytes);
  return tuning;
}

Member make_member(int rank, int size, std::byte* const* staging, HostWords* host) noexcept {
  Member member{.rank = rank, .size = size};
  for (int lane = 0; lane < kLanes; ++lane) {
    LaneParams& p = member.lanes[lane];
    p.staging = staging[rank];
    for (int j = 0; j < kMaxPeers; ++j) {
      p.staging_of[j] = staging[rank_of_peer(std::min(j, std::max(size - 2, 0)), rank)];
    }
    p.host = host;
    p.rank = static_cast<std::uint8_t>(rank);
    p.peers = static_cast<std::uint8_t>(size - 1);
    p.lane = static_cast<std::uint8_t>(lane);
  }
  return member;
}

Folding folding_of(FoldCode code) noexcept {
  if (code.operation != FoldOperation::kSum) return Folding::kAny;
  if (code.form == Form::kFloat32) return Folding::kSumFloat32;
  if (code.form == Form::kFloat16) return Folding::kSumFloat16;
  if (code.form == Form::kBFloat16) return Folding::kSumBFloat16;
  return Folding::kAny;
}

std::vector<Step> plan(const Call& call,
                       const Member& member,
                       const PeerTuning& tuning,
                       PeerOuts outs) {
  if (member.size == 1) return plan_alone(call);
  const engine::Signature& s = call.signature;
  const auto meeting = [&] {
    return Step{.protocol = Protocol::kBarrier, .small = small_of(member, kCollectives)};
  };
  if (s.kind == Kind::kBarrier) return {meeting()};
  if (!is_listed(s.kind) && s.count == 0) return {};
  const bool relays = engine::row_of(s.kind).flow == engine::Flow::kFromRoot &&
                      !engine::has_parts(s.kind) && member.size > 2 &&
                      engine::bytes_of(s) > tuning.relays;
  std::vector<Step> steps = relays || is_reduction(s.kind)
                                ? plan_reduction(call, member, tuning, outs)
                                : plan_movement(call, member, tuning, outs);
  if (meets_first(s, member, tuning)) steps.insert(steps.begin(), meeting());
  return steps;
}

}  // namespace hocket::engines::peer
