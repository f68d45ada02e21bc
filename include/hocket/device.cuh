// For kernels of one's own on symmetric memory of GPUs: the peers' arrays, copies to them, and
// signals.
//
//   auto a = comm.symmetric().empty<float>(n, {.memory = hocket::MemoryKind::kCuda});
//   auto s = comm.symmetric().empty<std::uint64_t>(1, {.memory = hocket::MemoryKind::kCuda});
//   kernel<<<...>>>(hocket::device::PeerArray<float>(a, comm.rank(), comm.size()), ...);
//
// For CUDA C++ compilers. Kernels that wait for peers need those to run at the same time; what they
// wait for is bounded here by a time, as nothing else ends them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hocket/symmetric.h"

namespace hocket::device {

inline constexpr int kMaxPeers = 8;

// The array of each rank, as it is reached from this one. A value, to be handed to kernels; valid
// as long as the SymmetricArray.
template <typename T>
struct PeerArray {
  T* at[kMaxPeers] = {};
  int rank = 0;
  int size = 0;

  PeerArray() = default;
  // Throws InvalidArgument for more than kMaxPeers ranks.
  PeerArray(const SymmetricArray& array, int own_rank, int ranks) : rank(own_rank), size(ranks) {
    if (ranks > kMaxPeers) throw InvalidArgument("PeerArray is for up to 8 ranks");
    for (int r = 0; r < ranks; ++r) at[r] = static_cast<T*>(array.peer(r).data());
  }

  __device__ T* own() const { return at[rank]; }
  __device__ T* peer(int r) const { return at[r]; }
};

// Copies `count` elements with all threads of the block, to a peer's array or from one. The threads
// have not met afterwards.
template <typename T>
__device__ void put(T* to, const T* from, std::size_t count) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// Tells whoever waits on `word`, on any GPU, that all is there that this block has stored: by all
// its threads, which meet here.
__device__ inline void signal(std::uint64_t* word, std::uint64_t value) {
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
}

// Waits until `word` is at least `value`, at most `nanoseconds`; by all threads of the block, which
// meet here, and then see what was stored before the signal. False: it was not in time.
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
