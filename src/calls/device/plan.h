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
  std::unique_ptr<engine::DeviceSteps> steps = nullptr;  // of the engine; null: none are kept
  // For a symmetric out: the ranks' outs as mapped here, and the block that contains them.
  std::vector<std::byte*> outs = {};
  std::shared_ptr<DeviceBlock> block = nullptr;
  std::uint64_t epoch = 0;  // of the symmetric blocks; the plan is valid for this epoch
};

}  // namespace hocket::device
