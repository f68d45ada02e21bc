// The function attributes of code that is compiled for the host and for GPUs.
//
// A function with HOCKET_ANYWHERE is device code for nvcc, and host code for other compilers. nvcc
// compiles no function of this folder for the host.
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

// Tells nvcc that an address is in the GPU's global memory. nvcc cannot know this for addresses in
// a kernel's parameters.
HOCKET_ANYWHERE void assume_global([[maybe_unused]] const void* address) {
#ifdef __CUDA_ARCH__
  __builtin_assume(__isGlobal(address));
#endif
}

}  // namespace hocket::engines::peer
