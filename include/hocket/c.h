/* hocket for C, and for languages that can call C: Fortran, Python's ctypes, Julia, Rust.
 *
 *     hocket_comm *world = NULL;
 *     if (hocket_init(NULL, &world) != HOCKET_OK) return fail(hocket_error_message());
 *     hocket_array x = {data, count, HOCKET_FLOAT32, HOCKET_MEMORY_HOST};
 *     hocket_all_reduce(world, NULL, &x, HOCKET_SUM, NULL);
 *     hocket_comm_free(&world);
 *
 * Every function returns HOCKET_OK or the code of an error. No exception leaves a function. After
 * an error `hocket_error_message` says what happened, to whom, and what to try. The text belongs to
 * the calling thread. Results are written through pointers, which stay unchanged if the call fails.
 *
 * Handles are opaque. `..._free` takes the address of a handle, releases it and sets it to null.
 * Functions refuse a null handle. A copy of a freed handle must not be used.
 * Threads may use different communicators at the same time, and one communicator in turn.
 * Simultaneous use of one communicator is detected and refused.
 *
 * A struct of options begins with its size, which the caller sets to `sizeof`. A field that is zero
 * has its default. Later versions add fields at the end, and continue to accept smaller structs of
 * older programs. A null pointer to options means all defaults.
 *
 * No version 0.x changes the numbers, fields and functions that are declared here. */
