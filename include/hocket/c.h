/* hocket for C, and for whatever can call C: Fortran, Python's ctypes, Julia, Rust.
 *
 *     hocket_comm *world = NULL;
 *     if (hocket_init(NULL, &world) != HOCKET_OK) return fail(hocket_error_message());
 *     hocket_array x = {data, count, HOCKET_FLOAT32, HOCKET_MEMORY_HOST};
 *     hocket_all_reduce(world, NULL, &x, HOCKET_SUM, NULL);
 *     hocket_comm_free(&world);
 *
 * Every function returns a code, HOCKET_OK or what went wrong, and lets no exception out. After a
 * failure `hocket_error_message` says what happened, to whom, and what to try; the text belongs to
 * the calling thread. Results go through pointers, which are left alone where the call fails.
 *
 * Handles are opaque. `..._free` takes the address of a handle, releases it and sets it to null, as
 * which it is refused, not used. A copy of a handle that has been freed must not be used.
 *
 * Structs of options begin with their size, which the caller sets to `sizeof`; what is zero has its
 * default. Later versions add fields at the end, and a program that was built with a smaller struct
 * goes on to work. Where a parameter is a pointer to options, null means all defaults.
 *
 * What is declared here stays as it is through all versions 0.x: numbers, fields and functions.
 */
#ifndef HOCKET_C_H_
#define HOCKET_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. */
enum {
  HOCKET_OK = 0,
  HOCKET_INVALID_ARGUMENT = 1,  /* the call was refused; the communicator stays usable */
  HOCKET_PEER_DIED = 2,         /* a rank's process ended while it was needed */
  HOCKET_DEADLINE_EXCEEDED = 3, /* a call did not finish in time */
  HOCKET_MISMATCH = 4,          /* ranks called different things */
  HOCKET_ABORTED = 5,           /* a rank called abort or rebuild, or gave a call up */
  HOCKET_RENDEZVOUS = 6,        /* the ranks could not find or trust each other */
  HOCKET_SYSTEM = 7,            /* the operating system refused something */
  HOCKET_DEVICE = 8,            /* a GPU, its driver or its libraries refused something */
  HOCKET_NO_MEMORY = 9,         /* this process got no memory */
  HOCKET_INTERNAL = 10,         /* an error in hocket itself */
  HOCKET_DEADLOCK = 11          /* ranks wait for each other, and no call of theirs can end */
};

/* Types of elements. */
enum {
  HOCKET_BOOL = 0,
  HOCKET_INT8 = 1,
  HOCKET_INT16 = 2,
  HOCKET_INT32 = 3,
  HOCKET_INT64 = 4,
  HOCKET_UINT8 = 5,
  HOCKET_UINT16 = 6,
  HOCKET_UINT32 = 7,
  HOCKET_UINT64 = 8,
  HOCKET_FLOAT16 = 9,
  HOCKET_BFLOAT16 = 10,
  HOCKET_FLOAT32 = 11,
  HOCKET_FLOAT64 = 12,
  HOCKET_COMPLEX64 = 13,
  HOCKET_COMPLEX128 = 14,
  HOCKET_FLOAT8_E4M3 = 15,
  HOCKET_FLOAT8_E5M2 = 16
};

/* What a reduction does with two elements. */
enum {
  HOCKET_SUM = 0,
  HOCKET_PRODUCT = 1,
  HOCKET_MIN = 2,
  HOCKET_MAX = 3,
  HOCKET_AVG = 4,
  HOCKET_BIT_AND = 5,
  HOCKET_BIT_OR = 6,
  HOCKET_BIT_XOR = 7
};

/* Where an array lives. */
enum {
  HOCKET_MEMORY_DEFAULT = 0, /* of an array: the host's; of a symmetric one: where calls are made */
  HOCKET_MEMORY_HOST = 1,
  HOCKET_MEMORY_CUDA = 2
};

