// Tests that this rank can access a peer's memory, before anything relies on it. One rank writes a
// pattern, and another rank reads it.
#pragma once

#include <cstdint>
#include <string>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// The size of a pattern. Each writer has its own pattern, in which all words differ.
inline constexpr std::size_t kPatternBytes = 4096;

// Writes the pattern of rank `writer` to `at` with a copy engine. Returns "" on success, else the
// reason. It gives up at the deadline; after that the memory at `at` must not be used.
std::string write_pattern(const std::shared_ptr<const DeviceContext>& device,
                          DevicePtr at,
                          std::uint32_t writer,
                          base::Deadline deadline);
// Returns "" if the memory at `at` holds the pattern of rank `writer`, else a description of the
// difference.
std::string read_pattern(const std::shared_ptr<const DeviceContext>& device,
                         DevicePtr at,
                         std::uint32_t writer,
                         base::Deadline deadline);

}  // namespace hocket::cuda
