// The three ways to make one collective call (block, start, prepare), written once.
#pragma once

#include <utility>

#include "device.h"

namespace hocket::python {

// A call whose arguments have been read. `result` is what Python gets back.
template <typename Options>
struct Plan {
  Array in;
  Array out;
  bool in_place = false;  // `out` is the one array
  Options options;
  nb::object result = nb::none();
};

// Reads a collective call's arguments by `read`. Where they are refused, the other ranks learn it.
template <typename Read>
auto read_arguments(Seat& seat, Read&& read) {
  try {
    return read();
  } catch (...) {
    announce_refusal(seat);
    throw;
  }
}

template <typename Options>
Plan<Options> on_stream(Plan<Options> plan, nb::handle stream) {
  choose_stream(plan, stream);
  return plan;
}

// `Verbs` names one collective:
//   static void block(Communicator&, auto&&...);
//   static Work start(Communicator&, auto&&...);
//   static Prepared prepare(Communicator&, const Plan<Options>&);
template <typename Verbs, typename Read>
nb::object block(Seat& seat, nb::handle stream, Read&& read) {
  auto plan = read_arguments(seat, [&] { return on_stream(read(), stream); });
  without_gil([&] {
    if (plan.in_place) {
      Verbs::block(seat.comm, plan.out.output(), plan.options);
    } else {
      Verbs::block(seat.comm, plan.in.input(), plan.out.output(), plan.options);
    }
  });
  retain(seat, plan);
  return std::move(plan.result);
}

template <typename Verbs, typename Read>
WorkHandle start(Seat& seat, nb::handle stream, Read&& read) {
  auto plan = read_arguments(seat, [&] { return on_stream(read(), stream); });
  WorkHandle handle;
  keep(handle, plan.in, plan.out);
  handle.result = std::move(plan.result);
  handle.work = without_gil([&] {
    return plan.in_place
               ? Verbs::start(seat.comm, plan.out.output(), plan.options)
               : Verbs::start(seat.comm, plan.in.input(), plan.out.output(), plan.options);
  });
  return handle;
}

template <typename Verbs, typename Read>
PreparedHandle prepare(Seat& seat, nb::handle stream, Read&& read) {
  auto plan = read_arguments(seat, [&] { return on_stream(read(), stream); });
  PreparedHandle handle{.call = without_gil([&] { return Verbs::prepare(seat.comm, plan); })};
  keep(handle, plan.in, plan.out);
  handle.result = std::move(plan.result);
  return handle;
}

}  // namespace hocket::python