/* A time without end, in nanoseconds. */
#define HOCKET_FOREVER INT64_MAX
/* The source of a message from whoever sends first. */
#define HOCKET_ANY_SOURCE (-1)
/* The tag of a receive or a probe of whatever comes first, onto the host. */
#define HOCKET_ANY_TAG (-1)
/* Nobody: a message to or from it is through at once, and moves nothing. */
#define HOCKET_NULL_RANK (-2)

/* An array: a value that owns nothing. The elements must stay where they are until the call, or the
 * work that it started, has ended. */
typedef struct hocket_array {
  void* data;
  size_t count;   /* elements */
  int32_t dtype;  /* HOCKET_FLOAT32, ... */
  int32_t memory; /* HOCKET_MEMORY_HOST or HOCKET_MEMORY_CUDA */
} hocket_array;

typedef struct hocket_comm hocket_comm;           /* a seat in a set of ranks */
typedef struct hocket_work hocket_work;           /* a call that was started */
typedef struct hocket_symmetric hocket_symmetric; /* an array that peers can reach */
typedef struct hocket_object hocket_object;       /* a value that is no array */

/* --- Versions, names, errors ----------------------------------------------------------------- */

const char* hocket_version(void); /* "0.1.0" */
/* Bytes of an element; 0 where there is no such type. */
size_t hocket_dtype_size(int32_t dtype);
/* "float32", "sum", "peer_died"; null where there is no such thing. */
const char* hocket_dtype_name(int32_t dtype);
const char* hocket_op_name(int32_t op);
const char* hocket_code_name(int code);

/* What the last failure of this thread was: never null, "" where there was none. It stays until
 * another call of this thread fails. */
const char* hocket_error_message(void);

typedef struct hocket_error_info {
  size_t size; /* sizeof(hocket_error_info), before the call */
  int32_t code;
  int32_t rank;        /* that reports; -1: unknown, in all that follow */
  int32_t peer;        /* that caused it */
  int32_t signal;      /* of HOCKET_PEER_DIED: what ended the process; 0: nothing, or unknown */
  uint64_t sequence;   /* the call's number in its communicator, from 1; 0: unknown */
  const char* message; /* these belong to the thread, as hocket_error_message */
  const char* communicator; /* its name */
  const char* operation;    /* "all_reduce" */
  const char* host;         /* of the peer */
  const int32_t* missing;   /* of HOCKET_DEADLINE_EXCEEDED: who had not come */
  size_t missing_count;
} hocket_error_info;
int hocket_error_details(hocket_error_info* info);

/* --- Joining, communicators ------------------------------------------------------------------ */

typedef struct hocket_init_options {
  size_t size;          /* sizeof(hocket_init_options) */
  int32_t ranks;        /* how many ranks; 0: as the launcher says, and `rank` does not count */
  int32_t rank;         /* which of them this process is */
  const char* address;  /* "host:port" of rank 0, or "unix:NAME"; null: as the launcher says */
  const char* key_file; /* what `hocket key` made; null: as the environment says */
  int64_t timeout_ns;   /* for joining; 0: 300 s */
  int64_t deadline_ns;  /* of calls; 0: HOCKET_DEADLINE, or 300 s */
  const char* engines;  /* "shm,ucx", best first; null: all there are */
  const char* name;     /* in messages; null: "world" */
} hocket_init_options;

/* Joins the job that this process was started in, or makes one of a single rank. */
int hocket_init(const hocket_init_options* options, hocket_comm** world);

/* Every call of a communicator has these. */
typedef struct hocket_call_options {
  size_t size;         /* sizeof(hocket_call_options) */
  int64_t deadline_ns; /* how long it may take; 0: the communicator's default */
  void* stream;        /* a CUstream or cudaStream_t, for arrays in a GPU's memory */
  int32_t on_stream;   /* 1: also where `stream` is null, the legacy default stream */
  /* Of hocket_recv and hocket_recv_async, onto the host: 1 where fewer elements than the array has
   * may come. They fill its beginning. */
  int32_t allow_shorter;
} hocket_call_options;

