// The collectives whose parts are of a size of their own.
#include "interfaces/capi/collective.h"

using hocket::capi::Collective;
using hocket::capi::guarded;

int hocket_all_gather_v(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        const hocket_parts* parts,
                        const hocket_call_options* options) {
  return guarded("hocket_all_gather_v", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.comm().all_gather_v(call.input(in), call.output(out), call.parts(parts), o);
  });
}
int hocket_all_gather_v_async(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_array* out,
                              const hocket_parts* parts,
                              const hocket_call_options* options,
                              hocket_work** work) {
  return guarded("hocket_all_gather_v_async", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.start(work, [&] {
      return call.comm().all_gather_v_async(call.input(in), call.output(out), call.parts(parts), o);
    });
  });
}

int hocket_gather_v(hocket_comm* comm,
                    const hocket_array* in,
                    const hocket_array* out,
                    const hocket_parts* parts,
                    int32_t root,
                    const hocket_call_options* options) {
  return guarded("hocket_gather_v", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.comm().gather_v(call.input(in), call.output(out), call.parts(parts), o);
  });
}
int hocket_gather_v_async(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          const hocket_parts* parts,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_work** work) {
  return guarded("hocket_gather_v_async", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.start(work, [&] {
      return call.comm().gather_v_async(call.input(in), call.output(out), call.parts(parts), o);
    });
  });
}

int hocket_scatter_v(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_parts* parts,
                     const hocket_array* out,
                     int32_t root,
                     const hocket_call_options* options) {
  return guarded("hocket_scatter_v", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.comm().scatter_v(call.input(in), call.parts(parts), call.output(out), o);
  });
}
int hocket_scatter_v_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_parts* parts,
                           const hocket_array* out,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work) {
  return guarded("hocket_scatter_v_async", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.start(work, [&] {
      return call.comm().scatter_v_async(call.input(in), call.parts(parts), call.output(out), o);
    });
  });
}

int hocket_all_to_all_v(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_parts* in_parts,
                        const hocket_array* out,
                        const hocket_parts* out_parts,
                        const hocket_call_options* options) {
  return guarded("hocket_all_to_all_v", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.comm().all_to_all_v(
        call.input(in), call.parts(in_parts), call.output(out), call.parts(out_parts), o);
  });
}
int hocket_all_to_all_v_async(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_parts* in_parts,
                              const hocket_array* out,
                              const hocket_parts* out_parts,
                              const hocket_call_options* options,
                              hocket_work** work) {
  return guarded("hocket_all_to_all_v_async", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.start(work, [&] {
      return call.comm().all_to_all_v_async(
          call.input(in), call.parts(in_parts), call.output(out), call.parts(out_parts), o);
    });
  });
}

int hocket_reduce_scatter_v(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const size_t* counts,
                            size_t length,
                            int32_t op,
                            const hocket_call_options* options) {
  return guarded("hocket_reduce_scatter_v", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.comm().reduce_scatter_v(call.input(in), call.output(out), call.counts(counts, length), o);
  });
}
int hocket_reduce_scatter_v_async(hocket_comm* comm,
                                  const hocket_array* in,
                                  const hocket_array* out,
                                  const size_t* counts,
                                  size_t length,
                                  int32_t op,
                                  const hocket_call_options* options,
                                  hocket_work** work) {
  return guarded("hocket_reduce_scatter_v_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.start(work, [&] {
      return call.comm().reduce_scatter_v_async(
          call.input(in), call.output(out), call.counts(counts, length), o);
    });
  });
}
