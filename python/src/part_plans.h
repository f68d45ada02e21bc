// Reads the arguments of the v-forms.
//
// Python counts rows, the first axis; for one-dimensional arrays these are elements. Absent counts
// are exchanged here by one small call, as the size of a new array follows from them.
#pragma once

#include "verbs.h"

namespace hocket::python {

// One function for each v-form. If arguments are refused, the other ranks are told.
Plan<CallOptions> plan_all_gather_v(
    CommunicatorObject& self, nb::handle x, nb::handle out, nb::handle counts, nb::handle deadline);
Plan<RootOptions> plan_gather_v(CommunicatorObject& self,
                                nb::handle x,
                                nb::handle out,
                                nb::handle counts,
                                nb::handle root,
                                nb::handle deadline);
Plan<RootOptions> plan_scatter_v(CommunicatorObject& self,
                                 nb::handle x,
                                 nb::handle out,
                                 nb::handle counts,
                                 nb::handle root,
                                 nb::handle deadline);
Plan<CallOptions> plan_all_to_all_v(CommunicatorObject& self,
                                    nb::handle x,
                                    nb::handle counts,
                                    nb::handle out,
                                    nb::handle out_counts,
                                    nb::handle deadline);
Plan<ReduceOptions> plan_reduce_scatter_v(CommunicatorObject& self,
                                          nb::handle x,
                                          nb::handle out,
                                          nb::handle counts,
                                          nb::handle op,
                                          nb::handle deadline);

}  // namespace hocket::python
