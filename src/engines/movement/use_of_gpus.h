// Whether a library that brings messages is to move what lies in GPUs' memory, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/provider.h"
#include "foundation/base/config.h"

namespace hocket::movement {

// Ranks that differ agree on the least.
enum class UseGpus : std::int32_t { kNever, kAuto, kAlways };

// What a variable says: never (also where it is unset), auto, always.
inline UseGpus use_of_gpus(const char* variable) {
  return static_cast<UseGpus>(base::environment_word(variable, {"never", "auto", "always"}));
}

// `cards`: each made of one rank's UseGpus.
inline UseGpus agreed_use(std::span<const engine::DeviceCard> cards) noexcept {
  UseGpus least = UseGpus::kAlways;
  for (const engine::DeviceCard& card : cards) least = std::min(least, card.as<UseGpus>());
  return cards.empty() ? UseGpus::kNever : least;
}

}  // namespace hocket::movement
