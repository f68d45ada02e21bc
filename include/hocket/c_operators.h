/* A part of hocket/c.h: reductions by a function of the program's own, and who has the extreme. */
#ifndef HOCKET_C_OPERATORS_H_
#define HOCKET_C_OPERATORS_H_

#include "hocket/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces each of the `count` elements at `left` by itself and what is at `right`, combined. What
 * is returned is 0, or says that it has failed: then the call fails with HOCKET_INVALID_ARGUMENT on
 * all ranks, which can go on. It must not call the communicator. */
typedef int (*hocket_combine)(void* left, const void* right, size_t count, void* context);

/* How to combine; `context` goes to the function, and must stay until the call, or the work that it
 * started, has ended. The ranks are taken in their order: ((x0 op x1) op x2) ... So the function
 * may be neither commutative nor associative. */
typedef struct hocket_operator {
  size_t size; /* sizeof(hocket_operator) */
  hocket_combine combine;
  void* context;
  size_t unit; /* so many elements are combined together, `count` being a multiple; 0 is 1 */
} hocket_operator;

/* Arrays are on the host, and otherwise as for the functions without `_by`. A call that is started
 * is moved by whoever waits for one of the communicator, or by a thread of hocket's: there the
 * function is called. */
int hocket_all_reduce_by(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         const hocket_operator* op,
                         const hocket_call_options* options);
int hocket_all_reduce_by_async(hocket_comm* comm,
                               const hocket_array* in,
                               const hocket_array* out,
                               const hocket_operator* op,
                               const hocket_call_options* options,
                               hocket_work** work);
int hocket_reduce_by(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     const hocket_operator* op,
                     int32_t root,
                     const hocket_call_options* options);
int hocket_reduce_by_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work);
int hocket_reduce_scatter_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             const hocket_call_options* options);
int hocket_reduce_scatter_by_async(hocket_comm* comm,
                                   const hocket_array* in,
                                   const hocket_array* out,
                                   const hocket_operator* op,
                                   const hocket_call_options* options,
                                   hocket_work** work);
int hocket_scan_by(hocket_comm* comm,
                   const hocket_array* in,
                   const hocket_array* out,
                   const hocket_operator* op,
                   const hocket_call_options* options);
int hocket_scan_by_async(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         const hocket_operator* op,
                         const hocket_call_options* options,
                         hocket_work** work);
int hocket_exscan_by(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     const hocket_operator* op,
                     const hocket_call_options* options);
int hocket_exscan_by_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           const hocket_call_options* options,
                           hocket_work** work);

/* Of each element of `in` the extreme over all ranks, the lowest rank that brings it, and what that
 * rank knows it by: `index` has integers, one an element; it and `indices` are both null, or
 * neither. `values` is of the dtype of `in`, `ranks` of HOCKET_INT32, `indices` of that of `index`.
 * A NaN is the extreme of both. All arrays are on the host, or all on the GPU: then the host
 * compares copies, in the order of the stream. */
int hocket_argmin(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* index,
                  const hocket_array* values,
                  const hocket_array* ranks,
                  const hocket_array* indices,
                  const hocket_call_options* options);
int hocket_argmin_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* index,
                        const hocket_array* values,
                        const hocket_array* ranks,
                        const hocket_array* indices,
                        const hocket_call_options* options,
                        hocket_work** work);
int hocket_argmax(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* index,
                  const hocket_array* values,
                  const hocket_array* ranks,
                  const hocket_array* indices,
                  const hocket_call_options* options);
int hocket_argmax_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* index,
                        const hocket_array* values,
                        const hocket_array* ranks,
                        const hocket_array* indices,
                        const hocket_call_options* options,
                        hocket_work** work);

#ifdef __cplusplus
}
#endif

#endif /* HOCKET_C_OPERATORS_H_ */
