#include "engine/call.h"

#include <fmt/format.h>

namespace hocket::engine {

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::kNone:
      return "call";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kReduce:
      return "reduce";
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kReduceScatter:
      return "reduce_scatter";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kGather:
      return "gather";
    case Kind::kScatter:
      return "scatter";
    case Kind::kAllToAll:
      return "all_to_all";
    case Kind::kReduceScatterV:
      return "reduce_scatter_v";
    case Kind::kAllGatherV:
      return "all_gather_v";
    case Kind::kGatherV:
      return "gather_v";
    case Kind::kScatterV:
      return "scatter_v";
    case Kind::kAllToAllV:
      return "all_to_all_v";
    case Kind::kReproducibleSum:
      return "reproducible_sum";
    case Kind::kNewGroup:
      return "new_group";
    case Kind::kSplit:
      return "split";
    case Kind::kSymmetricAllocate:
      return "symmetric.empty";
    case Kind::kSend:
      return "send";
    case Kind::kRecv:
      return "recv";
  }
  return "unknown call";
}

bool is_rooted(Kind kind) noexcept {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather ||
         kind == Kind::kScatter || kind == Kind::kGatherV || kind == Kind::kScatterV;
}

std::size_t whole_bytes(const Signature& s, int ranks) noexcept {
  switch (s.kind) {
    case Kind::kReduceScatter:
    case Kind::kAllGather:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kAllToAll:
      return bytes_of(s) * static_cast<std::size_t>(ranks);
    default:
      return bytes_of(s);
  }
}

bool is_reduction(Kind kind) noexcept {
  return kind == Kind::kReduce || kind == Kind::kAllReduce || kind == Kind::kReduceScatter ||
         kind == Kind::kReduceScatterV;
}

namespace {

bool moves_elements(Kind kind) {
  return kind != Kind::kNone && kind != Kind::kBarrier && kind != Kind::kNewGroup &&
         kind != Kind::kSplit;
}

}  // namespace

std::string describe(const Signature& s) {
  if (s.kind == Kind::kSymmetricAllocate && s.extra != 0 && s.extra != kFromNvshmem) {
    return s.extra == kNvshmemTeam ? "symmetric.nvshmem_team" : "symmetric.free";
  }
  std::string text(name_of(s.kind));
  if (is_reduction(s.kind) || s.kind == Kind::kReproducibleSum)
    text += fmt::format(" {}", name_of(s.op));
  if (moves_elements(s.kind)) text += fmt::format(" {}[{}]", name_of(s.dtype), s.count);
  if (is_rooted(s.kind)) text += fmt::format(" root {}", s.root);
  if (s.memory == MemoryKind::kCuda) text += " on GPUs";
  if (s.extra == kFromNvshmem && s.kind == Kind::kSymmetricAllocate) text += ", NVSHMEM's heap";
  if (takes_whole_arrays(s.kind) && s.extra == kInFortranOrder) text += " in Fortran order";
  if (takes_whole_arrays(s.kind) && s.extra == kInCOrder) text += " in C order";
  if (s.symmetric != 0) text += " (symmetric)";
  return text;
}

}  // namespace hocket::engine
