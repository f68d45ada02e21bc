// A test by a pattern that this rank can access a peer's memory, before anything relies on it.
#pragma once

#include <cstdint>
#include <string>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Size of a pattern. It differs for each writer and each word.
inline constexpr std::size_t kPatternBytes = 4096;

// Writes the pattern of `writer` to `at` by a copy engine. Returns "" on success, else the reason.
// It gives up at the deadline; the memory at `at` must then not be used.
std::string write_pattern(const std::shared_ptr<const DeviceContext>& device,
                          DevicePtr at,
                          std::uint32_t writer,
                          base::Deadline deadline);
// Returns "" if `at` holds the pattern of `writer`, else what is wrong.
std::string read_pattern(const std::shared_ptr<const DeviceContext>& device,
                         DevicePtr at,
                         std::uint32_t writer,
                         base::Deadline deadline);

}  // namespace hocket::cuda