int hocket_comm_rank(const hocket_comm* comm, int* rank); /* -1: no member */
int hocket_comm_size(const hocket_comm* comm, int* size);
int hocket_comm_epoch(const hocket_comm* comm, int* epoch);       /* how often it was rebuilt */
int hocket_comm_name(const hocket_comm* comm, const char** name); /* as long as `comm` */
/* For each member, in order: its rank in the world; the number of its host. `length` is that of the
 * array, the communicator's size at least. */
int hocket_comm_world_ranks(const hocket_comm* comm, int32_t* ranks, size_t length);
int hocket_comm_hosts(const hocket_comm* comm, int32_t* hosts, size_t length);
int hocket_comm_deadline(const hocket_comm* comm, int64_t* deadline_ns);
int hocket_comm_set_deadline(hocket_comm* comm, int64_t deadline_ns);
/* Whether this rank keeps an audit of the calls, for `hocket trace --diff`: 1 or 0. Communicators
 * made of it do as it does. Without HOCKET_AUDIT the file lies beside the trace, or in
 * hocket-audit. */
int hocket_comm_audited(const hocket_comm* comm, int* audited);
int hocket_comm_set_audited(hocket_comm* comm, int audited);
/* HOCKET_OK while it works, else the error that ended it. */
int hocket_comm_status(const hocket_comm* comm);
/* Ends the calls of all ranks with HOCKET_ABORTED, now. `reason` may be null. */
int hocket_comm_abort(hocket_comm* comm, const char* reason);
/* Gives back what it holds; calls afterwards are refused. Says what ended a call on a GPU that the
 * program has not been told of. Local. */
int hocket_comm_close(hocket_comm* comm);
/* Frees the handle, which need not be closed. Null, and the address of null, are fine. */
void hocket_comm_free(hocket_comm** comm);

/* Groups: collective calls of `comm`, of which every rank gets a communicator, members or not. */
int hocket_new_group(hocket_comm* comm,
                     const int32_t* ranks,
                     size_t length,
                     const hocket_call_options* options,
                     hocket_comm** group);
/* Ranks of equal color; negative: none. Ordered by key, then by rank. */
int hocket_split(hocket_comm* comm,
                 int32_t color,
                 int32_t key,
                 const hocket_call_options* options,
                 hocket_comm** group);
int hocket_duplicate(hocket_comm* comm, const hocket_call_options* options, hocket_comm** copy);
/* The members on this rank's host; those with its number on their hosts. */
int hocket_intra_node(hocket_comm* comm, hocket_comm** group);
int hocket_inter_node(hocket_comm* comm, hocket_comm** group);

typedef struct hocket_rebuild_options {
  size_t size;             /* sizeof(hocket_rebuild_options) */
  int64_t deadline_ns;     /* for ranks that live and do not come; 0: the communicator's */
  int32_t exclude_missing; /* 1: go on without them then, instead of failing */
  int32_t allow_minority;  /* 1: go on though as many may do the same elsewhere */
} hocket_rebuild_options;
/* After a failure: the communicator of those that are left. */
int hocket_rebuild(hocket_comm* comm, const hocket_rebuild_options* options, hocket_comm** next);

/* --- Collectives ----------------------------------------------------------------------------- */

/* `in` null: in place, `out` holds the input. `out` null: this rank gets no result (reduce and
 * gather, but at the root). Counts for n ranks, where a rank's part is `share`:
 *
 *   call             in           out          in place
 *   all_reduce       count        count        count
 *   reduce           count        at the root  count
 *   broadcast        at the root  count        count
 *   all_gather       share        n * share    n * share, own at rank * share
 *   gather           share        n * share    root: as all_gather; else share
 *   scatter          n * share    share        root: n * share, own stays; else share
 *   reduce_scatter   n * share    share        n * share, result first; or out: own part of in
 *   all_to_all       n * share    n * share    n * share
 *
 * A call that ends in _async starts the same and returns; see hocket_work_wait. */
int hocket_all_reduce(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      int32_t op,
                      const hocket_call_options* options);
