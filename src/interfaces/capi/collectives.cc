// The collectives whose parts are of equal size.
#include "interfaces/capi/collective.h"

using hocket::capi::Collective;
using hocket::capi::guarded;

int hocket_all_reduce(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      int32_t op,
                      const hocket_call_options* options) {
  return guarded("hocket_all_reduce", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.on(in, out, [&](auto... arrays) { return call.comm().all_reduce(arrays..., o); });
  });
}
int hocket_all_reduce_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            int32_t op,
                            const hocket_call_options* options,
                            hocket_work** work) {
  return guarded("hocket_all_reduce_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().all_reduce_async(arrays..., o); });
    });
  });
}

int hocket_reduce(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t op,
                  int32_t root,
                  const hocket_call_options* options) {
  return guarded("hocket_reduce", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op, root);
    call.on(in, out, [&](auto... arrays) { return call.comm().reduce(arrays..., o); });
  });
}
int hocket_reduce_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t op,
                        int32_t root,
                        const hocket_call_options* options,
                        hocket_work** work) {
  return guarded("hocket_reduce_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op, root);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().reduce_async(arrays..., o); });
    });
  });
}

int hocket_scan(hocket_comm* comm,
                const hocket_array* in,
                const hocket_array* out,
                int32_t op,
                const hocket_call_options* options) {
  return guarded("hocket_scan", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.on(in, out, [&](auto... arrays) { return call.comm().scan(arrays..., o); });
  });
}
int hocket_scan_async(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      int32_t op,
                      const hocket_call_options* options,
                      hocket_work** work) {
  return guarded("hocket_scan_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.start(work, [&] {
      return call.on(in, out, [&](auto... arrays) { return call.comm().scan_async(arrays..., o); });
    });
  });
}

int hocket_exscan(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t op,
                  const hocket_call_options* options) {
  return guarded("hocket_exscan", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.on(in, out, [&](auto... arrays) { return call.comm().exscan(arrays..., o); });
  });
}
int hocket_exscan_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t op,
                        const hocket_call_options* options,
                        hocket_work** work) {
  return guarded("hocket_exscan_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().exscan_async(arrays..., o); });
    });
  });
}

int hocket_reduce_scatter(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          int32_t op,
                          const hocket_call_options* options) {
  return guarded("hocket_reduce_scatter", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.on(in, out, [&](auto... arrays) { return call.comm().reduce_scatter(arrays..., o); });
  });
}
int hocket_reduce_scatter_async(hocket_comm* comm,
                                const hocket_array* in,
                                const hocket_array* out,
                                int32_t op,
                                const hocket_call_options* options,
                                hocket_work** work) {
  return guarded("hocket_reduce_scatter_async", [&] {
    const Collective call(comm, options);
    const auto o = call.reduce(op);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().reduce_scatter_async(arrays..., o); });
    });
  });
}

int hocket_broadcast(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     int32_t root,
                     const hocket_call_options* options) {
  return guarded("hocket_broadcast", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.on(in, out, [&](auto... arrays) { return call.comm().broadcast(arrays..., o); });
  });
}
int hocket_broadcast_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work) {
  return guarded("hocket_broadcast_async", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().broadcast_async(arrays..., o); });
    });
  });
}

int hocket_all_gather(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      const hocket_call_options* options) {
  return guarded("hocket_all_gather", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.on(in, out, [&](auto... arrays) { return call.comm().all_gather(arrays..., o); });
  });
}
int hocket_all_gather_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const hocket_call_options* options,
                            hocket_work** work) {
  return guarded("hocket_all_gather_async", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().all_gather_async(arrays..., o); });
    });
  });
}

int hocket_gather(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t root,
                  const hocket_call_options* options) {
  return guarded("hocket_gather", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.on(in, out, [&](auto... arrays) { return call.comm().gather(arrays..., o); });
  });
}
int hocket_gather_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t root,
                        const hocket_call_options* options,
                        hocket_work** work) {
  return guarded("hocket_gather_async", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().gather_async(arrays..., o); });
    });
  });
}

int hocket_scatter(hocket_comm* comm,
                   const hocket_array* in,
                   const hocket_array* out,
                   int32_t root,
                   const hocket_call_options* options) {
  return guarded("hocket_scatter", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.on(in, out, [&](auto... arrays) { return call.comm().scatter(arrays..., o); });
  });
}
int hocket_scatter_async(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         int32_t root,
                         const hocket_call_options* options,
                         hocket_work** work) {
  return guarded("hocket_scatter_async", [&] {
    const Collective call(comm, options);
    const auto o = call.root(root);
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().scatter_async(arrays..., o); });
    });
  });
}

int hocket_all_to_all(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      const hocket_call_options* options) {
  return guarded("hocket_all_to_all", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.on(in, out, [&](auto... arrays) { return call.comm().all_to_all(arrays..., o); });
  });
}
int hocket_all_to_all_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const hocket_call_options* options,
                            hocket_work** work) {
  return guarded("hocket_all_to_all_async", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.start(work, [&] {
      return call.on(
          in, out, [&](auto... arrays) { return call.comm().all_to_all_async(arrays..., o); });
    });
  });
}

int hocket_barrier(hocket_comm* comm, const hocket_call_options* options) {
  return guarded("hocket_barrier", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.comm().barrier(o);
  });
}
int hocket_barrier_async(hocket_comm* comm,
                         const hocket_call_options* options,
                         hocket_work** work) {
  return guarded("hocket_barrier_async", [&] {
    const Collective call(comm, options);
    const auto o = call.plain();
    call.start(work, [&] { return call.comm().barrier_async(o); });
  });
}
