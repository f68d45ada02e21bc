// What is found out of a call on GPUs before it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "calls/device/blocks.h"
#include "engine/call.h"
#include "engine/device_engine.h"

namespace hocket::device {

// A checked call, and who carries it. A value.
struct DevicePlan {
  engine::Call call;
  std::uint64_t hash = 0;  // see call::Ledger::hash_of
  engine::DeviceEngine* engine = nullptr;  // null: not chosen so far, or the host
  bool chosen = false;
  bool captured = false;  // that is what it was chosen for
  std::unique_ptr<engine::DeviceSteps> steps = nullptr;  // of the engine; null: none are kept
  // Where out is symmetric: the ranks' outs as mapped here, and what they lie in.
  std::vector<std::byte*> outs = {};
  std::shared_ptr<DeviceBlock> block = nullptr;
  std::uint64_t epoch = 0;  // of the symmetric blocks, which it has to be right still
};

}  // namespace hocket::device
