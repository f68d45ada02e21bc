/* What is wrong gets a code and a message, on every rank that waits, and harms nothing. */
#include <limits.h>
#include <signal.h>

#include "check.h"

static hocket_comm* world;
static int n;

static void null_handles(void) {
  const hocket_array none = {NULL, 0, HOCKET_FLOAT32, HOCKET_MEMORY_HOST};
  int number = 0;
  const char* name = NULL;
  const void* data = NULL;
  size_t length = 0;
  int64_t time = 0;
  int32_t ranks[4];
  hocket_array array;
  hocket_comm* made = NULL;
  hocket_work* work = NULL;
  hocket_received received;
  hocket_symmetric* symmetric = NULL;
  hocket_object* object = NULL;
#define REFUSED(call) CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "is null", call)
  REFUSED(hocket_init(NULL, NULL));
  REFUSED(hocket_comm_rank(NULL, &number));
  REFUSED(hocket_comm_rank(world, NULL));
  REFUSED(hocket_comm_size(NULL, &number));
  REFUSED(hocket_comm_epoch(NULL, &number));
  REFUSED(hocket_comm_name(NULL, &name));
  REFUSED(hocket_comm_world_ranks(NULL, ranks, 4));
  REFUSED(hocket_comm_world_ranks(world, NULL, 4));
  REFUSED(hocket_comm_hosts(NULL, ranks, 4));
  REFUSED(hocket_comm_deadline(NULL, &time));
  REFUSED(hocket_comm_set_deadline(NULL, 1));
  REFUSED(hocket_comm_audited(NULL, &number));
  REFUSED(hocket_comm_audited(world, NULL));
  REFUSED(hocket_comm_set_audited(NULL, 1));
  REFUSED(hocket_comm_status(NULL));
  REFUSED(hocket_comm_abort(NULL, NULL));
  REFUSED(hocket_comm_close(NULL));
  REFUSED(hocket_new_group(NULL, ranks, 1, NULL, &made));
  REFUSED(hocket_split(NULL, 0, 0, NULL, &made));
  REFUSED(hocket_duplicate(NULL, NULL, &made));
  REFUSED(hocket_intra_node(NULL, &made));
  REFUSED(hocket_inter_node(NULL, &made));
  REFUSED(hocket_rebuild(NULL, NULL, &made));
  REFUSED(hocket_rebuild(world, NULL, NULL));
  REFUSED(hocket_admit(NULL, NULL, &made));
  REFUSED(hocket_admit(world, NULL, NULL));
  REFUSED(hocket_comm_newcomers(world, NULL, 0, NULL));
  REFUSED(hocket_all_reduce(NULL, NULL, &none, HOCKET_SUM, NULL));
  REFUSED(hocket_all_reduce_async(NULL, NULL, &none, HOCKET_SUM, NULL, &work));
  REFUSED(hocket_barrier(NULL, NULL));
  REFUSED(hocket_all_gather_v(NULL, &none, &none, NULL, NULL));
  REFUSED(hocket_send(NULL, &none, 0, 0, NULL));
  REFUSED(hocket_send(world, NULL, 0, 0, NULL));
  REFUSED(hocket_recv(world, NULL, 0, 0, NULL, NULL));
  REFUSED(hocket_recv_async(world, &none, 0, 0, NULL, NULL));
  const hocket_message unknown[2] = {{.peer = 0}, {.array = {NULL, 2, HOCKET_FLOAT32, 0}}};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "outgoing is null, and outgoing_count is 1",
              hocket_exchange(world, NULL, 1, NULL, 0, 0, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "incoming[1].array->data is null",
              hocket_exchange(world, NULL, 0, unknown, 2, 0, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "outgoing_count is 18446744073709551615",
              hocket_exchange(world, unknown, SIZE_MAX, NULL, 0, 0, NULL));
  REFUSED(hocket_probe(NULL, 0, 0, NULL, &received));
  REFUSED(hocket_probe(world, 0, 0, NULL, NULL));
  REFUSED(hocket_probe_now(NULL, 0, 0, &received, &number));
  REFUSED(hocket_probe_now(world, 0, 0, NULL, &number));
  REFUSED(hocket_probe_now(world, 0, 0, &received, NULL));
  const hocket_call_options shorter = {.size = sizeof shorter, .allow_shorter = 1};
  CHECK_FAILS(
      HOCKET_INVALID_ARGUMENT, "allow_shorter is set", hocket_send(world, &none, 0, 0, &shorter));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "allow_shorter is set", hocket_barrier(world, &shorter));
  REFUSED(hocket_work_wait(NULL));
  REFUSED(hocket_work_wait_on(NULL, NULL));
  REFUSED(hocket_work_wait_for(NULL, 0, &number));
  REFUSED(hocket_work_test(NULL, &number));
  REFUSED(hocket_work_withdraw(NULL, &number));
  REFUSED(hocket_work_received(NULL, NULL));
  REFUSED(hocket_symmetric_empty(NULL, 1, HOCKET_INT8, NULL, &symmetric));
  REFUSED(hocket_symmetric_local(NULL, &array));
  REFUSED(hocket_symmetric_peer(NULL, 0, &array));
  REFUSED(hocket_object_from_bytes(NULL, 1, &object));
  REFUSED(hocket_object_from_bytes("", 0, NULL));
  REFUSED(hocket_object_from_string(NULL, &object));
  REFUSED(hocket_object_decode(NULL, 1, &object));
  REFUSED(hocket_object_kind(NULL, &number));
  REFUSED(hocket_object_bytes(NULL, &data, &length));
  REFUSED(hocket_object_encoding(NULL, &data, &length));
  REFUSED(hocket_broadcast_object(NULL, NULL, 0, NULL, &object));
  REFUSED(hocket_gather_object(NULL, NULL, 0, NULL, &object, 1));
  REFUSED(hocket_all_gather_object(NULL, NULL, NULL, &object, 1));
  REFUSED(hocket_scatter_object(NULL, NULL, 0, 0, NULL, &object));
  REFUSED(hocket_broadcast_object_async(NULL, NULL, 0, NULL, &work));
  REFUSED(hocket_gather_object_async(NULL, NULL, 0, NULL, &work));
  REFUSED(hocket_all_gather_object_async(NULL, NULL, NULL, &work));
  REFUSED(hocket_scatter_object_async(NULL, NULL, 0, 0, NULL, &work));
  REFUSED(hocket_send_object_async(world, NULL, 0, 0, NULL, NULL));
  REFUSED(hocket_recv_object_async(world, 0, 0, NULL, NULL));
  REFUSED(hocket_work_objects(NULL, &object, 1, &length, NULL));
  REFUSED(hocket_error_details(NULL));
  /* To free nothing is fine. */
  hocket_comm_free(NULL);
  hocket_comm_free(&made);
  hocket_work_free(&work);
  hocket_symmetric_free(&symmetric);
  hocket_object_free(&object);
  CHECK(made == NULL && work == NULL && symmetric == NULL && object == NULL);
}

