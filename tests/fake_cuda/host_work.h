// Work of the host on a stream of the pretended driver, for libraries that pretend to be NVIDIA's.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "foundation/cuda/abi.h"

namespace fake {

// `work(argument)` as work of the stream; of a captured one each time that its graph is played.
inline void launch_on(hocket::cuda::Stream stream, void (*work)(void*), void* argument) {
  using Launch = hocket::cuda::Result(hocket::cuda::Stream, void (*)(void*), void*);
  using Find = hocket::cuda::Result(const char*, void**, int, std::uint64_t, int*);
  static Launch* const launch = [] {
    void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    void* found = nullptr;
    if (driver == nullptr) std::abort();
    reinterpret_cast<Find*>(::dlsym(driver, "cuGetProcAddress_v2"))(
        "cuLaunchHostFunc", &found, 12000, 0, nullptr);
    return reinterpret_cast<Launch*>(found);
  }();
  launch(stream, work, argument);
}

// Once; the stream must not be captured.
inline void put_on(hocket::cuda::Stream stream, std::function<void()> work) {
  auto job = std::make_unique<std::function<void()>>(std::move(work));
  launch_on(
      stream,
      [](void* argument) {
        const std::unique_ptr<std::function<void()>> kept(
            static_cast<std::function<void()>*>(argument));
        (*kept)();
      },
      job.release());
}

}  // namespace fake
