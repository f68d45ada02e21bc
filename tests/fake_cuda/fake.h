// The parts of the fake driver. See CMakeLists.txt.
//
// Device memory is host memory at its own address. A stream is a thread with a queue of closures,
// so that work without an order really has none. The only kernels are hocket's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "foundation/cuda/abi.h"

namespace fake {

using hocket::cuda::Result;

struct Entry {
  const char* name;
  void* function;
};
std::vector<Entry> memory_functions();
std::vector<Entry> stream_functions();
std::vector<Entry> graph_functions();
std::vector<Entry> kernel_functions();

int device_count();
// The device of this thread's current context; -1 without one.
int current_device();

template <typename F>
Entry entry(const char* name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

// Returns whether `function` may be called now, which allocates or asks whether work has ended. If
// a capture forbids that, returns false, breaks the capture, and says so on stderr.
bool outside_captures(const char* function);
// Waits for all streams of the current device, as freeing memory does.
void quiesce();
// Runs `work` after all that `stream` has so far; where that is captured, each time that the graph
// is launched.
hocket::cuda::Result enqueue(hocket::cuda::Stream stream, std::function<void()> work);
hocket::cuda::Graph make_graph(std::vector<std::function<void()>> work);

}  // namespace fake
