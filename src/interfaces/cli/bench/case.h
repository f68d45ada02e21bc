// One line of a benchmark: a collective, a size, a dtype, an op, a kind of memory.
//
// The command and the measuring programs of all libraries use it, so it needs only the standard
// library and hocket's words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hocket/types.h"

namespace hocket::cli::bench {

enum class Collective : std::uint8_t {
  kAllReduce,
  kReduce,
  kScan,
  kExscan,
  kReduceScatter,
  kBroadcast,
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kSend,      // ranks 0 and 1 send to and fro; the time is one way, half of a round trip
  kSendRecv,  // each rank sends to the next and receives from the one before
  // Rank 0 sends a window of messages to rank 1, which then sends one back. The time is that of one
  // message.
  kSendWindow,   // by blocking calls
  kISendWindow,  // by nonblocking calls, and one wait for all
  kBarrier,
  // No collectives, but measured as they are; see numeric.h. `elements` of a Case is N.
  kFft,            // of N^3 complex numbers, from slabs to the same slabs
  kFftTransposed,  // to slabs of the second axis
  kMatmul,         // N x N by N x N
};
inline constexpr std::array kCollectives = {Collective::kAllReduce,
                                            Collective::kReduce,
                                            Collective::kScan,
                                            Collective::kExscan,
                                            Collective::kReduceScatter,
                                            Collective::kBroadcast,
                                            Collective::kAllGather,
                                            Collective::kGather,
                                            Collective::kScatter,
                                            Collective::kAllToAll,
                                            Collective::kSend,
                                            Collective::kSendRecv,
                                            Collective::kSendWindow,
                                            Collective::kISendWindow,
                                            Collective::kBarrier};
inline constexpr std::array kNumerics = {
    Collective::kFft, Collective::kFftTransposed, Collective::kMatmul};
inline constexpr int kCollectiveCount = int(kCollectives.size() + kNumerics.size());
constexpr bool is_numeric(Collective collective) noexcept { return collective >= Collective::kFft; }

std::string_view name_of(Collective collective) noexcept;

// The number of messages in a window.
inline constexpr int kWindow = 64;
constexpr bool is_window(Collective collective) noexcept {
  return collective == Collective::kSendWindow || collective == Collective::kISendWindow;
}
// Ranks 0 and 1 take part, and the others look on.
constexpr bool is_of_two(Collective collective) noexcept {
  return collective == Collective::kSend || is_window(collective);
}
// Messages that a call sends one after the other; its time is shown for each.
constexpr int messages_in_call(Collective collective) noexcept {
  if (is_window(collective)) return kWindow;
  return collective == Collective::kSend ? 2 : 1;
}

// The root of broadcast, gather, scatter and reduce.
inline constexpr int kRoot = 0;

// kCuda: ordinary memory of GPUs. Symmetric memory is where the plain kind of a plan is.
enum class Memory : std::uint8_t { kOrdinary, kSymmetric, kCuda };
std::string_view name_of(Memory memory) noexcept;

constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kScan || collective == Collective::kExscan ||
         collective == Collective::kReduceScatter;
}
// Each rank has a share: the larger buffer holds as many shares as there are ranks.
constexpr bool has_shares(Collective collective) noexcept {
  switch (collective) {
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
      return true;
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kBroadcast:
    case Collective::kSend:
    case Collective::kSendRecv:
    case Collective::kSendWindow:
    case Collective::kISendWindow:
    case Collective::kBarrier:
    case Collective::kFft:
    case Collective::kFftTransposed:
    case Collective::kMatmul:
      return false;
  }
  return false;
}
// True if GPUs write the collective's results straight into peers' symmetric memory.
constexpr bool writes_to_peers(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
         collective == Collective::kAllGather || collective == Collective::kAllToAll;
}
// True if the collective can be measured both in place and out of place. A broadcast is always in
// place here, because MPI has no other form; messages and barriers never are.
constexpr bool in_place_is_a_choice(Collective collective) noexcept {
  return reduces(collective) || has_shares(collective);
}

// A value. `elements` is the length of a share where the collective has shares, else of the array.
struct Case {
  Collective collective = Collective::kAllReduce;
  std::size_t elements = 0;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Memory memory = Memory::kOrdinary;
  bool in_place = false;

  bool operator==(const Case&) const = default;
};

// `elements` of a Case whose larger buffer has about `bytes` bytes: at most that many if possible,
// and at least one element (a share). 0 for a barrier. For numeric cases `bytes` is N itself.
std::size_t elements_for(Collective collective, std::size_t bytes, DType dtype, int ranks) noexcept;

// Bytes of the larger of a rank's buffers; for numeric cases, of the whole result.
std::size_t bytes_of(const Case& subject, int ranks) noexcept;

// Elements of a rank's buffers; in place, the buffer is `out` and `in` is 0. A rank without a part
// in the collective has 0.
struct Shape {
  std::size_t in = 0;
  std::size_t out = 0;
};
Shape shape_of(const Case& subject, int rank, int ranks) noexcept;

// Floating-point operations of numeric cases, by the usual count: 5 N^3 log2(N^3), 2 N^3. Else 0.
double operations_of(const Case& subject) noexcept;

// Bus bandwidth over bytes / time, by the convention of nccl-tests. The factor makes figures of
// different collectives and numbers of ranks comparable with one link's bandwidth.
double bus_factor(Collective collective, int ranks) noexcept;

}  // namespace hocket::cli::bench
