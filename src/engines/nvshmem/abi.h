// The part of NVSHMEM's binary interface that hocket uses, as of version 3.2. Layouts and values
// are NVSHMEM's. tests/compile compares them with NVSHMEM's headers if the headers are installed.
#pragma once

#include <cstdint>

namespace hocket::nvshmem {

// The state of NVSHMEM in this process.
enum class NvshmemStatus : int {
  kNotInitialized = 0,
  kBootstrapped = 1,
  kInitialized = 2,
  kLimitedSharing = 3,  // several PEs share a GPU
  kFullSharing = 4,
};

inline constexpr unsigned kWithUniqueId = 1u << 3;

// Returns the first word of a structure: the version of its layout, and its size in bytes.
template <typename T>
constexpr int tag(int version) {
  return (version << 16) + static_cast<int>(sizeof(T));
}

struct UniqueId {
  int version = 0;
  char internal[124] = {};
};

struct UniqueIdArguments {
  int version = 0;
  UniqueId* id = nullptr;
  int rank = -1;
  int ranks = -1;
};

struct InitArguments {
  int version = 0;
  UniqueIdArguments unique_id;
  char content[96] = {};
};

struct InitAttributes {
  int version = 0;
  void* mpi_comm = nullptr;
  InitArguments arguments;
};

using Team = std::int32_t;
inline constexpr Team kInvalidTeam = -1;
inline constexpr Team kWorldTeam = 0;

using TeamId = std::uint64_t;
inline constexpr long kMaskTeamId = 2;

struct TeamConfig {
  int version = 0;
  int contexts = -1;
  TeamId id = ~TeamId{0};
  char padding[48] = {};
};

}  // namespace hocket::nvshmem
