// Plans collectives that only move bytes, as messages from array to array, for memory that the host
// cannot copy. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/call.h"
#include "engine/device_engine.h"

namespace hocket::movement {

// The kinds that this file can plan.
inline constexpr engine::KindSet kCarries = engine::KindSet::where(
    [](engine::Kind kind) { return engine::kCommonKinds.has(kind) && engine::only_moves(kind); });

// One rank's part of such a call. A value that refers to the call's arrays.
struct Moves {
  // The messages of each round, which are sent and received at the same time. A round begins when
  // the previous one has ended on this rank. No message is empty. Two ranks have the messages for
  // each other in the same rounds.
  std::vector<std::vector<engine::DeviceMessage>> rounds;
  // The copy that the rank itself has to make, at any time. 0 bytes: none.
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  Copy own;
};
// `call` is one of kCarries. An all-to-all is not in place.
Moves moves_of(const engine::Call& call, int rank, int size);

}  // namespace hocket::movement
