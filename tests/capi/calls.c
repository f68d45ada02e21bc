/* Every kind of call of hocket/c.h between the ranks of a job: values that differ for each rank and
 * place, so that an array that is mixed up is found. */
#include "check.h"

/* What programs were built with stays as it is through 0.x. */
_Static_assert(sizeof(void*) != 8 || (sizeof(hocket_array) == 24 && sizeof(hocket_parts) == 24 &&
                                      sizeof(hocket_message) == 32),
               "arrays, parts and messages have no room for more fields");
_Static_assert(sizeof(void*) != 8 ||
                   (sizeof(hocket_init_options) >= 64 && sizeof(hocket_call_options) >= 32 &&
                    sizeof(hocket_rebuild_options) >= 24 &&
                    sizeof(hocket_symmetric_options) >= 24 && sizeof(hocket_error_info) >= 80),
               "options grow, and do not shrink");
_Static_assert(offsetof(hocket_call_options, deadline_ns) == sizeof(size_t) &&
                   offsetof(hocket_error_info, missing) > offsetof(hocket_error_info, host),
               "fields keep their order");
_Static_assert(HOCKET_INTERNAL == 10 && HOCKET_FLOAT8_E5M2 == 16 && HOCKET_BIT_XOR == 7 &&
                   HOCKET_MEMORY_CUDA == 2 && HOCKET_OBJECT_OTHER == 3,
               "numbers keep their meaning");

enum { kShare = 3 };

static int n;
static hocket_comm* world;

/* What rank r holds at place i. */
static float value(int r, int i) { return (float)(10 * r + i + 1); }

static float* filled(int count) {
  float* x = malloc(sizeof(float) * (size_t)count);
  CHECK(x != NULL);
  for (int i = 0; i < count; ++i) x[i] = value(my_rank, i);
  return x;
}

/* Over all ranks. */
static float total(int i) {
  float sum = 0;
  for (int r = 0; r < n; ++r) sum += value(r, i);
  return sum;
}