int hocket_all_reduce_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            int32_t op,
                            const hocket_call_options* options,
                            hocket_work** work);
int hocket_reduce(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t op,
                  int32_t root,
                  const hocket_call_options* options);
int hocket_reduce_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t op,
                        int32_t root,
                        const hocket_call_options* options,
                        hocket_work** work);
/* Combines what ranks 0 to this one bring; exscan leaves out this rank's own, and rank 0's `out`
 * as it is. */
int hocket_scan(hocket_comm* comm,
                const hocket_array* in,
                const hocket_array* out,
                int32_t op,
                const hocket_call_options* options);
int hocket_scan_async(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      int32_t op,
                      const hocket_call_options* options,
                      hocket_work** work);
int hocket_exscan(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t op,
                  const hocket_call_options* options);
int hocket_exscan_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t op,
                        const hocket_call_options* options,
                        hocket_work** work);
int hocket_reduce_scatter(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          int32_t op,
                          const hocket_call_options* options);
int hocket_reduce_scatter_async(hocket_comm* comm,
                                const hocket_array* in,
                                const hocket_array* out,
                                int32_t op,
                                const hocket_call_options* options,
                                hocket_work** work);
int hocket_broadcast(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_array* out,
                     int32_t root,
                     const hocket_call_options* options);
int hocket_broadcast_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_array* out,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work);
int hocket_all_gather(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      const hocket_call_options* options);
int hocket_all_gather_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const hocket_call_options* options,
                            hocket_work** work);
int hocket_gather(hocket_comm* comm,
                  const hocket_array* in,
                  const hocket_array* out,
                  int32_t root,
                  const hocket_call_options* options);
int hocket_gather_async(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        int32_t root,
                        const hocket_call_options* options,
                        hocket_work** work);
int hocket_scatter(hocket_comm* comm,
                   const hocket_array* in,
                   const hocket_array* out,
                   int32_t root,
                   const hocket_call_options* options);
int hocket_scatter_async(hocket_comm* comm,
                         const hocket_array* in,
                         const hocket_array* out,
                         int32_t root,
                         const hocket_call_options* options,
                         hocket_work** work);
int hocket_all_to_all(hocket_comm* comm,
                      const hocket_array* in,
                      const hocket_array* out,
                      const hocket_call_options* options);
int hocket_all_to_all_async(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const hocket_call_options* options,
                            hocket_work** work);
int hocket_barrier(hocket_comm* comm, const hocket_call_options* options);
int hocket_barrier_async(hocket_comm* comm, const hocket_call_options* options, hocket_work** work);

/* Parts of unequal size: elements a rank, and where each rank's part begins, both as many as the
 * communicator has ranks. */
typedef struct hocket_parts {
  const size_t* counts; /* null: the ranks are asked first, a small call more on all of them */
  const size_t* displacements; /* null: the parts lie one after the other */
  size_t length;               /* of both */
} hocket_parts;

/* `parts` null: as with null counts. Of gather_v they matter at the root; so do those of scatter_v,
 * which must be given there, and those of what all_to_all_v sends. */
int hocket_all_gather_v(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_array* out,
                        const hocket_parts* parts,
                        const hocket_call_options* options);
int hocket_all_gather_v_async(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_array* out,
                              const hocket_parts* parts,
                              const hocket_call_options* options,
                              hocket_work** work);
int hocket_gather_v(hocket_comm* comm,
                    const hocket_array* in,
                    const hocket_array* out,
                    const hocket_parts* parts,
                    int32_t root,
                    const hocket_call_options* options);
int hocket_gather_v_async(hocket_comm* comm,
                          const hocket_array* in,
                          const hocket_array* out,
                          const hocket_parts* parts,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_work** work);
int hocket_scatter_v(hocket_comm* comm,
                     const hocket_array* in,
                     const hocket_parts* parts,
                     const hocket_array* out,
                     int32_t root,
                     const hocket_call_options* options);
