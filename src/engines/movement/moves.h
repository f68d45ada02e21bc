// Collectives that only move bytes, as messages from array to array: for memory that the host
// cannot copy. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/call.h"
#include "engine/device_engine.h"

namespace hocket::movement {

// Those that it knows how to move.
inline constexpr engine::KindSet kCarries = engine::KindSet::where(
    [](engine::Kind kind) { return engine::kCommonKinds.has(kind) && engine::only_moves(kind); });

// One rank's part of such a call. A value that refers to the call's arrays.
struct Moves {
  // What is sent and received at the same time; a round begins when the one before it has ended on
  // this rank. Never empty messages. Of two ranks' messages for each other both have the same
  // rounds.
  std::vector<std::vector<engine::DeviceMessage>> rounds;
  // What the rank has to copy itself, at any time; 0 bytes: nothing.
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  Copy own;
};
// `call`: of kCarries, and an all-to-all is not in place.
Moves moves_of(const engine::Call& call, int rank, int size);

}  // namespace hocket::movement
