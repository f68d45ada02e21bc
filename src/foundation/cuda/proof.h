// Proves by a pattern that this rank reaches a peer's memory, before anything relies on it.
#pragma once

#include <cstdint>
#include <string>

#include "foundation/base/deadline.h"
#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Bytes that a pattern takes; it differs for each writer and each word.
inline constexpr std::size_t kPatternBytes = 4096;

// Writes the pattern of `writer` to `at`, as the copy engines do it. Empty: done; else why not.
// Gives up at the deadline: the memory behind `at` must then not be used.
std::string write_pattern(const std::shared_ptr<const DeviceContext>& device,
                          DevicePtr at,
                          std::uint32_t writer,
                          base::Deadline deadline);
// Whether `at` holds the pattern of `writer`. Empty: yes; else what is wrong.
std::string read_pattern(const std::shared_ptr<const DeviceContext>& device,
                         DevicePtr at,
                         std::uint32_t writer,
                         base::Deadline deadline);

}  // namespace hocket::cuda
