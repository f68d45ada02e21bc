// Device functions for a program's own kernels on symmetric memory of GPUs: pointers to the peers'
// arrays, copies, and signals.
//
//   auto a = comm.symmetric().empty<float>(n, {.memory = hocket::MemoryKind::kCuda});
//   auto s = comm.symmetric().empty<std::uint64_t>(1, {.memory = hocket::MemoryKind::kCuda});
//   kernel<<<...>>>(hocket::device::PeerArray<float>(a, comm.rank(), comm.size()), ...);
//
// This header is for CUDA C++ compilers. Kernels that wait for each other must run at the same
// time. Every wait here has a time limit, because nothing else could end it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hocket/symmetric.h"

namespace hocket::device {

inline constexpr int kMaxPeers = 8;

// The address of each rank's array, as this rank can reach it. A value that is passed to kernels.
// It is valid as long as the SymmetricArray.
template <typename T>
struct PeerArray {
  T* at[kMaxPeers] = {};
  int rank = 0;
  int size = 0;

  PeerArray() = default;
  // @param array The symmetric array, of elements of type T.
  // @param own_rank This rank.
  // @param ranks Number of ranks.
  // @throws InvalidArgument for more than kMaxPeers ranks.
  PeerArray(const SymmetricArray& array, int own_rank, int ranks) : rank(own_rank), size(ranks) {
    if (ranks > kMaxPeers) throw InvalidArgument("PeerArray is for up to 8 ranks");
    for (int r = 0; r < ranks; ++r) at[r] = static_cast<T*>(array.peer(r).data());
  }

  // Returns this rank's array.
  __device__ T* own() const { return at[rank]; }
  // Returns the array of rank `r`.
  __device__ T* peer(int r) const { return at[r]; }
};

// Copies `count` elements to or from a peer's array. All threads of the block call it. It does not
// synchronize them afterwards.
template <typename T>
__device__ void put(T* to, const T* from, std::size_t count) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// Stores `value` into `word` after everything that this block has stored before. A waiter on any
// GPU that sees the value also sees those stores. All threads of the block call it; it synchronizes
// them.
__device__ inline void signal(std::uint64_t* word, std::uint64_t value) {
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
}

// Waits until `word` is at least `value`. All threads of the block call it; it synchronizes them.
// They then see everything that was stored before the signal.
// @param word The word that a peer signals.
// @param value The value to wait for.
// @param nanoseconds The time limit.
// @return False if the time ran out.
__device__ inline bool wait(const std::uint64_t* word,
                            std::uint64_t value,
                            std::uint64_t nanoseconds) {
  bool late = false;
  if (threadIdx.x == 0) {
    std::uint64_t begin, now, seen;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    while (true) {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
      if (seen >= value) break;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      late = static_cast<std::int64_t>(now - begin) > static_cast<std::int64_t>(nanoseconds);
      if (late) break;
    }
    __threadfence_system();
  }
  return __syncthreads_or(late) == 0;
}

}  // namespace hocket::device
