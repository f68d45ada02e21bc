// The marks of code that is compiled for the host and for GPUs.
//
// HOCKET_ANYWHERE: nvcc makes device code of it, other compilers host code. Nothing in this folder
// is compiled by nvcc for the host.
#pragma once

#ifdef __CUDACC__
#define HOCKET_ANYWHERE __device__ __forceinline__
#define HOCKET_ANYWHERE_APART __device__ __noinline__
#define HOCKET_UNROLL _Pragma("unroll")
#else
#define HOCKET_ANYWHERE inline
#define HOCKET_ANYWHERE_APART inline
#define HOCKET_UNROLL
#endif
