// The cause of a group's end, as a value that hosts exchange. Ranks decide by it, and texts for
// people are made from it (membership/failure/texts.h).
#pragma once

#include <cstdint>

#include "hocket/error.h"

namespace hocket::control {

// Part of the segment's layout and of the facts between hosts.
enum class Cause : std::uint8_t {
  kUnknown,  // the rank that wanted to write it ended first
  // A rank takes part no longer.
  kDied,
  kLeft,      // in good order
  kSilent,    // its host cannot be heard any more
  kCut,       // the connection that carries its messages has broken
  kRebuild,   // it has called for the next epoch
  kClosed,    // it has closed its communicator
  kReturned,  // it has ended its task, which others are in
  // Ranks called different things, or gave parts of different sizes.
  kDifferent,
  kDifferedBefore,  // so long ago that the difference is unknown
  kPartsDiffer,
  // A deadline passed.
  kLate,
  // Ranks wait for each other, and none of their calls can end.
  kDeadlock,
  // A rank ended it.
  kAbortCalled,
  kInterrupted,  // while it waited
  kClosedEarly,  // the communicator, with calls under way
  kWorkDropped,  // a Work was destroyed
  kCannotGoOn,   // an exception in a call that had begun
  kNotMade,      // an exception while the group was made
  kRefused,      // a call that others had put on their GPUs
  kEngine,       // an engine of GPUs says so
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

// True if the cause is that a rank takes part no longer.
constexpr bool is_loss(Cause cause) noexcept {
  return cause >= Cause::kDied && cause <= Cause::kReturned;
}

}  // namespace hocket::control
