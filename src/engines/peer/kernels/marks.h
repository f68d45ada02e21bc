// The function attributes of code that is compiled for the host and for GPUs.
//
// HOCKET_ANYWHERE makes device code with nvcc, and host code with other compilers. nvcc compiles
// nothing in this folder for the host.
#pragma once

#ifdef __CUDACC__
#define HOCKET_ANYWHERE __device__ __forceinline__
#define HOCKET_ANYWHERE_APART __device__ __noinline__
#define HOCKET_UNROLL _Pragma("unroll")
#define HOCKET_KEEP_LOOP _Pragma("unroll 1")
#else
#define HOCKET_ANYWHERE inline
#define HOCKET_ANYWHERE_APART inline
#define HOCKET_UNROLL
#define HOCKET_KEEP_LOOP
#endif

namespace hocket::engines::peer {

// Tells the compiler that an address is in a GPU's global memory, which it cannot see for
// parameters.
HOCKET_ANYWHERE void assume_global([[maybe_unused]] const void* address) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(address));
#endif
}

}  // namespace hocket::engines::peer
