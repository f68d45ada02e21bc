/* A part of hocket/c.h: reductions by a function of the program's own, argmin and argmax. */
#ifndef HOCKET_C_OPERATORS_H_
#define HOCKET_C_OPERATORS_H_

#include "hocket/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function that combines `count` elements: it replaces each element at `left` by its combination
 * with the element at `right`. It returns 0, or another number if it has failed. Then the call
 * fails with HOCKET_INVALID_ARGUMENT on all ranks, and the communicator stays usable. The function
 * must not call the communicator. */
typedef int (*hocket_combine)(void* left, const void* right, size_t count, void* context);

/* An operation of the program's own. Ranks are combined in their order: ((x0 op x1) op x2) ... So
 * the function need not be commutative or associative. `context` is passed to the function. It must
 * stay valid until the call, or the work that it started, has ended. */
typedef struct hocket_operator {
  size_t size; /* sizeof(hocket_operator) */
  hocket_combine combine;
  void* context;
  size_t unit; /* number of elements that belong together; `count` is a multiple; 0: 1 */
} hocket_operator;

/* Reduce arrays on the host with an operation of the program's own. Everything else is as for the
 * functions without `_by`. A thread that waits for a call of the communicator, or a thread of
 * hocket, moves a started call. The function runs in that thread. */
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

/* Find the extreme of each element over all ranks, and the lowest rank that holds it. A NaN is the
 * extreme of both calls. All arrays are on the host, or all are on the GPU. For GPUs the host
 * compares copies, in the order of the stream.
 * @param in The elements to compare.
 * @param index One integer for each element: this rank's name for it. Null if `indices` is null.
 * @param values Receives the extremes, with the dtype of `in`.
 * @param ranks Receives the ranks, with HOCKET_INT32.
 * @param indices Receives the integers of the ranks that hold the extremes, with the dtype of
 *   `index`. */
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

/* Prepare these calls; see hocket/c_calls.h. */
int hocket_prepare_all_reduce_by(hocket_comm* comm,
                                 const hocket_array* in,
                                 const hocket_array* out,
                                 const hocket_operator* op,
                                 const hocket_call_options* options,
                                 hocket_prepared** prepared);
int hocket_prepare_reduce_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             int32_t root,
                             const hocket_call_options* options,
                             hocket_prepared** prepared);
int hocket_prepare_reduce_scatter_by(hocket_comm* comm,
                                     const hocket_array* in,
                                     const hocket_array* out,
                                     const hocket_operator* op,
                                     const hocket_call_options* options,
                                     hocket_prepared** prepared);
int hocket_prepare_scan_by(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           const hocket_operator* op,
                           const hocket_call_options* options,
                           hocket_prepared** prepared);
int hocket_prepare_exscan_by(hocket_comm* comm,
                             const hocket_array* in,
                             const hocket_array* out,
                             const hocket_operator* op,
                             const hocket_call_options* options,
                             hocket_prepared** prepared);
int hocket_prepare_argmin(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* index,
                          const hocket_array* values,
                          const hocket_array* ranks,
                          const hocket_array* indices,
                          const hocket_call_options* options,
                          hocket_prepared** prepared);
int hocket_prepare_argmax(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* index,
                          const hocket_array* values,
                          const hocket_array* ranks,
                          const hocket_array* indices,
                          const hocket_call_options* options,
                          hocket_prepared** prepared);

#ifdef __cplusplus
}
#endif

#endif /* HOCKET_C_OPERATORS_H_ */