int hocket_scatter_v_async(hocket_comm* comm,
                           const hocket_array* in,
                           const hocket_parts* parts,
                           const hocket_array* out,
                           int32_t root,
                           const hocket_call_options* options,
                           hocket_work** work);
int hocket_all_to_all_v(hocket_comm* comm,
                        const hocket_array* in,
                        const hocket_parts* in_parts,
                        const hocket_array* out,
                        const hocket_parts* out_parts,
                        const hocket_call_options* options);
int hocket_all_to_all_v_async(hocket_comm* comm,
                              const hocket_array* in,
                              const hocket_parts* in_parts,
                              const hocket_array* out,
                              const hocket_parts* out_parts,
                              const hocket_call_options* options,
                              hocket_work** work);
int hocket_reduce_scatter_v(hocket_comm* comm,
                            const hocket_array* in,
                            const hocket_array* out,
                            const size_t* counts,
                            size_t length,
                            int32_t op,
                            const hocket_call_options* options);
int hocket_reduce_scatter_v_async(hocket_comm* comm,
                                  const hocket_array* in,
                                  const hocket_array* out,
                                  const size_t* counts,
                                  size_t length,
                                  int32_t op,
                                  const hocket_call_options* options,
                                  hocket_work** work);

/* --- Messages between two ranks ----------------------------------------------------------------
 */

/* They pair by peer, tag (0 at least) and order. */
int hocket_send(hocket_comm* comm,
                const hocket_array* in,
                int32_t destination,
                int32_t tag,
                const hocket_call_options* options);
int hocket_send_async(hocket_comm* comm,
                      const hocket_array* in,
                      int32_t destination,
                      int32_t tag,
                      const hocket_call_options* options,
                      hocket_work** work);
/* A message, as who gets it is told. */
typedef struct hocket_received {
  int32_t source; /* who sent it */
  int32_t tag;
  size_t count; /* elements */
  int32_t dtype;
} hocket_received;
/* `received` may be null. */
int hocket_recv(hocket_comm* comm,
                const hocket_array* out,
                int32_t source,
                int32_t tag,
                const hocket_call_options* options,
                hocket_received* received);
int hocket_recv_async(hocket_comm* comm,
                      const hocket_array* out,
                      int32_t source,
                      int32_t tag,
                      const hocket_call_options* options,
                      hocket_work** work);
/* Waits until a message onto the host is there, and tells of it without taking it: the next receive
 * from that source with that tag does. */
int hocket_probe(hocket_comm* comm,
                 int32_t source,
                 int32_t tag,
                 const hocket_call_options* options,
                 hocket_received* received);
/* The same without waiting. `found`: 0 where no message is there yet; `received` stays as it is. */
int hocket_probe_now(
    hocket_comm* comm, int32_t source, int32_t tag, hocket_received* received, int* found);
/* Sends to one and receives from another at once. */
int hocket_send_recv(hocket_comm* comm,
                     const hocket_array* in,
                     int32_t destination,
                     const hocket_array* out,
                     int32_t source,
                     int32_t tag,
                     const hocket_call_options* options);

typedef struct hocket_message {
  hocket_array array;
  int32_t peer; /* to whom, or from whom */
} hocket_message;
/* Any number of messages, which progress together; those between two ranks pair in their order. */
int hocket_exchange(hocket_comm* comm,
                    const hocket_message* outgoing,
                    size_t outgoing_count,
                    const hocket_message* incoming,
                    size_t incoming_count,
                    int32_t tag,
                    const hocket_call_options* options);

/* --- Works -------------------------------------------------------------------------------------
 */

/* Waits until the call has ended, at most until its deadline, and returns what came of it. A call
 * on a GPU is waited for by streams: of such this returns what has gone wrong so far. */
int hocket_work_wait(hocket_work* work);
/* Has later work of a stream wait for a call on a GPU. */
int hocket_work_wait_on(hocket_work* work, void* stream);
/* Waits at most `timeout_ns`, for a GPU too. `done`: 1 when the call has ended, 0 when time ran
 * out. */
