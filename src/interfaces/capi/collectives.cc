// The collectives of one or two arrays. Each row of a table defines one verb. It lists the options
// in C++ and the parameters in C.
#include "interfaces/capi/forms.h"

using hocket::capi::Collective;
using hocket::capi::guarded;

#define READ(chosen)                    \
  const Collective call(comm, options); \
  const auto o = chosen

// Calls on parts of equal size, in place or not.
#define ON_ARRAYS(verb) call.on(in, out, [&](auto... a) { return call.comm().verb(a..., o); })
#define ROW(verb, chosen, ...)                                                                \
  HOCKET_C_CALL(hocket_##verb, (__VA_ARGS__), READ(chosen), ON_ARRAYS(verb))                  \
  HOCKET_C_START(hocket_##verb##_async, (__VA_ARGS__), READ(chosen), ON_ARRAYS(verb##_async)) \
  HOCKET_C_PREPARE(hocket_prepare_##verb, (__VA_ARGS__), READ(chosen), ON_ARRAYS(prepare_##verb))

ROW(all_reduce, call.reduce(op), HOCKET_C_ARRAYS, int32_t op)
ROW(reduce, call.reduce(op, root), HOCKET_C_ARRAYS, int32_t op, int32_t root)
ROW(scan, call.reduce(op), HOCKET_C_ARRAYS, int32_t op)
ROW(exscan, call.reduce(op), HOCKET_C_ARRAYS, int32_t op)
ROW(reduce_scatter, call.reduce(op), HOCKET_C_ARRAYS, int32_t op)
ROW(broadcast, call.root(root), HOCKET_C_ARRAYS, int32_t root)
ROW(all_gather, call.plain(), HOCKET_C_ARRAYS)
ROW(gather, call.root(root), HOCKET_C_ARRAYS, int32_t root)
ROW(scatter, call.root(root), HOCKET_C_ARRAYS, int32_t root)
ROW(all_to_all, call.plain(), HOCKET_C_ARRAYS)

#undef ROW
#undef ON_ARRAYS

// Calls on parts of different sizes (v-forms). `arguments` are the arguments of the C++ call before
// its options.
#define ON_PARTS(verb, arguments) call.comm().verb(HOCKET_C_LIST arguments, o)
#define ROW(verb, chosen, arguments, ...)                                              \
  HOCKET_C_CALL(hocket_##verb, (__VA_ARGS__), READ(chosen), ON_PARTS(verb, arguments)) \
  HOCKET_C_START(                                                                      \
      hocket_##verb##_async, (__VA_ARGS__), READ(chosen), ON_PARTS(verb##_async, arguments))

ROW(all_gather_v,
    call.plain(),
    (call.input(in), call.output(out), call.parts(parts)),
    HOCKET_C_ARRAYS,
    const hocket_parts* parts)
ROW(gather_v,
    call.root(root),
    (call.input(in), call.output(out), call.parts(parts)),
    HOCKET_C_ARRAYS,
    const hocket_parts* parts,
    int32_t root)
ROW(scatter_v,
    call.root(root),
    (call.input(in), call.parts(parts), call.output(out)),
    const hocket_array* in,
    const hocket_parts* parts,
    const hocket_array* out,
    int32_t root)
ROW(all_to_all_v,
    call.plain(),
    (call.input(in), call.parts(in_parts), call.output(out), call.parts(out_parts)),
    const hocket_array* in,
    const hocket_parts* in_parts,
    const hocket_array* out,
    const hocket_parts* out_parts)
ROW(reduce_scatter_v,
    call.reduce(op),
    (call.input(in), call.output(out), call.counts(counts, length)),
    HOCKET_C_ARRAYS,
    const size_t* counts,
    size_t length,
    int32_t op)

#undef ROW
#undef ON_PARTS

int hocket_barrier(hocket_comm* comm, const hocket_call_options* options) {
  return guarded("hocket_barrier", [&] {
    READ(call.plain());
    call.comm().barrier(o);
  });
}
int hocket_barrier_async(hocket_comm* comm,
                         const hocket_call_options* options,
                         hocket_work** work) {
  return guarded("hocket_barrier_async", [&] {
    READ(call.plain());
    call.start(work, [&] { return call.comm().barrier_async(o); });
  });
}

#undef READ
