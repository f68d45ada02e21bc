// The cause for which a group has ended, as a value that hosts exchange. Code decides by it, and
// membership/failure/texts.h makes texts for people from it.
#pragma once

#include <cstdint>

#include "hocket/error.h"

namespace hocket::control {

// Part of the segment's layout and of the facts between hosts, so all ranks must use the same
// numbers. Most values describe what the culprit, a member of the group, has done.
enum class Cause : std::uint8_t {
  kUnknown,  // the rank that found the cause ended before it had written it
  // Losses: a rank takes part no longer.
  kDied,
  kLeft,      // it left the job in good order
  kSilent,    // its host no longer answers
  kCut,       // the connection that carries its messages has broken
  kRebuild,   // it has called `rebuild`, which makes the next epoch
  kClosed,    // it has closed its communicator
  kReturned,  // it has ended its task, while other ranks are still in it
  // Mismatches: ranks made different calls, or gave parts of different sizes.
  kDifferent,
  kDifferedBefore,  // an earlier call differed; its records are overwritten
  kPartsDiffer,
  // The deadline of a call passed.
  kLate,
  // Ranks wait for each other, so that none of their calls can end.
  kDeadlock,
  // A rank has ended the group.
  kAbortCalled,
  kInterrupted,  // the user interrupted its wait
  kClosedEarly,  // it closed the communicator during calls
  kWorkDropped,  // it destroyed the Work of a call that had not ended
  kCannotGoOn,   // an exception in a call that had begun
  kNotMade,      // an exception while it made the group
  kRefused,      // it refused a call that others had enqueued on their GPUs
  kEngine,       // an engine for GPUs has failed
  kDevice,       // a GPU failed
};
inline constexpr Cause kLastCause = Cause::kDevice;

constexpr ErrorCode code_of(Cause cause) noexcept {
  switch (cause) {
    case Cause::kDied:
    case Cause::kLeft:
    case Cause::kSilent:
    case Cause::kCut:
    case Cause::kReturned:
      return ErrorCode::kPeerDied;
    case Cause::kDifferent:
    case Cause::kDifferedBefore:
    case Cause::kPartsDiffer:
      return ErrorCode::kMismatch;
    case Cause::kLate:
      return ErrorCode::kDeadlineExceeded;
    case Cause::kDeadlock:
      return ErrorCode::kDeadlock;
    case Cause::kDevice:
      return ErrorCode::kDevice;
    case Cause::kUnknown:
    case Cause::kRebuild:
    case Cause::kClosed:
    case Cause::kAbortCalled:
    case Cause::kInterrupted:
    case Cause::kClosedEarly:
    case Cause::kWorkDropped:
    case Cause::kCannotGoOn:
    case Cause::kNotMade:
    case Cause::kRefused:
    case Cause::kEngine:
      break;
  }
  return ErrorCode::kAborted;
}

// Returns whether the cause is that a rank takes part no longer.
constexpr bool is_loss(Cause cause) noexcept {
  return cause >= Cause::kDied && cause <= Cause::kReturned;
}

}  // namespace hocket::control