#ifndef HOCKET_C_H_
#define HOCKET_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The codes that functions return. */
enum {
  HOCKET_OK = 0,
  HOCKET_INVALID_ARGUMENT = 1,  /* the call was refused; the communicator stays usable */
  HOCKET_PEER_DIED = 2,         /* a rank's process ended while it was needed */
  HOCKET_DEADLINE_EXCEEDED = 3, /* a call did not finish in time */
  HOCKET_MISMATCH = 4,          /* ranks called different things */
  HOCKET_ABORTED = 5,           /* a rank called abort or rebuild, or gave up a call */
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

/* The operation of a reduction. */
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

/* The memory that holds an array. */
enum {
  HOCKET_MEMORY_DEFAULT = 0, /* host; if symmetric: the memory that the communicator's calls use */
  HOCKET_MEMORY_HOST = 1,
  HOCKET_MEMORY_CUDA = 2
};

/* A time without limit, in nanoseconds. */
#define HOCKET_FOREVER INT64_MAX
/* A source that matches a message from any rank. */
#define HOCKET_ANY_SOURCE (-1)
/* A tag that matches a message with any tag, for receives and probes on the host. */
#define HOCKET_ANY_TAG (-1)
/* A peer that does not exist. A message to or from it completes at once and moves nothing. */
#define HOCKET_NULL_RANK (-2)

/* An array: a value that owns nothing. The elements must stay in place until the call, or the work
 * that it started, has ended. */
typedef struct hocket_array {
  void* data;
  size_t count;   /* elements */
  int32_t dtype;  /* HOCKET_FLOAT32, ... */
  int32_t memory; /* HOCKET_MEMORY_HOST or HOCKET_MEMORY_CUDA */
} hocket_array;

typedef struct hocket_comm hocket_comm;           /* membership in a set of ranks */
typedef struct hocket_work hocket_work;           /* a call that was started */
typedef struct hocket_prepared hocket_prepared;   /* a call that can be repeated */
typedef struct hocket_symmetric hocket_symmetric; /* an array that peers can reach */
typedef struct hocket_object hocket_object;       /* a structured value */

/* --- Versions, names, errors ----------------------------------------------------------------- */

const char* hocket_version(void);        /* "0.1.0" */
size_t hocket_dtype_size(int32_t dtype); /* bytes of one element; 0 if there is no such type */
/* "float32", "sum", "peer_died"; null if there is no such code. Valid until the process ends. */
const char* hocket_dtype_name(int32_t dtype);
const char* hocket_op_name(int32_t op);
const char* hocket_code_name(int code);

/* Returns the message of the last error of this thread. It is "" if there was none, and never null.
 * The text is valid until another call of this thread fails. */
const char* hocket_error_message(void);

/* The facts of an error. Unknown numbers are -1, unless stated otherwise. */
typedef struct hocket_error_info {
  size_t size; /* sizeof(hocket_error_info), before the call */
  int32_t code;
  int32_t rank;        /* the rank that reports the error */
  int32_t peer;        /* the rank that caused it */
  int32_t signal;      /* for HOCKET_PEER_DIED: signal that ended the process; 0: none or unknown */
  uint64_t sequence;   /* number of the call in its communicator, from 1; 0: unknown */
  const char* message; /* the pointers belong to the thread, as hocket_error_message */
  const char* communicator; /* its name */
  const char* operation;    /* "all_reduce" */
  const char* host;         /* host of the peer */
  const int32_t* missing;   /* ranks that had not come by the deadline, or that wait in a circle */
  size_t missing_count;
  const char* reason; /* of a refused argument: the message without the call's name; else "" */
} hocket_error_info;
/* Writes the facts of this thread's last error to `info`, whose `size` the caller has set. */
int hocket_error_details(hocket_error_info* info);

/* --- Joining, communicators ------------------------------------------------------------------ */

typedef struct hocket_init_options {
  size_t size;          /* sizeof(hocket_init_options) */
  int32_t ranks;        /* number of ranks; 0: the launcher decides, and `rank` is ignored */
  int32_t rank;         /* number of this process */
  const char* address;  /* "host:port" of rank 0, or "unix:NAME"; null: the launcher decides */
  const char* key_file; /* a file that `hocket key` made; null: the environment decides */
  int64_t timeout_ns;   /* limit for joining; 0: 300 s */
  int64_t deadline_ns;  /* default limit of calls; 0: HOCKET_DEADLINE, or 300 s */
  const char* engines;  /* "shm,ucx", best first; null: all available */
  const char* name;     /* name of the communicator, in messages; null: "world" */
  const char* join;     /* running job to join: its name or its door's address; null: HOCKET_JOIN */
} hocket_init_options;

/* Joins the job that this process was started in, or makes a job of one rank. Blocks until all
 * ranks have joined. At the timeout it returns HOCKET_RENDEZVOUS and names the missing ranks. */
int hocket_init(const hocket_init_options* options, hocket_comm** world);

/* The options of every call on a communicator. */
typedef struct hocket_call_options {
  size_t size;         /* sizeof(hocket_call_options) */
  int64_t deadline_ns; /* limit for the call; 0: the communicator's default */
  void* stream;        /* a CUstream or cudaStream_t, for arrays in a GPU's memory */
  int32_t on_stream;   /* 1: use `stream` even if it is null, the legacy default stream */
  /* For hocket_recv, hocket_recv_async and hocket_send_recv on the host. 1: the message may have
   * fewer elements than the array, and fills its beginning. */
  int32_t allow_shorter;
  struct hocket_received* received; /* for hocket_send_recv: gets its description; may be null */
} hocket_call_options;

/* Facts of a communicator. All calls until hocket_comm_status are local. */
int hocket_comm_rank(const hocket_comm* comm, int* rank); /* -1: not a member */
int hocket_comm_size(const hocket_comm* comm, int* size);
int hocket_comm_epoch(const hocket_comm* comm, int* epoch);       /* how often it was rebuilt */
int hocket_comm_name(const hocket_comm* comm, const char** name); /* valid as long as `comm` */
/* Write one number for each member, in order: its rank in the world, or the number of its host.
 * `length` is the length of the array. It must be at least the communicator's size. */
int hocket_comm_world_ranks(const hocket_comm* comm, int32_t* ranks, size_t length);
int hocket_comm_hosts(const hocket_comm* comm, int32_t* hosts, size_t length);
/* Get and set the default limit of calls on this rank, in nanoseconds. */
int hocket_comm_deadline(const hocket_comm* comm, int64_t* deadline_ns);
int hocket_comm_set_deadline(hocket_comm* comm, int64_t deadline_ns);
/* Get and set whether this rank keeps an audit of the calls, for `hocket trace --diff`: 1 or 0.
 * Communicators that are made from it inherit the setting. Without HOCKET_AUDIT the file lies
 * beside the trace, or in hocket-audit. */
int hocket_comm_audited(const hocket_comm* comm, int* audited);
int hocket_comm_set_audited(hocket_comm* comm, int audited);
/* Returns HOCKET_OK while the communicator works, else the code of the error that ended it. */
int hocket_comm_status(const hocket_comm* comm);
/* Ends the calls of all ranks with HOCKET_ABORTED. Any thread may call it; `reason` may be null. */
int hocket_comm_abort(hocket_comm* comm, const char* reason);
/* Releases the resources of the communicator. Later calls are refused. Returns the error of a call
 * on a GPU if the program does not know it yet. Local. */
int hocket_comm_close(hocket_comm* comm);
/* Frees the handle, closed or not. Null, and the address of null, are accepted. */
void hocket_comm_free(hocket_comm** comm);

/* Collective calls of `comm`: every rank gets a communicator, of which it need not be a member.
 * `ranks` lists the members by their rank in `comm`. */
int hocket_new_group(hocket_comm* comm,
                     const int32_t* ranks,
                     size_t length,
                     const hocket_call_options* options,
                     hocket_comm** group);
/* Ranks of equal color form a communicator, in the order of key, then rank. Negative: none. */
int hocket_split(hocket_comm* comm,
                 int32_t color,
                 int32_t key,
                 const hocket_call_options* options,
                 hocket_comm** group);
int hocket_duplicate(hocket_comm* comm, const hocket_call_options* options, hocket_comm** copy);
/* The first gives a communicator of the members on this rank's host. The second gives one of those
 * members, one on each host, that have the same rank there as this rank. */
int hocket_intra_node(hocket_comm* comm, hocket_comm** group);
int hocket_inter_node(hocket_comm* comm, hocket_comm** group);

/* --- Collectives ----------------------------------------------------------------------------- */

/* The collectives. If `in` is null, the call works in place and `out` holds the input. In reduce
 * and gather, ranks other than the root get no result and may pass a null `out`. Counts for n
 * ranks, where `share` is the part of one rank:
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
 * A function that ends in _async starts the call and returns a work; see hocket_work_wait.
 * HOCKET_INVALID_ARGUMENT leaves the communicator usable; other errors end it on all ranks. */
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
/* Combine the arrays of ranks 0 to this one. exscan leaves out this rank's own array, and does not
 * change rank 0's `out`. */
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

/* Parts of unequal size: the elements of each rank's part, and the element at which each part
 * begins. Both arrays have one entry for each rank. */
typedef struct hocket_parts {
  const size_t* counts;        /* null on all ranks: one small call gathers them first */
  const size_t* displacements; /* null: the parts follow each other */
  size_t length;               /* length of both */
} hocket_parts;

/* Null `parts` mean the same as null counts. `parts` of gather_v and scatter_v matter at the root.
 * scatter_v requires them there, and all_to_all_v requires those of the data that it sends. */
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

/* --- Messages between two ranks --------------------------------------------------------------- */

/* Messages are matched by peer, tag (at least 0) and order. Structs and elements of other types are
 * sent as bytes, with HOCKET_UINT8. */
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
/* The description of a message that was received. */
typedef struct hocket_received {
  int32_t source; /* the sender */
  int32_t tag;
  size_t count; /* elements */
  int32_t dtype;
} hocket_received;
/* Receives a message. `received` gets its description, and may be null. */
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
/* Waits until a message for the host has arrived, and describes it. The message stays: the next
 * receive from that source with that tag takes it. */
int hocket_probe(hocket_comm* comm,
                 int32_t source,
                 int32_t tag,
                 const hocket_call_options* options,
                 hocket_received* received);
/* Does not wait: `found` is 0, and `received` unchanged, if no message has arrived. */
int hocket_probe_now(
    hocket_comm* comm, int32_t source, int32_t tag, hocket_received* received, int* found);
/* Sends to one rank and receives from another at the same time. */
int hocket_send_recv(hocket_comm* comm,
                     const hocket_array* in,
                     int32_t destination,
                     const hocket_array* out,
                     int32_t source,
                     int32_t tag,
                     const hocket_call_options* options);

typedef struct hocket_message {
  hocket_array array;
  int32_t peer; /* the destination, or the source */
} hocket_message;
/* Moves many messages at once. Those between two ranks are matched in the order of the lists. */
int hocket_exchange(hocket_comm* comm,
                    const hocket_message* outgoing,
                    size_t outgoing_count,
                    const hocket_message* incoming,
                    size_t incoming_count,
                    int32_t tag,
                    const hocket_call_options* options);

/* --- Works ------------------------------------------------------------------------------------ */

/* Waits until the call has ended or reached its deadline, and returns its result. A call on a GPU
 * returns at once, with the errors so far, as its stream waits. One thread at a time per work. */
int hocket_work_wait(hocket_work* work);
/* Makes later work of a stream wait for a call on a GPU. */
int hocket_work_wait_on(hocket_work* work, void* stream);
/* Waits at most `timeout_ns`, also for a call on a GPU. `done` is 1 if the call has ended, and 0 if
 * the time ran out. */
int hocket_work_wait_for(hocket_work* work, int64_t timeout_ns, int* done);
/* Never blocks. `done` is 1 if the call has ended, with or without error. */
int hocket_work_test(hocket_work* work, int* done);
/* Ends a hocket_recv_async in host memory if no message has come for it; `withdrawn` is then 1, and
 * a later receive gets the message. Otherwise the call goes on, and it is 0. Never blocks. */
int hocket_work_withdraw(hocket_work* work, int* withdrawn);
/* Describes the message of a hocket_recv_async that has succeeded. */
int hocket_work_received(const hocket_work* work, hocket_received* received);
/* Frees the handle. A pending call is given up, which ends its communicator on all ranks. */
void hocket_work_free(hocket_work** work);

/* --- Symmetric memory ------------------------------------------------------------------------- */

typedef struct hocket_symmetric_options {
  size_t size;         /* sizeof(hocket_symmetric_options) */
  int64_t deadline_ns; /* 0: the communicator's */
  int32_t memory;      /* HOCKET_MEMORY_DEFAULT: the memory that the communicator's calls use */
  int32_t nvshmem;     /* 1: from NVSHMEM's heap */
} hocket_symmetric_options;
/* Makes a zeroed array on every rank of `comm`. All ranks can reach all of these arrays, so
 * collectives on them copy nothing. Collective. */
int hocket_symmetric_empty(hocket_comm* comm,
                           size_t count,
                           int32_t dtype,
                           const hocket_symmetric_options* options,
                           hocket_symmetric** made);
/* Writes the view of this rank's array to `array`. */
int hocket_symmetric_local(const hocket_symmetric* symmetric, hocket_array* array);
/* Writes the view of another rank's array, as it is mapped here. It may be read or written between
 * calls that order the ranks, such as a barrier. */
int hocket_symmetric_peer(const hocket_symmetric* symmetric, int32_t rank, hocket_array* array);
/* Releases this rank's hold on the memory, whose views must not be used afterwards. */
void hocket_symmetric_free(hocket_symmetric** symmetric);

/* --- Objects ---------------------------------------------------------------------------------- */

/* Objects: values of any size and shape. C makes bytes and strings. It passes on all other objects
 * from Python or C++ as their encoding. */
enum {
  HOCKET_OBJECT_NONE = 0,
  HOCKET_OBJECT_STRING = 1, /* UTF-8 */
  HOCKET_OBJECT_BYTES = 2,
  HOCKET_OBJECT_OTHER = 3 /* a number, a list, a dict, ...: read its encoding */
};

/* Make an object from a copy of the data. A string must be UTF-8. */
int hocket_object_from_bytes(const void* data, size_t length, hocket_object** object);
int hocket_object_from_string(const char* text, hocket_object** object);
/* Makes an object from its encoding; the inverse of hocket_object_encoding. */
int hocket_object_decode(const void* data, size_t length, hocket_object** object);
/* Writes the kind of the object: HOCKET_OBJECT_NONE and so on. */
int hocket_object_kind(const hocket_object* object, int* kind);
/* Gives the contents of bytes or of a string. The memory belongs to the object and lives as long. A
 * byte of 0 follows the contents and is not counted. */
int hocket_object_bytes(const hocket_object* object, const void** data, size_t* length);
/* Gives the encoding of any object, as hocket::encode of C++ makes it, in the object's memory. */
int hocket_object_encoding(hocket_object* object, const void** data, size_t* length);
void hocket_object_free(hocket_object** object);

/* Sends the root's object to all ranks. Objects of other ranks are ignored and may be null. */
int hocket_broadcast_object(hocket_comm* comm,
                            const hocket_object* object,
                            int32_t root,
                            const hocket_call_options* options,
                            hocket_object** result);
/* Gather every rank's object, in rank order. hocket_gather_object writes `results` at the root
 * alone. It has `length` places, one for each rank. The caller frees each object. */
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
/* Sends objects[r] of the root to rank r. `length` is the number of ranks, at the root. */
int hocket_scatter_object(hocket_comm* comm,
                          const hocket_object* const* objects,
                          size_t length,
                          int32_t root,
                          const hocket_call_options* options,
                          hocket_object** result);

#ifdef __cplusplus
}
#endif

#include "hocket/c_calls.h"
#include "hocket/c_grid.h"
#include "hocket/c_membership.h"
#include "hocket/c_operators.h"

#endif /* HOCKET_C_H_ */