/* A handle of another kind is told from what it should be. */
static void wrong_handles(void) {
  hocket_object* object = NULL;
  CHECK_OK(hocket_object_from_bytes("x", 1, &object));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "is no hocket_comm", hocket_barrier((void*)object, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "is no hocket_work", hocket_work_wait((void*)object));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "is no hocket_object",
              hocket_broadcast_object(world, (void*)world, 0, NULL, &object));
  hocket_object_free(&object);
}

/* One rank, the last, is wrong: it is told why, and so are the others, and the next call works. */
#define LAST_REFUSED(text, wrong, right)                 \
  do {                                                   \
    if (my_rank == n - 1) {                              \
      CHECK_FAILS(HOCKET_INVALID_ARGUMENT, text, wrong); \
    } else {                                             \
      CHECK_FAILS(HOCKET_INVALID_ARGUMENT, text, right); \
    }                                                    \
    CHECK_OK(hocket_barrier(world, NULL));               \
  } while (0)

static void wrong_arguments(void) {
  float x[4] = {0};
  const hocket_array good = host_array(x, 4, HOCKET_FLOAT32);
  hocket_array bad = good;
  hocket_call_options options = {.size = sizeof options};
  bad.dtype = 17;
  LAST_REFUSED("dtype is 17",
               hocket_all_reduce(world, NULL, &bad, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  bad.dtype = -1;
  LAST_REFUSED("dtype is -1",
               hocket_all_reduce(world, NULL, &bad, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  bad = good;
  bad.memory = 9;
  LAST_REFUSED("memory is 9",
               hocket_all_reduce(world, NULL, &bad, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  bad = good;
  bad.data = NULL;
  LAST_REFUSED("data is null",
               hocket_all_reduce(world, NULL, &bad, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  LAST_REFUSED("op is 8",
               hocket_all_reduce(world, NULL, &good, 8, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  bad = host_array(x, 4, HOCKET_COMPLEX64);
  bad.count = 2;
  LAST_REFUSED("complex64",
               hocket_all_reduce(world, NULL, &bad, HOCKET_MAX, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_MAX, NULL));
  LAST_REFUSED("both null",
               hocket_all_reduce(world, NULL, NULL, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "root", hocket_broadcast(world, NULL, &good, n, NULL));
  bad = host_array(x, 3, HOCKET_FLOAT32);
  LAST_REFUSED("3",
               hocket_all_reduce(world, &bad, &good, HOCKET_SUM, NULL),
               hocket_all_reduce(world, NULL, &good, HOCKET_SUM, NULL));
  hocket_work* work = NULL;
  if (my_rank == n - 1) {
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
                "work is null",
                hocket_all_reduce_async(world, NULL, &good, HOCKET_SUM, NULL, NULL));
  } else {
    CHECK_OK(hocket_all_reduce_async(world, NULL, &good, HOCKET_SUM, NULL, &work));
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "work is null", hocket_work_wait(work));
    hocket_work_free(&work);
  }
  CHECK_OK(hocket_barrier(world, NULL));

  /* Options: their size comes first. */
  options.size = 0;
  LAST_REFUSED("size is 0", hocket_barrier(world, &options), hocket_barrier(world, NULL));
  options.size = 8;
  LAST_REFUSED("size is 8", hocket_barrier(world, &options), hocket_barrier(world, NULL));
  options.size = sizeof options;
  options.deadline_ns = -5;
  LAST_REFUSED("deadline_ns is -5", hocket_barrier(world, &options), hocket_barrier(world, NULL));
  struct {
    hocket_call_options known;
    int64_t later;
  } newer = {{.size = sizeof newer}, 0};
  CHECK_OK(hocket_barrier(world, &newer.known)); /* says nothing that is new */
  newer.later = 1;
  LAST_REFUSED("does not know", hocket_barrier(world, &newer.known), hocket_barrier(world, NULL));

  /* An operator has its size, too, and is named. */
  double number = 1;
  const hocket_array one = {&number, 1, HOCKET_FLOAT64, HOCKET_MEMORY_HOST};
  const hocket_operator sizeless = {0};
  LAST_REFUSED("op->size is 0, expected sizeof(hocket_operator), 32",
               hocket_all_reduce_by(world, NULL, &one, &sizeless, NULL),
               hocket_barrier(world, NULL));

  hocket_symmetric* symmetric = NULL;
  LAST_REFUSED("dtype is 40",
               hocket_symmetric_empty(world, 1, 40, NULL, &symmetric),
               hocket_symmetric_empty(world, 1, HOCKET_INT8, NULL, &symmetric));
  CHECK_OK(hocket_symmetric_empty(world, 2, HOCKET_INT8, NULL, &symmetric));
  hocket_array part;
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_symmetric_peer(symmetric, n, &part));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_symmetric_peer(symmetric, -1, &part));
  hocket_symmetric_free(&symmetric);

  hocket_object* objects[1] = {NULL};
  if (n > 1) {
    LAST_REFUSED("length is 1",
                 hocket_all_gather_object(world, NULL, NULL, objects, 1),
                 hocket_barrier(world, NULL));
  }
  const hocket_object* none[1] = {NULL};
  LAST_REFUSED("length is 7",
               hocket_scatter_object(world, none, 7, n - 1, NULL, objects),
               hocket_scatter_object(world, NULL, 0, n - 1, NULL, objects));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_object_decode("nonsense", 8, objects));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "more than any memory holds",
              hocket_object_from_bytes("x", SIZE_MAX, objects));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "more than any memory holds",
              hocket_object_decode("x", SIZE_MAX, objects));
  hocket_comm* group = NULL;
  const int32_t first[1] = {0};
  LAST_REFUSED("length is 18446744073709551615, more than any memory holds",
               hocket_new_group(world, first, SIZE_MAX, NULL, &group),
               hocket_new_group(world, first, 1, NULL, &group));
  CHECK(group == NULL);
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_object_from_string("\xff", objects));
  CHECK(objects[0] == NULL);

  /* Messages are between two: what one gets wrong is its own affair. */
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_send(world, &good, n, 0, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_send(world, &good, 0, -1, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "dtype is 99",
              (bad = good, bad.dtype = 99, hocket_send(world, &bad, 0, 0, NULL)));
  int32_t short_list[1];
  if (n > 1) {
    CHECK_FAILS(
        HOCKET_INVALID_ARGUMENT, "length is 1", hocket_comm_world_ranks(world, short_list, 1));
  }
}

static void names(void) {
  CHECK(strcmp(hocket_dtype_name(HOCKET_BFLOAT16), "bfloat16") == 0);
  CHECK(strcmp(hocket_dtype_name(HOCKET_FLOAT8_E5M2), "float8_e5m2") == 0);
  CHECK(strcmp(hocket_op_name(HOCKET_AVG), "avg") == 0);
  CHECK(strcmp(hocket_code_name(HOCKET_MISMATCH), "mismatch") == 0);
  CHECK(hocket_dtype_name(17) == NULL && hocket_op_name(-1) == NULL);
  CHECK(strcmp(hocket_code_name(HOCKET_DEADLOCK), "deadlock") == 0);
  for (int code = HOCKET_OK; code <= HOCKET_DEADLOCK; ++code) CHECK(hocket_code_name(code) != NULL);
  CHECK(hocket_code_name(12) == NULL && hocket_dtype_size(-1) == 0);
  CHECK(hocket_dtype_size(HOCKET_COMPLEX128) == 16 && strchr(hocket_version(), '.') != NULL);
}

static void details(void) {
  hocket_call_options options = {.size = sizeof options, .deadline_ns = 50000000};
  hocket_comm* copy = NULL;
  CHECK_OK(hocket_duplicate(world, NULL, &copy));
  if (my_rank != 0) {
    CHECK_FAILS(HOCKET_DEADLINE_EXCEEDED, "rank 0", hocket_barrier(copy, &options));
    hocket_error_info info = {.size = sizeof info};
    CHECK_OK(hocket_error_details(&info));
    CHECK(info.code == HOCKET_DEADLINE_EXCEEDED && info.missing_count == 1 && info.missing[0] == 0);
    CHECK(strcmp(info.operation, "barrier") == 0 && info.sequence == 1 && info.rank == my_rank);
    CHECK(strstr(info.communicator, "world") != NULL);
    /* An older program's struct, which ends after the peer. */
    hocket_error_info older = {.size = offsetof(hocket_error_info, signal)};
    older.sequence = 77;
    CHECK_OK(hocket_error_details(&older));
    CHECK(older.code == HOCKET_DEADLINE_EXCEEDED && older.sequence == 77);
    CHECK(hocket_comm_status(copy) == HOCKET_DEADLINE_EXCEEDED);
  }
  hocket_error_info wrong = {.size = 3};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "size is 3", hocket_error_details(&wrong));
  CHECK_OK(hocket_barrier(world, NULL));
  hocket_comm_free(&copy);
}

/* `reason` is what a refusal says, without the names of the function and the call. */
static void reasons(void) {
  float x[2] = {1, 2};
  const hocket_array array = host_array(x, 2, HOCKET_FLOAT32);
  const hocket_array odd = host_array(x, 2, 99);
  const struct {
    const hocket_array* array;
    int32_t op;
    const char* reason;
  } all[] = {
      {&array, HOCKET_BIT_AND, "op band has no meaning on float32 elements"},
      {&array, 99, "op is 99, expected HOCKET_SUM (0) to HOCKET_BIT_XOR (7)"},
      {&odd, HOCKET_SUM, "out->dtype is 99, expected HOCKET_BOOL (0) to HOCKET_FLOAT8_E5M2 (16)"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    /* The first rank refuses, and the others hear of it. */
    const hocket_array* given = my_rank == 0 ? all[i].array : &array;
    const int32_t op = my_rank == 0 ? all[i].op : HOCKET_SUM;
    CHECK_FAILS(
        HOCKET_INVALID_ARGUMENT, all[i].reason, hocket_all_reduce(world, NULL, given, op, NULL));
    hocket_error_info info = {.size = sizeof info};
    CHECK_OK(hocket_error_details(&info));
    CHECK(strcmp(info.reason, all[i].reason) == 0);
    CHECK(strcmp(info.message, info.reason) != 0);
    CHECK(info.rank == my_rank && (my_rank == 0 || info.peer == 0));
  }
  /* Another error has none. */
  hocket_call_options options = {.size = sizeof options, .deadline_ns = 20000000};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "comm is null", hocket_barrier(NULL, NULL));
  hocket_comm* copy = NULL;
  CHECK_OK(hocket_duplicate(world, NULL, &copy));
  if (hocket_recv(copy, &array, n - 1 - my_rank, 3, &options, NULL) != HOCKET_OK) {
    hocket_error_info info = {.size = sizeof info};
    CHECK_OK(hocket_error_details(&info));
    CHECK(info.code != HOCKET_INVALID_ARGUMENT && strcmp(info.reason, "") == 0);
  }
  hocket_comm_free(&copy);
}

static void different_calls(void) {
  hocket_comm* copy = NULL;
  CHECK_OK(hocket_duplicate(world, NULL, &copy));
  int32_t x[2] = {1, 2};
  const hocket_array array = host_array(x, my_rank == 0 && n > 1 ? 1 : 2, HOCKET_INT32);
  const int code = hocket_all_reduce(copy, NULL, &array, HOCKET_SUM, NULL);
  if (n > 1) {
    const int next = code == HOCKET_OK ? hocket_barrier(copy, NULL) : code;
    CHECK(next == HOCKET_MISMATCH);
  }
  hocket_comm_free(&copy);
}

static void after_close(void) {
  hocket_comm* copy = NULL;
  hocket_work* work = NULL;
  float x = 1;
  const hocket_array array = host_array(&x, 1, HOCKET_FLOAT32);
  CHECK_OK(hocket_duplicate(world, NULL, &copy));
  CHECK_OK(hocket_recv_async(copy, &array, 0, 3, NULL, &work)); /* nobody sends */
  CHECK_OK(hocket_barrier(world, NULL));
  CHECK_OK(hocket_comm_close(copy));
  CHECK(hocket_work_wait(work) != HOCKET_OK);
  hocket_work_free(&work);
  CHECK_OK(hocket_comm_close(copy)); /* twice is fine */
#define CLOSED(call) CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "closed", call)
  CLOSED(hocket_all_reduce(copy, NULL, &array, HOCKET_SUM, NULL));
  CLOSED(hocket_all_reduce(copy, NULL, &array, 99, NULL));
  CLOSED(hocket_all_reduce_async(copy, NULL, &array, HOCKET_SUM, NULL, &work));
  CLOSED(hocket_send(copy, &array, 0, 0, NULL));
  hocket_comm* made = NULL;
  hocket_symmetric* symmetric = NULL;
  hocket_object* object = NULL;
  CLOSED(hocket_duplicate(copy, NULL, &made));
  CLOSED(hocket_symmetric_empty(copy, 1, HOCKET_INT8, NULL, &symmetric));
  CLOSED(hocket_broadcast_object(copy, NULL, 0, NULL, &object));
  CHECK(made == NULL && work == NULL && symmetric == NULL && object == NULL);
  hocket_comm_free(&copy);
  /* Null now. */
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "comm is null", hocket_barrier(copy, NULL));
}

/* Runs after hocket's own handler, as the destructors of global objects do. */
static hocket_comm* kept;
static void at_exit(void) {
  float x = 1;
  const hocket_array array = host_array(&x, 1, HOCKET_FLOAT32);
  hocket_comm* made = NULL;
#define TOO_LATE(call) CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "this process is ending", call)
  if (kept == NULL) return;
  TOO_LATE(hocket_barrier(kept, NULL));
  TOO_LATE(hocket_all_reduce(kept, NULL, &array, HOCKET_SUM, NULL));
  TOO_LATE(hocket_duplicate(kept, NULL, &made));
  CHECK(made == NULL);
  hocket_comm_free(&kept);
}

/* The last rank dies; the others are told who, and go on without it. */
static void death(void) {
  if (my_rank == n - 1) raise(SIGKILL);
  CHECK_FAILS(HOCKET_PEER_DIED, "SIGKILL", hocket_barrier(world, NULL));
  hocket_error_info info = {.size = sizeof info};
  CHECK_OK(hocket_error_details(&info));
  CHECK(info.peer == n - 1 && info.signal == SIGKILL);
  hocket_comm* next = NULL;
  CHECK_OK(hocket_rebuild(world, NULL, &next));
  int epoch = -1, size = -1;
  CHECK_OK(hocket_comm_epoch(next, &epoch));
  CHECK_OK(hocket_comm_size(next, &size));
  CHECK(epoch == 1 && size == n - 1);
  CHECK_OK(hocket_barrier(next, NULL));
  hocket_comm_free(&world); /* the job goes on */
  CHECK_OK(hocket_barrier(next, NULL));
  CHECK_OK(hocket_comm_close(next));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "closed", hocket_barrier(next, NULL));
  hocket_comm_free(&next);
}

int main(int argc, char** argv) {
  CHECK(atexit(&at_exit) == 0);
  hocket_init_options wrong = {.size = 4};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "size is 4", hocket_init(&wrong, &world));
  wrong = (hocket_init_options){.size = sizeof wrong, .engines = "shm,teleport"};
  CHECK(world == NULL);
  if (argc == 1) {
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "teleport", hocket_init(&wrong, &world));
  }
  /* No name that only hocket's own source knows. */
  wrong = (hocket_init_options){.size = sizeof wrong, .ranks = INT_MAX, .address = "unix:none"};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "rank 0 of 2147483647", hocket_init(&wrong, &world));
  CHECK(strstr(hocket_error_message(), "hocket/") == NULL);
  CHECK_OK(hocket_init(NULL, &world));
  CHECK_OK(hocket_comm_rank(world, &my_rank));
  CHECK_OK(hocket_comm_size(world, &n));
  if (argc > 1 && strcmp(argv[1], "death") == 0) {
    death();
    return 0;
  }
  null_handles();
  wrong_arguments();
  wrong_handles();
  names();
  details();
  reasons();
  different_calls();
  after_close();
  CHECK_OK(hocket_duplicate(world, NULL, &kept));
  CHECK_OK(hocket_barrier(world, NULL));
  CHECK_OK(hocket_comm_close(world));
  CLOSED(hocket_barrier(world, NULL));
  hocket_comm_free(&world);
  return 0;
}
