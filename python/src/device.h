// GPU arrays: the stream of a call, and the objects to keep alive until it has ended.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "communicator_object.h"
#include "hocket/gpu.h"

namespace hocket::python {

// A raw handle, or a stream of CuPy, PyTorch, Numba, or anything with `__cuda_stream__`; absent for
// None. Throws InvalidArgument.
std::optional<StreamRef> stream_argument(nb::handle stream);

// The GPU that holds an array.
const Gpu& gpu_of(const Array& array);

// Orders `stream` after the work under way on the array's own stream. Does nothing if they are the
// same, or if `stream` is being captured into a graph, which cannot wait for outside work.
void follow(const Array& array, std::optional<StreamRef> stream);

// The stream of a call: `asked`, or else the current one of the arrays' framework. It is ordered
// after work on the arrays that is under way on other streams.
std::optional<StreamRef> stream_of(nb::handle asked, const Array& in, const Array& out);

template <typename Plan>
void choose_stream(Plan& plan, nb::handle asked) {
  plan.options.stream = stream_of(asked, plan.in, plan.out);
}

// Frameworks reuse memory in the order of their own current stream. On another stream, or if the
// memory was only lent, the arrays have to be kept until the call has ended.
void retain(CommunicatorObject& self,
            std::initializer_list<Array*> arrays,
            std::optional<StreamRef> stream);
void retain(CommunicatorObject& self, std::vector<Array>& arrays, std::optional<StreamRef> stream);
// Keeps arrays whose memory was only lent as long as the stream needs them, even if the Work is
// dropped.
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
