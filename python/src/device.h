// GPU arrays: which stream a call goes on, and what must stay alive until it is through.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "hocket/gpu.h"
#include "seat.h"

namespace hocket::python {

// A raw handle, or a stream of CuPy, PyTorch, Numba, or anything with `__cuda_stream__`; None is
// none. Throws InvalidArgument.
std::optional<StreamRef> stream_argument(nb::handle stream);

// The GPU that holds an array.
const Gpu& gpu_of(const Array& array);

// Puts what is under way on an array's own stream before what comes on `stream`. Nothing where they
// are one, or `stream` is being captured into a graph, which cannot wait for what is outside of it.
void follow(const Array& array, std::optional<StreamRef> stream);

// The stream of a call: the one that is asked for, else the current one of the framework that the
// arrays belong to. It comes after what is under way on them elsewhere.
std::optional<StreamRef> stream_of(nb::handle asked, const Array& in, const Array& out);

template <typename Plan>
void choose_stream(Plan& plan, nb::handle asked) {
  plan.options.stream = stream_of(asked, plan.in, plan.out);
}

// Frameworks give memory back in the order of their own current stream. On another, and for memory
// that was only lent, the arrays have to be held until the call is through.
void retain(Seat& seat, std::initializer_list<Array*> arrays, std::optional<StreamRef> stream);
void retain(Seat& seat, std::vector<Array>& arrays, std::optional<StreamRef> stream);
// What was only lent, for as long as the stream needs it, whoever keeps the call's Work.
template <typename Plan>
void retain_lent(Seat& seat, Plan& plan) {
  const auto is_lent = [](const Array& array) { return array.is_on_gpu() && array.lease; };
  if (is_lent(plan.in) || is_lent(plan.out)) {
    retain(seat, {&plan.in, &plan.out}, plan.options.stream);
  }
}
template <typename Plan>
void retain(Seat& seat, Plan& plan) {
  if (plan.in.is_on_gpu() || plan.out.is_on_gpu()) {
    retain(seat, {&plan.in, &plan.out}, plan.options.stream);
  }
}

}  // namespace hocket::python