static void reductions(void) {
  float *x = filled(kShare), y[kShare];
  hocket_array in = host_array(x, kShare, HOCKET_FLOAT32);
  hocket_array out = host_array(y, kShare, HOCKET_FLOAT32);
  CHECK_OK(hocket_all_reduce(world, &in, &out, HOCKET_SUM, NULL));
  for (int i = 0; i < kShare; ++i) CHECK(y[i] == total(i) && x[i] == value(my_rank, i));
  CHECK_OK(hocket_all_reduce(world, &in, &out, HOCKET_MAX, NULL));
  for (int i = 0; i < kShare; ++i) CHECK(y[i] == value(n - 1, i));

  const int root = n - 1;
  CHECK_OK(hocket_reduce(world, &in, my_rank == root ? &out : NULL, HOCKET_SUM, root, NULL));
  if (my_rank == root) {
    for (int i = 0; i < kShare; ++i) CHECK(y[i] == total(i));
  }

  hocket_work* work = NULL;
  float* before = filled(kShare);
  hocket_array prefix = host_array(before, kShare, HOCKET_FLOAT32);
  CHECK_OK(hocket_scan(world, &in, &out, HOCKET_MAX, NULL));
  CHECK_OK(hocket_exscan(world, NULL, &prefix, HOCKET_MAX, NULL));
  for (int i = 0; i < kShare; ++i) {
    CHECK(y[i] == value(my_rank, i));
    CHECK(before[i] == value(my_rank == 0 ? 0 : my_rank - 1, i));
  }
  CHECK_OK(hocket_scan_async(world, &in, &prefix, HOCKET_MIN, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  hocket_work_free(&work);
  CHECK_OK(hocket_exscan_async(world, &in, my_rank == 0 ? NULL : &out, HOCKET_MIN, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  hocket_work_free(&work);
  for (int i = 0; i < kShare; ++i) {
    CHECK(before[i] == value(0, i));
    CHECK(my_rank == 0 || y[i] == value(0, i));
  }
  free(before);

  CHECK_OK(hocket_all_reduce_async(world, NULL, &in, HOCKET_SUM, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  int done = 0;
  CHECK_OK(hocket_work_test(work, &done));
  CHECK(done == 1);
  hocket_work_free(&work);
  CHECK(work == NULL);
  for (int i = 0; i < kShare; ++i) CHECK(x[i] == total(i));
  free(x);

  x = filled(kShare * n);
  in = host_array(x, (size_t)(kShare * n), HOCKET_FLOAT32);
  CHECK_OK(hocket_reduce_scatter(world, &in, &out, HOCKET_SUM, NULL));
  for (int i = 0; i < kShare; ++i) CHECK(y[i] == total(my_rank * kShare + i));
  free(x);
}

static void movement(void) {
  const int root = n / 2;
  float* x = filled(kShare);
  hocket_array in = host_array(x, kShare, HOCKET_FLOAT32);
  float* all = filled(kShare * n);
  hocket_array out = host_array(all, (size_t)(kShare * n), HOCKET_FLOAT32);

  CHECK_OK(hocket_all_gather(world, &in, &out, NULL));
  for (int i = 0; i < kShare * n; ++i) CHECK(all[i] == value(i / kShare, i % kShare));
  memset(all, 0, sizeof(float) * (size_t)(kShare * n));
  CHECK_OK(hocket_gather(world, &in, my_rank == root ? &out : NULL, root, NULL));
  if (my_rank == root) {
    for (int i = 0; i < kShare * n; ++i) CHECK(all[i] == value(i / kShare, i % kShare));
  }
  for (int i = 0; i < kShare * n; ++i) all[i] = value(my_rank, i);
  CHECK_OK(hocket_scatter(world, my_rank == root ? &out : NULL, &in, root, NULL));
  for (int i = 0; i < kShare; ++i) CHECK(x[i] == value(root, my_rank * kShare + i));

  float* swapped = filled(kShare * n);
  hocket_array other = host_array(swapped, (size_t)(kShare * n), HOCKET_FLOAT32);
  CHECK_OK(hocket_all_to_all(world, &out, &other, NULL));
  for (int i = 0; i < kShare * n; ++i) {
    CHECK(swapped[i] == value(i / kShare, my_rank * kShare + i % kShare));
  }

  for (int i = 0; i < kShare; ++i) x[i] = value(my_rank, i);
  hocket_work* work = NULL;
  CHECK_OK(hocket_broadcast_async(world, NULL, &in, root, NULL, &work));
  int done = 0;
  while (!done) CHECK_OK(hocket_work_wait_for(work, 1000000, &done));
  hocket_work_free(&work);
  for (int i = 0; i < kShare; ++i) CHECK(x[i] == value(root, i));
  CHECK_OK(hocket_barrier(world, NULL));
  free(swapped);
  free(all);
  free(x);
}

/* Rank r has r + 1 elements. */
static void unequal_parts(void) {
  const int mine = my_rank + 1, sum = n * (n + 1) / 2;
  size_t* counts = malloc(sizeof(size_t) * (size_t)n);
  CHECK(counts != NULL);
  for (int r = 0; r < n; ++r) counts[r] = (size_t)r + 1;
  float *x = filled(mine), *all = filled(sum);
  const hocket_array in = host_array(x, (size_t)mine, HOCKET_FLOAT32);
  const hocket_array out = host_array(all, (size_t)sum, HOCKET_FLOAT32);
  const hocket_parts parts = {counts, NULL, (size_t)n};

  const hocket_parts* both[] = {&parts, NULL}; /* known, and asked for */
  for (int known = 0; known < 2; ++known) {
    memset(all, 0, sizeof(float) * (size_t)sum);
    CHECK_OK(hocket_all_gather_v(world, &in, &out, both[known], NULL));
    for (int r = 0, place = 0; r < n; ++r) {
      for (int i = 0; i <= r; ++i) CHECK(all[place++] == value(r, i));
    }
  }
  CHECK_OK(hocket_scatter_v(world, &out, my_rank == 0 ? &parts : NULL, &in, 0, NULL));
  for (int i = 0; i < mine; ++i) CHECK(x[i] == value(my_rank, i));
  CHECK_OK(hocket_gather_v(world, &in, my_rank == 0 ? &out : NULL, &parts, 0, NULL));
  CHECK_OK(hocket_reduce_scatter_v(world, &out, &in, counts, (size_t)n, HOCKET_MAX, NULL));

  /* To rank r go r + 1 elements, from each. */
  float* received = filled(mine * n);
  const hocket_array from_all = host_array(received, (size_t)(mine * n), HOCKET_FLOAT32);
  for (int i = 0; i < sum; ++i) all[i] = value(my_rank, i);
  hocket_work* work = NULL;
  CHECK_OK(hocket_all_to_all_v_async(world, &out, &parts, &from_all, NULL, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  hocket_work_free(&work);
  for (int r = 0; r < n; ++r) {
    for (int i = 0; i < mine; ++i) {
      CHECK(received[r * mine + i] == value(r, my_rank * (my_rank + 1) / 2 + i));
    }
  }
  free(received);
  free(all);
  free(x);
  free(counts);
}

static void messages(void) {
  const int next = (my_rank + 1) % n, previous = (my_rank + n - 1) % n;
  double out = my_rank + 0.5, in = -1;
  const hocket_array sent = host_array(&out, 1, HOCKET_FLOAT64);
  const hocket_array received = host_array(&in, 1, HOCKET_FLOAT64);
  CHECK_OK(hocket_send_recv(world, &sent, next, &received, previous, 5, NULL));
  CHECK(in == previous + 0.5);

  hocket_work* work = NULL;
  in = -1;
  CHECK_OK(hocket_recv_async(world, &received, HOCKET_ANY_SOURCE, 7, NULL, &work));
  CHECK_OK(hocket_send(world, &sent, next, 7, NULL));
  CHECK_OK(hocket_work_wait(work));
  hocket_received told = {-1, -1, 0, -1};
  CHECK_OK(hocket_work_received(work, &told));
  CHECK(in == previous + 0.5 && told.source == previous && told.tag == 7);
  CHECK(told.count == 1 && told.dtype == HOCKET_FLOAT64);
  hocket_work_free(&work);

  in = -1;
  const hocket_message outgoing = {sent, next}, incoming = {received, previous};
  CHECK_OK(hocket_exchange(world, &outgoing, 1, &incoming, 1, 0, NULL));
  CHECK(in == previous + 0.5);

  CHECK_OK(hocket_send_async(world, &sent, next, 9, NULL, &work));
  in = -1;
  told.source = -1;
  CHECK_OK(hocket_recv(world, &received, previous, 9, NULL, &told));
  CHECK(in == previous + 0.5 && told.source == previous);
  CHECK_OK(hocket_work_wait(work));
  hocket_work_free(&work);

  // From any source and tag, and shorter than its array.
  double three[3] = {-1, -2, -3};
  const hocket_array room = host_array(three, 3, HOCKET_FLOAT64);
  const hocket_call_options shorter = {.size = sizeof shorter, .allow_shorter = 1};
  int found = 1;
  CHECK_OK(hocket_probe_now(world, HOCKET_ANY_SOURCE, HOCKET_ANY_TAG, &told, &found));
  CHECK(found == 0);
  CHECK_OK(hocket_barrier(world, NULL));
  CHECK_OK(hocket_send(world, &sent, next, 11, NULL));
  CHECK_OK(hocket_probe(world, HOCKET_ANY_SOURCE, HOCKET_ANY_TAG, NULL, &told));
  CHECK(told.source == previous && told.tag == 11 && told.count == 1);
  CHECK_OK(hocket_probe_now(world, previous, 11, &told, &found));
  CHECK(found == 1 && told.dtype == HOCKET_FLOAT64);
  told.count = 9;
  CHECK_OK(hocket_recv(world, &room, HOCKET_ANY_SOURCE, HOCKET_ANY_TAG, &shorter, &told));
  CHECK(told.source == previous && told.tag == 11 && told.count == 1);
  CHECK(three[0] == previous + 0.5 && three[1] == -2 && three[2] == -3);
}

static void groups(void) {
  hocket_comm *half = NULL, *copy = NULL, *near = NULL, *some = NULL;
  CHECK_OK(hocket_split(world, my_rank % 2, -my_rank, NULL, &half));
  int rank = -2, size = -1;
  CHECK_OK(hocket_comm_rank(half, &rank));
  CHECK_OK(hocket_comm_size(half, &size));
  CHECK(size == (n + 1 - my_rank % 2) / 2);
  int32_t* members = malloc(sizeof(int32_t) * (size_t)n);
  CHECK(members != NULL);
  CHECK_OK(hocket_comm_world_ranks(half, members, (size_t)n));
  CHECK(members[rank] == my_rank);
  for (int i = 1; i < size; ++i) CHECK(members[i] == members[i - 1] - 2);
  int64_t sum = my_rank;
  const hocket_array x = host_array(&sum, 1, HOCKET_INT64);
  CHECK_OK(hocket_all_reduce(half, NULL, &x, HOCKET_SUM, NULL));
  int64_t expected = 0;
  for (int r = my_rank % 2; r < n; r += 2) expected += r;
  CHECK(sum == expected);

  CHECK_OK(hocket_duplicate(world, NULL, &copy));
  CHECK_OK(hocket_barrier(copy, NULL));
  CHECK_OK(hocket_intra_node(world, &near));
  CHECK_OK(hocket_comm_size(near, &size));
  CHECK(size == n);
  CHECK_OK(hocket_comm_hosts(near, members, (size_t)n));
  for (int i = 0; i < n; ++i) CHECK(members[i] == 0);

  const int32_t last = n - 1;
  CHECK_OK(hocket_new_group(world, &last, 1, NULL, &some));
  CHECK_OK(hocket_comm_rank(some, &rank));
  CHECK(rank == (my_rank == last ? 0 : -1));
  if (my_rank != last) {
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "", hocket_barrier(some, NULL));
  }
  hocket_comm_free(&some);
  CHECK_OK(hocket_comm_close(copy));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "closed", hocket_barrier(copy, NULL));
  hocket_comm_free(&copy);
  hocket_comm_free(&near);
  hocket_comm_free(&half);
  free(members);
}

static void symmetric(void) {
  hocket_symmetric* made = NULL;
  CHECK_OK(hocket_symmetric_empty(world, kShare, HOCKET_INT32, NULL, &made));
  hocket_array mine, theirs;
  CHECK_OK(hocket_symmetric_local(made, &mine));
  CHECK(mine.count == kShare && mine.dtype == HOCKET_INT32 && mine.memory == HOCKET_MEMORY_HOST);
  const int next = (my_rank + 1) % n;
  CHECK_OK(hocket_symmetric_peer(made, next, &theirs));
  for (int i = 0; i < kShare; ++i) ((int32_t*)theirs.data)[i] = 100 * my_rank + i;
  CHECK_OK(hocket_barrier(world, NULL));
  const int previous = (my_rank + n - 1) % n;
  for (int i = 0; i < kShare; ++i) CHECK(((int32_t*)mine.data)[i] == 100 * previous + i);
  CHECK_OK(hocket_all_reduce(world, NULL, &mine, HOCKET_SUM, NULL));
  for (int i = 0; i < kShare; ++i) {
    CHECK(((int32_t*)mine.data)[i] == 100 * n * (n - 1) / 2 + n * i);
  }
  hocket_symmetric_free(&made);
  CHECK(made == NULL);
}

static int has(const hocket_object* object, const char* text) {
  const void* data = NULL;
  size_t length = 0;
  CHECK_OK(hocket_object_bytes(object, &data, &length));
  return length == strlen(text) && memcmp(data, text, length) == 0;
}

static void objects(void) {
  char text[32], expected[32];
  snprintf(text, sizeof text, "%*s from %d", my_rank, "", my_rank); /* each as long as it likes */
  hocket_object *mine = NULL, *got = NULL;
  CHECK_OK(hocket_object_from_bytes(text, strlen(text), &mine));
  CHECK_OK(hocket_broadcast_object(world, my_rank == 0 ? mine : NULL, 0, NULL, &got));
  CHECK(has(got, " from 0"));
  hocket_object_free(&got);

  hocket_object** all = calloc((size_t)n, sizeof *all);
  CHECK(all != NULL);
  CHECK_OK(hocket_all_gather_object(world, mine, NULL, all, (size_t)n));
  for (int r = 0; r < n; ++r) {
    snprintf(expected, sizeof expected, "%*s from %d", r, "", r);
    int kind = -1;
    CHECK_OK(hocket_object_kind(all[r], &kind));
    CHECK(kind == HOCKET_OBJECT_BYTES && has(all[r], expected));
  }
  CHECK_OK(hocket_scatter_object(
      world, (const hocket_object* const*)all, my_rank == 0 ? (size_t)n : 0, 0, NULL, &got));
  CHECK(has(got, text));
  hocket_object_free(&got);
  for (int r = 0; r < n; ++r) hocket_object_free(&all[r]);
  CHECK_OK(
      hocket_gather_object(world, mine, n - 1, NULL, my_rank == n - 1 ? all : NULL, (size_t)n));
  for (int r = 0; r < n; ++r) {
    CHECK((all[r] != NULL) == (my_rank == n - 1));
    hocket_object_free(&all[r]);
  }
  free(all);

  /* An encoding is an object again. */
  const void* data = NULL;
  size_t length = 0;
  hocket_object* named = NULL;
  CHECK_OK(hocket_object_from_string("na\xc3\xafve", &named));
  CHECK_OK(hocket_object_encoding(named, &data, &length));
  CHECK_OK(hocket_object_decode(data, length, &got));
  int kind = -1;
  CHECK_OK(hocket_object_kind(got, &kind));
  CHECK(kind == HOCKET_OBJECT_STRING && has(got, "na\xc3\xafve"));
  hocket_object_free(&got);
  hocket_object_free(&named);
  hocket_object_free(&mine);
}

/* Neither commutative nor associative: `context` says by how much the left one counts. */
static int weighted(void* left, const void* right, size_t count, void* context) {
  double *a = left, weight = *(const double*)context;
  const double* b = right;
  for (size_t i = 0; i < count; ++i) a[i] = a[i] * weight + b[i];
  return 0;
}
static int failing(void* left, const void* right, size_t count, void* context) {
  (void)left, (void)right, (void)count;
  return my_rank == n - 1 ? *(const int*)context : 0;
}

/* What ranks 0 to `last` come to at place i. */
static double weighted_total(int last, int i, double weight) {
  double total = value(0, i);
  for (int r = 1; r <= last; ++r) total = total * weight + value(r, i);
  return total;
}

static void own_operators(void) {
  enum { kCount = 5 };
  double weight = 0.5, x[kCount], y[kCount] = {0};
  for (int i = 0; i < kCount; ++i) x[i] = value(my_rank, i);
  const hocket_array in = host_array(x, kCount, HOCKET_FLOAT64);
  const hocket_array out = host_array(y, kCount, HOCKET_FLOAT64);
  hocket_operator op = {.size = sizeof op, .combine = weighted, .context = &weight};
  CHECK_OK(hocket_all_reduce_by(world, &in, &out, &op, NULL));
  for (int i = 0; i < kCount; ++i) CHECK(y[i] == weighted_total(n - 1, i, weight));
  const int root = n - 1;
  CHECK_OK(hocket_reduce_by(world, &in, my_rank == root ? &out : NULL, &op, root, NULL));
  CHECK_OK(hocket_scan_by(world, &in, &out, &op, NULL));
  for (int i = 0; i < kCount; ++i) CHECK(y[i] == weighted_total(my_rank, i, weight));

  hocket_work* works[3] = {NULL, NULL, NULL};
  double z[kCount], mine = -1, *shares = malloc(sizeof(double) * (size_t)n);
  CHECK(shares != NULL);
  for (int i = 0; i < n; ++i) shares[i] = value(my_rank, i);
  memcpy(z, x, sizeof z);
  const hocket_array all = host_array(shares, (size_t)n, HOCKET_FLOAT64);
  const hocket_array share = host_array(&mine, 1, HOCKET_FLOAT64);
  const hocket_array inout = host_array(z, kCount, HOCKET_FLOAT64);
  CHECK_OK(hocket_exscan_by_async(world, &in, &out, &op, NULL, &works[0]));
  CHECK_OK(hocket_reduce_scatter_by_async(world, &all, &share, &op, NULL, &works[1]));
  CHECK_OK(hocket_all_reduce_by_async(world, NULL, &inout, &op, NULL, &works[2]));
  memset(&op, 0, sizeof op); /* it has been copied */
  for (int i = 0; i < 3; ++i) CHECK_OK(hocket_work_wait(works[i]));
  for (int i = 0; i < 3; ++i) hocket_work_free(&works[i]);
  for (int i = 0; i < kCount && my_rank > 0; ++i) {
    CHECK(y[i] == weighted_total(my_rank - 1, i, weight));
  }
  CHECK(mine == weighted_total(n - 1, my_rank, weight));
  for (int i = 0; i < kCount; ++i) CHECK(z[i] == weighted_total(n - 1, i, weight));
  free(shares);

  int code = 7;
  if (n > 1) {
    const hocket_operator unlucky = {.size = sizeof op, .combine = failing, .context = &code};
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
                "it returned 7",
                hocket_all_reduce_by(world, &in, &out, &unlucky, NULL));
  }
  const hocket_operator none = {.size = sizeof op};
  const hocket_operator some = {.size = sizeof op, .combine = weighted, .context = &weight};
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              my_rank == 0 || n == 1 ? "combine is null" : "refused",
              hocket_all_reduce_by(world, &in, &out, my_rank == 0 ? &none : &some, NULL));
}

static void extremes(void) {
  enum { kCount = 3 };
  float x[kCount], least[kCount];
  int32_t ranks[kCount];
  int64_t index[kCount], found[kCount];
  for (int i = 0; i < kCount; ++i) {
    x[i] = i == 1 ? 5 : value(my_rank, i);
    index[i] = 100 * my_rank + i;
  }
  const hocket_array in = host_array(x, kCount, HOCKET_FLOAT32);
  const hocket_array values = host_array(least, kCount, HOCKET_FLOAT32);
  const hocket_array who = host_array(ranks, kCount, HOCKET_INT32);
  const hocket_array known = host_array(index, kCount, HOCKET_INT64);
  const hocket_array indices = host_array(found, kCount, HOCKET_INT64);
  CHECK_OK(hocket_argmin(world, &in, NULL, &values, &who, NULL, NULL));
  for (int i = 0; i < kCount; ++i) CHECK(ranks[i] == 0 && least[i] == (i == 1 ? 5 : value(0, i)));
  hocket_work* work = NULL;
  CHECK_OK(hocket_argmax_async(world, &in, &known, &values, &who, &indices, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  hocket_work_free(&work);
  for (int i = 0; i < kCount; ++i) {
    const int best = i == 1 ? 0 : n - 1; /* of equals the lowest */
    CHECK(ranks[i] == best && found[i] == 100 * best + i);
  }
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              my_rank == 0 ? "ranks is null" : "refused",
              hocket_argmax(world, &in, NULL, &values, my_rank == 0 ? NULL : &who, NULL, NULL));
}

int main(void) {
  CHECK_OK(hocket_init(NULL, &world));
  CHECK_OK(hocket_comm_rank(world, &my_rank));
  CHECK_OK(hocket_comm_size(world, &n));
  const char* name = NULL;
  CHECK_OK(hocket_comm_name(world, &name));
  CHECK(strcmp(name, "world") == 0);
  reductions();
  own_operators();
  extremes();
  movement();
  unequal_parts();
  messages();
  groups();
  symmetric();
  objects();
  CHECK_OK(hocket_comm_status(world));
  CHECK_OK(hocket_barrier(world, NULL));
  hocket_comm_free(&world);
  CHECK(world == NULL);
  return 0;
}
