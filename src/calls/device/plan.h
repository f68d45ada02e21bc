// The facts about a call on GPUs that are determined before it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calls/device/blocks.h"
#include "engine/call.h"
#include "engine/device_engine.h"

namespace hocket::device {

// A checked call, and the engine that carries it. A value.
struct DevicePlan {
  engine::Call call;
  std::uint64_t hash = 0;                  // see call::Ledger::hash_of
  engine::DeviceEngine* engine = nullptr;  // null: not chosen yet, or the host
  bool chosen = false;
  bool captured = false;  // the choice was made for capture into a graph
  std::unique_ptr<engine::DeviceSteps> steps = nullptr;  // the engine's prepared steps; null: none
  // For a symmetric `out`: the address in this process of each rank's `out`, and their block.
  std::vector<std::byte*> outs = {};
  std::shared_ptr<DeviceBlock> block = nullptr;
  std::uint64_t epoch = 0;  // the plan is valid in this epoch of DeviceBlocks
};

}  // namespace hocket::device
