// Reads the arguments of the v-forms.
//
// Python's counts are rows along the first axis. If the caller passes no counts, the ranks exchange
// them here by a small call, because the counts decide the size of a new array.
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
