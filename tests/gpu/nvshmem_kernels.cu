// A user's kernels with NVSHMEM's device functions, for arrays that hocket made in its heap.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>

namespace {

__global__ void put_around(std::int32_t* to,
                           const std::int32_t* from,
                           int count,
                           std::uint64_t* signal,
                           std::uint64_t turn,
                           nvshmem_team_t team) {
  const int size = nvshmem_team_n_pes(team);
  const int next = (nvshmem_team_my_pe(team) + 1) % size;
  const int pe = nvshmem_team_translate_pe(team, next, NVSHMEM_TEAM_WORLD);
  nvshmemx_int32_put_signal_block(to, from, count, signal, turn, NVSHMEM_SIGNAL_SET, pe);
  if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, turn);
}

__global__ void store_around(std::int32_t* to, int count, nvshmem_team_t team) {
  const int me = nvshmem_team_my_pe(team);
  const int next = (me + 1) % nvshmem_team_n_pes(team);
  const int pe = nvshmem_team_translate_pe(team, next, NVSHMEM_TEAM_WORLD);
  auto* there = static_cast<std::int32_t*>(nvshmem_ptr(to, pe));
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    there[i] = 100 * me + i;
  }
}

}  // namespace

extern "C" {

// Tells NVSHMEM, which runs, of the kernels here. 0: done.
int attach() {
  nvshmem_init();
  return nvshmemx_init_status() < NVSHMEM_STATUS_IS_INITIALIZED;
}

// Puts to the next PE of the team and waits until the one before has put here. 0: done.
int put(void* to, const void* from, int count, void* signal, std::uint64_t turn, int team) {
  put_around<<<1, 256>>>(static_cast<std::int32_t*>(to),
                         static_cast<const std::int32_t*>(from),
                         count,
                         static_cast<std::uint64_t*>(signal),
                         turn,
                         team);
  return cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess;
}

// Stores to the next PE's memory by its address.
int store(void* to, int count, int team) {
  store_around<<<1, 256>>>(static_cast<std::int32_t*>(to), count, team);
  return cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess;
}
}
