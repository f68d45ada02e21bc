// The compiled GPU kernels that are embedded in the library.
#pragma once

#include <cstddef>
#include <span>

namespace hocket::engines::peer {

// Fat binaries for the GPUs that the build was configured for. They are empty if the build found no
// nvcc. They live as long as the program.
struct Images {
  std::span<const std::byte> move;
  std::span<const std::byte> fold[3];  // indexed by capacity_index
};
Images images() noexcept;

}  // namespace hocket::engines::peer
