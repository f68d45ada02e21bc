// Arrays in GPUs' memory: the stream of a call, and the objects that stay alive until the call
// ends.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "communicator_object.h"
#include "hocket/gpu.h"

namespace hocket::python {

// Reads a stream: a raw handle, a stream of CuPy, PyTorch or Numba, or an object with
// `__cuda_stream__`. Returns nothing for None. Throws InvalidArgument for anything else.
std::optional<StreamRef> stream_argument(nb::handle stream);

// Returns the GPU that holds an array.
const Gpu& gpu_of(const Array& array);

// Makes `stream` wait for the work under way on the array's own stream. Does nothing if the two
// streams are the same. Does nothing either if `stream` is being captured into a graph, because a
// graph cannot wait for work outside of it.
void follow(const Array& array, std::optional<StreamRef> stream);

// Returns the stream of a call: `asked`, or if `asked` is None, the current stream of the arrays'
// framework. The stream waits for work on the arrays that is under way on other streams.
std::optional<StreamRef> stream_of(nb::handle asked, const Array& in, const Array& out);

template <typename Plan>
void choose_stream(Plan& plan, nb::handle asked) {
  plan.options.stream = stream_of(asked, plan.in, plan.out);
}

// Keeps arrays alive until the call has ended, in two cases. In the first, the call runs on another
// stream than the framework's current stream: the framework reuses memory in the order of its own
// stream alone. In the second, an array has a lease, that is, its memory was only lent.
void retain(CommunicatorObject& self,
            std::initializer_list<Array*> arrays,
            std::optional<StreamRef> stream);
void retain(CommunicatorObject& self, std::vector<Array>& arrays, std::optional<StreamRef> stream);
// Keeps arrays that have a lease until the stream has passed the call, even if the Work is dropped.
template <typename Plan>
void retain_lent(CommunicatorObject& self, Plan& plan) {
  const auto is_lent = [](const Array& array) { return array.is_on_gpu() && array.lease; };
  if (is_lent(plan.in) || is_lent(plan.out)) {
    retain(self, {&plan.in, &plan.out}, plan.options.stream);
  }
}
template <typename Plan>
void retain(CommunicatorObject& self, Plan& plan) {
  if (plan.in.is_on_gpu() || plan.out.is_on_gpu()) {
    retain(self, {&plan.in, &plan.out}, plan.options.stream);
  }
}

}  // namespace hocket::python
