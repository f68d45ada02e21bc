// Plans collectives that only move bytes, as messages from array to array. This is for GPU memory,
// which the host cannot copy. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/call.h"
#include "engine/device_engine.h"

namespace hocket::movement {

// The kinds of collectives that this file can plan.
inline constexpr engine::KindSet kCarries = engine::KindSet::where(
    [](engine::Kind kind) { return engine::kCommonKinds.has(kind) && engine::only_moves(kind); });

// One rank's part of a call. A value that refers to the call's arrays.
struct Moves {
  // The messages of each round. The messages of a round are in progress at the same time. A round
  // begins when the previous round has ended on this rank. No message is empty. The send and the
  // receive of a message are in the same round on both ranks.
  std::vector<std::vector<engine::DeviceMessage>> rounds;
  // The copy from input to output that the rank itself must make, at any time. 0 bytes: no copy.
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  Copy own;
};
// Plans a call. Its kind must be in kCarries, and an all-to-all must not be in place.
Moves moves_of(const engine::Call& call, int rank, int size);

}  // namespace hocket::movement
