// The kernels that only move data, and the barrier.
#include "engines/peer/kernels/barrier.h"
#include "engines/peer/kernels/cuda_machine.cuh"
#include "engines/peer/kernels/exchange_chunks.h"
#include "engines/peer/kernels/exchange_packets.h"

using namespace hocket::engines::peer;

extern "C" {

__global__ void __launch_bounds__(32)
    hocket_peer_barrier(const __grid_constant__ SmallParams params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  barrier(machine);
}

__global__ void __launch_bounds__(packet_block(2), 1)
    hocket_peer_exchange_packets(const __grid_constant__ Params params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  exchange_packets(machine);
}

__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_exchange_chunks(const __grid_constant__ Params params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters, params.roles);
  exchange_chunks(machine);
}

__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_exchange_direct(const __grid_constant__ Params params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters, params.roles);
  exchange_direct(machine);
}

}  // extern "C"
