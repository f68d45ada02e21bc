/* A part of hocket/c.h: prepared calls, waits for several works, several arrays in one call, sums
 * that are reproducible, compressed or made in steps, and objects between two ranks. */
#ifndef HOCKET_C_CALLS_H_
#define HOCKET_C_CALLS_H_

#include "hocket/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Prepared calls --------------------------------------------------------------------------- */

/* Prepared calls are checked once and can be repeated on the same arrays. All ranks must prepare
 * and make the same calls. The arrays must stay in place until the handle is freed. */
/* Makes the call, and blocks. */
int hocket_prepared_call(hocket_prepared* prepared);
/* Starts the call, as the functions that end in _async do. */
int hocket_prepared_start(hocket_prepared* prepared, hocket_work** work);
void hocket_prepared_free(hocket_prepared** prepared);

/* Prepare a call. The arguments are those of the call itself. */
int hocket_prepare_all_reduce(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_array* out,
                              int32_t op,
                              const hocket_call_options* options,
                              hocket_prepared** prepared);
int hocket_prepare_reduce(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          int32_t op,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_prepared** prepared);
int hocket_prepare_scan(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t op,
                        const hocket_call_options* options,
                        hocket_prepared** prepared);
int hocket_prepare_exscan(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          int32_t op,
                          const hocket_call_options* options,
                          hocket_prepared** prepared);
int hocket_prepare_reduce_scatter(hocket_comm* comm,
                                  const hocket_array* in,
                                  const hocket_array* out,
                                  int32_t op,
                                  const hocket_call_options* options,
                                  hocket_prepared** prepared);
int hocket_prepare_broadcast(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             int32_t root,
                             const hocket_call_options* options,
                             hocket_prepared** prepared);
int hocket_prepare_all_gather(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_array* out,
                              const hocket_call_options* options,
                              hocket_prepared** prepared);
int hocket_prepare_gather(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_prepared** prepared);
int hocket_prepare_scatter(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_prepared** prepared);
int hocket_prepare_all_to_all(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_array* out,
                              const hocket_call_options* options,
                              hocket_prepared** prepared);

/* --- Several works ---------------------------------------------------------------------------- */

/* Wait for several works, of any communicators, at most `timeout_ns` or HOCKET_FOREVER. If the time
 * runs out, the calls go on. No other thread may use these works meanwhile. */
/* Waits until at least one call has ended, with or without error. `indices` has room for `count`
 * entries. It gets the positions in `works` of all calls that have ended, in order. `found` gets
 * their number, and 0 if the time ran out. hocket_work_wait returns the error of each call. */
int hocket_wait_some(
    hocket_work* const* works, size_t count, int64_t timeout_ns, size_t* indices, size_t* found);
/* Does the same, but gives only the first of these positions. `done` is 0 if the time ran out. */
int hocket_wait_any(
    hocket_work* const* works, size_t count, int64_t timeout_ns, size_t* index, int* done);
/* Waits for all calls, in order, and returns the error of the first one that failed. `done` is 0 if
 * the time ran out. */
int hocket_wait_all(hocket_work* const* works, size_t count, int64_t timeout_ns, int* done);

typedef void (*hocket_callback)(void* context);
/* Calls `f` with `context` once when the call ends, or at once if it has ended already. `f` runs in
 * the thread that ended the call, so it must not block. It must not make calls of the same
 * communicator, which are refused: see Work::on_done of hocket/work.h. A null `f` is refused, and
 * the call goes on. */
int hocket_work_on_done(hocket_work* work, hocket_callback f, void* context);

/* --- Several arrays in one call --------------------------------------------------------------- */

/* Work in place on `count` arrays, which may differ in dtype and size. All ranks pass the same
 * list. */
int hocket_all_reduce_coalesced(hocket_comm* comm,
                                const hocket_array* arrays,
                                size_t count,
                                int32_t op,
                                const hocket_call_options* options);
int hocket_broadcast_coalesced(hocket_comm* comm,
                               const hocket_array* arrays,
                               size_t count,
                               int32_t root,
                               const hocket_call_options* options);
/* all_gather gathers each in[i] into out[i]. reduce_scatter reduces each in[i] and scatters it into
 * out[i]. */
