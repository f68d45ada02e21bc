// GPU arrays: which stream a call goes on, and what must stay alive until it is through.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "seat.h"

namespace hocket::python {

// A raw handle, or a stream of CuPy, PyTorch, Numba, or anything with `__cuda_stream__`; None is
// none. Throws InvalidArgument.
std::optional<StreamRef> stream_argument(nb::handle stream);

// The stream of a call: the one that is asked for, else the current one of the framework that the
// arrays belong to.
inline std::optional<StreamRef> stream_of(nb::handle asked, const Array& in, const Array& out) {
  if (!asked.is_none()) return stream_argument(asked);
  return out.is_on_gpu() ? out.stream : in.stream;
}

template <typename Plan>
void choose_stream(Plan& plan, nb::handle asked) {
  plan.options.stream = stream_of(asked, plan.in, plan.out);
}

// Frameworks give memory back in the order of their own current stream. On another, and for memory
// that was only lent, the arrays have to be held until the call is through.
void retain(Seat& seat, std::initializer_list<Array*> arrays, std::optional<StreamRef> stream);
void retain(Seat& seat, std::vector<Array>& arrays, std::optional<StreamRef> stream);
template <typename Plan>
void retain(Seat& seat, Plan& plan) {
  if (plan.in.is_on_gpu() || plan.out.is_on_gpu()) {
    retain(seat, {&plan.in, &plan.out}, plan.options.stream);
  }
}

}  // namespace hocket::python
