// How long calls take with this engine.
#pragma once

#include "engine/call.h"

namespace hocket::engines::peer {

// Measured on H200s linked by NVSwitch, in a CUDA graph; between the sizes measured, a line.
double expected_microseconds(const engine::Signature& signature, int size) noexcept;

}  // namespace hocket::engines::peer