int hocket_work_wait_for(hocket_work* work, int64_t timeout_ns, int* done);
/* `done`: 1 when the call has ended, well or not. Never blocks. */
int hocket_work_test(hocket_work* work, int* done);
/* What hocket_recv_async received, once that has ended well. */
int hocket_work_received(const hocket_work* work, hocket_received* received);
/* Frees the handle. A call that is pending is given up, which ends its communicator on all ranks.
 */
void hocket_work_free(hocket_work** work);

/* --- Symmetric memory --------------------------------------------------------------------------
 */

typedef struct hocket_symmetric_options {
  size_t size;         /* sizeof(hocket_symmetric_options) */
  int64_t deadline_ns; /* 0: the communicator's */
  int32_t memory;      /* HOCKET_MEMORY_DEFAULT: where the communicator's calls are */
  int32_t nvshmem;     /* 1: from NVSHMEM's heap */
} hocket_symmetric_options;
/* A zeroed array on every rank of `comm`, which all can reach. Collective; the calls of collectives
 * on such arrays copy nothing. */
int hocket_symmetric_empty(hocket_comm* comm,
                           size_t count,
                           int32_t dtype,
                           const hocket_symmetric_options* options,
                           hocket_symmetric** made);
int hocket_symmetric_local(const hocket_symmetric* symmetric, hocket_array* array);
/* Another rank's, as it is mapped here. Calls that order the ranks (a barrier) say when it may be
 * read or written. */
int hocket_symmetric_peer(const hocket_symmetric* symmetric, int32_t rank, hocket_array* array);
/* Gives up this rank's hold; the arrays that it gave must not be used afterwards. */
void hocket_symmetric_free(hocket_symmetric** symmetric);

/* --- Objects -----------------------------------------------------------------------------------
 */

/* Values of any size and shape. C makes bytes and strings, and passes on whatever else comes from
 * Python or C++, as its encoding. */
enum {
  HOCKET_OBJECT_NONE = 0,
  HOCKET_OBJECT_STRING = 1, /* UTF-8 */
  HOCKET_OBJECT_BYTES = 2,
  HOCKET_OBJECT_OTHER = 3 /* a number, a list, a dict, ...: read it by its encoding */
};

int hocket_object_from_bytes(const void* data, size_t length, hocket_object** object);
int hocket_object_from_string(const char* text, hocket_object** object);
/* The inverse of hocket_object_encoding. */
int hocket_object_decode(const void* data, size_t length, hocket_object** object);
int hocket_object_kind(const hocket_object* object, int* kind);
/* Of bytes and strings. What is given out here and below is the object's, and lives as long; a byte
 * of 0 follows, which is not counted. */
int hocket_object_bytes(const hocket_object* object, const void** data, size_t* length);
/* Of any object: what hocket::encode of C++ makes. */
int hocket_object_encoding(hocket_object* object, const void** data, size_t* length);
void hocket_object_free(hocket_object** object);

/* The root's object, on all ranks; what others pass, null for one, is ignored. */
int hocket_broadcast_object(hocket_comm* comm,
                            const hocket_object* object,
                            int32_t root,
                            const hocket_call_options* options,
                            hocket_object** result);
/* Every rank's object, in the order of the ranks: `results` has room for `length` of them, as many
 * as there are ranks. Only the root's is written by gather. */
int hocket_gather_object(hocket_comm* comm,
                         const hocket_object* object,
                         int32_t root,
                         const hocket_call_options* options,
                         hocket_object** results,
                         size_t length);
int hocket_all_gather_object(hocket_comm* comm,
                             const hocket_object* object,
                             const hocket_call_options* options,
                             hocket_object** results,
                             size_t length);
/* objects[r] of the root, on rank r; `length` is the number of ranks there. */
int hocket_scatter_object(hocket_comm* comm,
                          const hocket_object* const* objects,
                          size_t length,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_object** result);

#ifdef __cplusplus
}
#endif

/* A part of this header. */
#include "hocket/c_operators.h"

#endif /* HOCKET_C_H_ */