int hocket_all_gather_coalesced(hocket_comm* comm,
                                const hocket_array* in,
                                const hocket_array* out,
                                size_t count,
                                const hocket_call_options* options);
int hocket_reduce_scatter_coalesced(hocket_comm* comm,
                                    const hocket_array* in,
                                    const hocket_array* out,
                                    size_t count,
                                    int32_t op,
                                    const hocket_call_options* options);

/* --- Sums of other kinds ---------------------------------------------------------------------- */

/* Computes a sum whose bits depend only on the shards. `shards` has this rank's shards, one after
 * the other, each as long as `out`. `op` is HOCKET_SUM, or HOCKET_AVG over the shards. */
int hocket_reproducible_sum(hocket_comm* comm,
                            const hocket_array* shards,
                            const hocket_array* out,
                            int32_t op,
                            const hocket_call_options* options);
/* Computes the sum or mean of floats in place. Messages carry 8 bits for each element.
 * hocket/compression.h has the bound of the error. */
int hocket_compressed_all_reduce(hocket_comm* comm,
                                 const hocket_array* inout,
                                 int32_t op,
                                 const hocket_call_options* options);
/* Computes an all_reduce in place, in three steps: reduce to the first rank of each host,
 * all_reduce between these first ranks, and broadcast on each host. `compressed` is 1 to send 8
 * bits for each element between hosts, or 0. */
int hocket_hierarchical_all_reduce(hocket_comm* comm,
                                   const hocket_array* inout,
                                   int32_t op,
                                   int32_t compressed,
                                   const hocket_call_options* options);

/* --- Reports ---------------------------------------------------------------------------------- */

/* Writes this rank's last calls, and the calls of other ranks that it knows, to a file in
 * `directory`. Null: the folder that HOCKET_DUMP_DIR names. Any thread may call it. */
int hocket_comm_dump(const hocket_comm* comm, const char* directory);

/* --- Objects between two ranks ---------------------------------------------------------------- */

/* Sends an object to one rank, which receives it by hocket_recv_object. */
int hocket_send_object(hocket_comm* comm,
                       const hocket_object* object,
                       int32_t destination,
                       int32_t tag,
                       const hocket_call_options* options);
/* Receives an object. `source` may be HOCKET_ANY_SOURCE. `from` gets the sender, and may be
 * null. */
int hocket_recv_object(hocket_comm* comm,
                       int32_t source,
                       int32_t tag,
                       const hocket_call_options* options,
                       hocket_object** result,
                       int32_t* from);

/* --- Objects without waiting ------------------------------------------------------------------ */

/* Start the calls of objects. They read their objects before they return. A collective takes two
 * numbers in the order of calls, like its blocking form. */
int hocket_broadcast_object_async(hocket_comm* comm,
                                  const hocket_object* object,
                                  int32_t root,
                                  const hocket_call_options* options,
                                  hocket_work** work);
int hocket_gather_object_async(hocket_comm* comm,
                               const hocket_object* object,
                               int32_t root,
                               const hocket_call_options* options,
                               hocket_work** work);
int hocket_all_gather_object_async(hocket_comm* comm,
                                   const hocket_object* object,
                                   const hocket_call_options* options,
                                   hocket_work** work);
int hocket_scatter_object_async(hocket_comm* comm,
                                const hocket_object* const* objects,
                                size_t length,
                                int32_t root,
                                const hocket_call_options* options,
                                hocket_work** work);
int hocket_send_object_async(hocket_comm* comm,
                             const hocket_object* object,
                             int32_t destination,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_work** work);
int hocket_recv_object_async(hocket_comm* comm,
                             int32_t source,
                             int32_t tag,
                             const hocket_call_options* options,
                             hocket_work** work);
/* Gives the objects of a call that has succeeded. The caller frees them. A gather gives one object
 * for each rank at its root, or on all ranks for all_gather, and none elsewhere. All other calls
 * give one object. `results` has `length` places, and `count` gets the number of objects. With too
 * few places no object is given. `from` gets the sender of an object that was received, and may be
 * null. */
int hocket_work_objects(
    hocket_work* work, hocket_object** results, size_t length, size_t* count, int32_t* from);

#ifdef __cplusplus
}
#endif

#endif /* HOCKET_C_CALLS_H_ */
