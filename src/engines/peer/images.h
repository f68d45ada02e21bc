// The compiled kernels, as the library carries them.
#pragma once

#include <cstddef>
#include <span>

namespace hocket::engines::peer {

// Fat binaries, for the GPUs that the build was told of; empty where it had no nvcc. They live as
// long as the program.
struct Images {
  std::span<const std::byte> move;
  std::span<const std::byte> fold[3];  // by capacity_index
};
Images images() noexcept;

}  // namespace hocket::engines::peer
