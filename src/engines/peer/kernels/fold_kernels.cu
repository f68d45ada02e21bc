// The kernels that reduce, and the small exchanges, for up to HOCKET_PEER_RANKS ranks. Sums of some
// float types have specialized kernels. For each protocol, one kernel handles all other reductions.
#include "engines/peer/kernels/cuda_machine.cuh"
#include "engines/peer/kernels/reduce_chunks.h"
#include "engines/peer/kernels/reduce_even.h"
#include "engines/peer/kernels/reduce_packets.h"
#include "engines/peer/kernels/small.h"

using namespace hocket::engines::peer;

namespace {

constexpr int kPeers = HOCKET_PEER_RANKS - 1;

template <typename Fold>
__device__ void run_reduce_small(const SmallParams& params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  reduce_small<kPeers, Fold>(machine);
}
template <typename Fold>
__device__ void run_reduce_packets(const Params& params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  reduce_packets<kPeers, Fold>(machine);
}
template <typename Fold>
__device__ void run_all_reduce_packets(const Params& params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  all_reduce_packets<kPeers, Fold>(machine);
}
template <typename Fold>
__device__ void run_reduce_even(const EvenParams& params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  reduce_even<kPeers, Fold>(machine);
}
template <typename Fold>
__device__ void run_reduce_chunks(const Params& params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters, params.roles);
  reduce_chunks<kPeers, Fold>(machine);
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_exchange_small(const __grid_constant__ SmallParams params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  exchange_small<kPeers>(machine);
}
__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_exchange_small_parts(const __grid_constant__ Params params) {
  __shared__ Counters counters;
  CudaMachine machine(params, counters);
  exchange_small<kPeers>(machine);
}

__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_reduce_small_any(const __grid_constant__ SmallParams params) {
  run_reduce_small<AnyFold>(params);
}
__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_reduce_small_float32(const __grid_constant__ SmallParams params) {
  run_reduce_small<SumFold<float>>(params);
}
__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_reduce_small_float16(const __grid_constant__ SmallParams params) {
  run_reduce_small<SumFold<hocket::float16>>(params);
}
__global__ void __launch_bounds__(kSmallThreads, 1)
    hocket_peer_reduce_small_bfloat16(const __grid_constant__ SmallParams params) {
  run_reduce_small<SumFold<hocket::bfloat16>>(params);
}

__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_packets_any(const __grid_constant__ Params params) {
  run_reduce_packets<AnyFold>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_packets_float32(const __grid_constant__ Params params) {
  run_reduce_packets<SumFold<float>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_packets_float16(const __grid_constant__ Params params) {
  run_reduce_packets<SumFold<hocket::float16>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_packets_bfloat16(const __grid_constant__ Params params) {
  run_reduce_packets<SumFold<hocket::bfloat16>>(params);
}

__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_all_reduce_packets_any(const __grid_constant__ Params params) {
  run_all_reduce_packets<AnyFold>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_all_reduce_packets_float32(const __grid_constant__ Params params) {
  run_all_reduce_packets<SumFold<float>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_all_reduce_packets_float16(const __grid_constant__ Params params) {
  run_all_reduce_packets<SumFold<hocket::float16>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_all_reduce_packets_bfloat16(const __grid_constant__ Params params) {
  run_all_reduce_packets<SumFold<hocket::bfloat16>>(params);
}

__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_even_any(const __grid_constant__ EvenParams params) {
  run_reduce_even<AnyFold>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_even_float32(const __grid_constant__ EvenParams params) {
  run_reduce_even<SumFold<float>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_even_float16(const __grid_constant__ EvenParams params) {
  run_reduce_even<SumFold<hocket::float16>>(params);
}
__global__ void __launch_bounds__(packet_block(HOCKET_PEER_RANKS), 1)
    hocket_peer_reduce_even_bfloat16(const __grid_constant__ EvenParams params) {
  run_reduce_even<SumFold<hocket::bfloat16>>(params);
}

__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_reduce_chunks_any(const __grid_constant__ Params params) {
  run_reduce_chunks<AnyFold>(params);
}
__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_reduce_chunks_float32(const __grid_constant__ Params params) {
  run_reduce_chunks<SumFold<float>>(params);
}
__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_reduce_chunks_float16(const __grid_constant__ Params params) {
  run_reduce_chunks<SumFold<hocket::float16>>(params);
}
__global__ void __launch_bounds__(kChunkBlock, 1)
    hocket_peer_reduce_chunks_bfloat16(const __grid_constant__ Params params) {
  run_reduce_chunks<SumFold<hocket::bfloat16>>(params);
}

}  // extern "C"
