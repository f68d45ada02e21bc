// Selects whether a library for messages also moves GPUs' memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/provider.h"
#include "foundation/base/config.h"

namespace hocket::movement {

// If the ranks' values differ, the smallest one applies.
enum class UseGpus : std::int32_t { kNever, kAuto, kAlways };

// Reads a variable: never (also if it is unset), auto, or always.
inline UseGpus use_of_gpus(const char* variable) {
  return static_cast<UseGpus>(base::environment_word(variable, {"never", "auto", "always"}));
}

// Returns the agreed value. Each of `cards` contains one rank's UseGpus.
inline UseGpus agreed_use(std::span<const engine::DeviceCard> cards) noexcept {
  UseGpus least = UseGpus::kAlways;
  for (const engine::DeviceCard& card : cards) least = std::min(least, card.as<UseGpus>());
  return cards.empty() ? UseGpus::kNever : least;
}

}  // namespace hocket::movement
