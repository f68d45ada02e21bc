// The setting whether a library for messages also moves GPUs' memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/provider.h"
#include "foundation/base/config.h"

namespace hocket::movement {

// The values of the setting. If the ranks have different values, the smallest value applies to all.
enum class UseGpus : std::int32_t { kNever, kAuto, kAlways };

// Reads the setting from a variable of the environment: "never", "auto" or "always". Unset means
// never.
inline UseGpus use_of_gpus(const char* variable) {
  return static_cast<UseGpus>(base::environment_word(variable, {"never", "auto", "always"}));
}

// Returns the value that applies to all ranks. Each card contains one rank's UseGpus.
inline UseGpus agreed_use(std::span<const engine::DeviceCard> cards) noexcept {
  UseGpus least = UseGpus::kAlways;
  for (const engine::DeviceCard& card : cards) least = std::min(least, card.as<UseGpus>());
  return cards.empty() ? UseGpus::kNever : least;
}

}  // namespace hocket::movement
