#include "foundation/cuda/memory_pattern.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "foundation/cuda/idle.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

using Pattern = std::array<std::uint32_t, kPatternBytes / sizeof(std::uint32_t)>;

Pattern pattern_of(std::uint32_t writer) {
  Pattern pattern;
  for (std::uint32_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = (writer + 1) * 0x9e3779b9U ^ (i * 0x85ebca6bU + 1);
  }
  return pattern;
}

// Copies the bytes of a pattern on a new stream, and waits for the copy. `host` has one side of it.
// If the copy does not end, `host` is released later: the driver frees it only after the copy.
std::string copy_within(const std::shared_ptr<const DeviceContext>& device,
                        std::shared_ptr<HostBuffer> host,
                        DevicePtr to,
                        DevicePtr from,
                        base::Deadline deadline) {
  const DeviceGuard guard(*device);
  const Driver& driver = device->driver();
  const OwnedStream stream(device);
  const Result result = driver.memcpy_async(to, from, kPatternBytes, stream.get());
  if (result != Result::kSuccess) return driver.describe(result);
  if (drain(driver, stream.get(), deadline)) return "";
  release_when_idle(device, std::move(host), deadline);
  return "a copy did not end in time";
}

}  // namespace

std::string write_pattern(const std::shared_ptr<const DeviceContext>& device,
                          DevicePtr at,
                          std::uint32_t writer,
                          base::Deadline deadline) {
  try {
    const auto host = std::make_shared<HostBuffer>(device, kPatternBytes);
    const Pattern pattern = pattern_of(writer);
    std::memcpy(host->data(), pattern.data(), kPatternBytes);
    return copy_within(device, host, at, host->device_address(), deadline);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string read_pattern(const std::shared_ptr<const DeviceContext>& device,
                         DevicePtr at,
                         std::uint32_t writer,
                         base::Deadline deadline) {
  try {
    const auto host = std::make_shared<HostBuffer>(device, kPatternBytes);
    std::string problem = copy_within(device, host, host->device_address(), at, deadline);
    if (!problem.empty()) return problem;
    const Pattern expected = pattern_of(writer);
    Pattern found;
    std::memcpy(found.data(), host->data(), kPatternBytes);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (found[i] == expected[i]) continue;
      return fmt::format(
          "word {} of a pattern reads {:#x}, expected {:#x}", i, found[i], expected[i]);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace hocket::cuda
