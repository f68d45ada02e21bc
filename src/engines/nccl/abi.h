// The part of NCCL's binary interface that hocket uses, as of version 2.18. Layouts and values are
// NCCL's. tests/compile compares them with nccl.h if that is installed.
#pragma once

#include <climits>
#include <cstddef>

#include "foundation/cuda/abi.h"

struct ncclComm;

namespace hocket::engines::nccl {

using Comm = ncclComm*;

enum class NcclResult : int { kSuccess = 0, kInProgress = 7 };

enum class NcclType : int {
  kInt8 = 0,
  kUInt8 = 1,
  kInt32 = 2,
  kUInt32 = 3,
  kInt64 = 4,
  kUInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
};
enum class RedOp : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct NcclUniqueId {
  char internal[128];
};

// NCCL reads only the fields that `size` and `version` announce.
struct CommConfig {
  std::size_t size = sizeof(CommConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;  // INT_MIN: NCCL's default
  int cga_cluster_size = INT_MIN;
  int min_blocks = INT_MIN;
  int max_blocks = INT_MIN;
  const char* network = nullptr;
  int share_resources = INT_MIN;
};

}  // namespace hocket::engines::nccl
