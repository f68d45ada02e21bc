// Arguments of the v-forms, read.
//
// Python counts rows, the first axis: for one-dimensional arrays that is elements. Counts that are
// not given are exchanged here, by one small call, as the size of a new array follows from them.
#pragma once

#include "verbs.h"

namespace hocket::python {

// One for each v-form. Where arguments are refused, the other ranks learn it.
Plan<CallOptions> plan_all_gather_v(
    Seat& seat, nb::handle x, nb::handle out, nb::handle counts, nb::handle deadline);
Plan<RootOptions> plan_gather_v(Seat& seat,
                                nb::handle x,
                                nb::handle out,
                                nb::handle counts,
                                nb::handle root,
                                nb::handle deadline);
Plan<RootOptions> plan_scatter_v(Seat& seat,
                                 nb::handle x,
                                 nb::handle out,
                                 nb::handle counts,
                                 nb::handle root,
                                 nb::handle deadline);
Plan<CallOptions> plan_all_to_all_v(Seat& seat,
                                    nb::handle x,
                                    nb::handle counts,
                                    nb::handle out,
                                    nb::handle out_counts,
                                    nb::handle deadline);
Plan<ReduceOptions> plan_reduce_scatter_v(Seat& seat,
                                          nb::handle x,
                                          nb::handle out,
                                          nb::handle counts,
                                          nb::handle op,
                                          nb::handle deadline);

}  // namespace hocket::python
