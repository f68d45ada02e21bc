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
  kSend,      // ranks 0 and 1 send a message back and forth; the time is half of a round trip
  kSendRecv,  // each rank sends to the next rank and receives from the one before it
  // Rank 0 sends a window of messages to rank 1, which answers with one message. The time is that
  // of one message of the window.
  kSendWindow,   // by blocking calls
  kISendWindow,  // by nonblocking calls, and one wait for all
  kBarrier,
  // Numeric cases, which are measured like collectives; see numeric.h. `elements` of a Case is N.
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
// True if only ranks 0 and 1 take part. The other ranks make no calls.
constexpr bool is_of_two(Collective collective) noexcept {
  return collective == Collective::kSend || is_window(collective);
}
// The number of messages that a call sends one after the other. Times are shown for one message.
constexpr int messages_in_call(Collective collective) noexcept {
  if (is_window(collective)) return kWindow;
  return collective == Collective::kSend ? 2 : 1;
}

// The root of broadcast, gather, scatter and reduce.
inline constexpr int kRoot = 0;

// kCuda is ordinary memory of GPUs. kSymmetric is memory of GPUs if Plan::plain is kCuda.
enum class Memory : std::uint8_t { kOrdinary, kSymmetric, kCuda };
std::string_view name_of(Memory memory) noexcept;

constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kScan || collective == Collective::kExscan ||
         collective == Collective::kReduceScatter;
}
// True if each rank has a share: the larger buffer holds as many shares as there are ranks.
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
// True if GPUs write the collective's results directly into peers' symmetric memory.
constexpr bool writes_to_peers(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kBroadcast ||
         collective == Collective::kAllGather || collective == Collective::kAllToAll;
}
// True if the collective can be measured both in place and out of place. A broadcast is always in
// place here, because MPI has no other form; messages and barriers never are.
constexpr bool in_place_is_a_choice(Collective collective) noexcept {
  return reduces(collective) || has_shares(collective);
}

// A value. If the collective has shares, `elements` is the length of a share, else that of the
// array.
struct Case {
  Collective collective = Collective::kAllReduce;
  std::size_t elements = 0;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Memory memory = Memory::kOrdinary;
  bool in_place = false;

  bool operator==(const Case&) const = default;
};

// Returns `elements` for a Case. The larger buffer then has at most `bytes` bytes, but at least one
// element (of a share). 0 for a barrier. For numeric cases `bytes` is N itself.
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

// Returns the factor that turns bytes / time into bus bandwidth, by the convention of nccl-tests.
// With it, figures of different collectives and numbers of ranks are comparable with one link's
// bandwidth.
double bus_factor(Collective collective, int ranks) noexcept;

}  // namespace hocket::cli::bench
