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

  int withdrawn = -1;
  CHECK_OK(hocket_recv_async(world, &received, previous, 8, NULL, &work));
  CHECK_OK(hocket_work_withdraw(work, &withdrawn));
  CHECK(withdrawn == 1 && hocket_work_received(work, &told) == HOCKET_INVALID_ARGUMENT);
  CHECK_OK(hocket_work_wait(work));
  CHECK_OK(hocket_work_withdraw(work, &withdrawn));
  CHECK(withdrawn == 0);
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

  /* The same while sending; each rank sends another number. */
  double some[8];
  for (int i = 0; i < 8; ++i) some[i] = 100 * my_rank + i;
  three[0] = three[1] = three[2] = -1;
  const hocket_array few = host_array(some, (size_t)(1 + my_rank % 2), HOCKET_FLOAT64);
  const hocket_call_options both = {.size = sizeof both, .allow_shorter = 1, .received = &told};
  CHECK_OK(hocket_send_recv(world, &few, next, &room, previous, 5, &both));
  CHECK(told.source == previous && told.count == (size_t)(1 + previous % 2));
  CHECK(three[0] == 100 * previous && three[1] == (previous % 2 ? 100 * previous + 1 : -1));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "received is set",
              hocket_send(world,
                          &few,
                          HOCKET_NULL_RANK,
                          5,
                          &(hocket_call_options){.size = sizeof both, .received = &told}));
}

static void prepared(void) {
  double x[kShare] = {1, 2, 3}, y[8 * kShare] = {0};
  const hocket_array in = host_array(x, kShare, HOCKET_FLOAT64);
  const hocket_array out = host_array(y, kShare, HOCKET_FLOAT64);
  const hocket_array all = host_array(y, (size_t)n * kShare, HOCKET_FLOAT64);
  hocket_prepared* call = NULL;
  hocket_work* work = NULL;
  CHECK_OK(hocket_prepare_all_reduce(world, &in, &out, HOCKET_SUM, NULL, &call));
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kShare; ++i) x[i] = round * (my_rank + i);
    if (round == 2) {
      CHECK_OK(hocket_prepared_start(call, &work));
      CHECK_OK(hocket_work_wait(work));
      hocket_work_free(&work);
    } else {
      CHECK_OK(hocket_prepared_call(call));
    }
    for (int i = 0; i < kShare; ++i) CHECK(y[i] == round * (n * (n - 1) / 2 + n * i));
  }
  hocket_prepared_free(&call);
  CHECK(call == NULL);
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "prepared is null", hocket_prepared_call(call));

  /* Each verb; the values are those of the calls themselves, which others check. */
  for (int i = 0; i < kShare; ++i) x[i] = 10 * my_rank + i;
  enum { kVerbs = 9 };
  hocket_prepared* calls[kVerbs] = {NULL};
  CHECK_OK(hocket_prepare_reduce(world, &in, &out, HOCKET_MAX, 0, NULL, &calls[0]));
  CHECK_OK(hocket_prepare_scan(world, &in, &out, HOCKET_MAX, NULL, &calls[1]));
  CHECK_OK(hocket_prepare_exscan(world, &in, &out, HOCKET_MAX, NULL, &calls[2]));
  CHECK_OK(hocket_prepare_reduce_scatter(world, NULL, &all, HOCKET_MAX, NULL, &calls[3]));
  CHECK_OK(hocket_prepare_broadcast(world, &in, &out, n - 1, NULL, &calls[4]));
  CHECK_OK(hocket_prepare_all_gather(world, &in, &all, NULL, &calls[5]));
  CHECK_OK(hocket_prepare_gather(world, &in, my_rank == 0 ? &all : NULL, 0, NULL, &calls[6]));
  CHECK_OK(hocket_prepare_scatter(world, my_rank == 0 ? &all : NULL, &in, 0, NULL, &calls[7]));
  CHECK_OK(hocket_prepare_all_to_all(world, NULL, &all, NULL, &calls[8]));
  for (int verb = 0; verb < kVerbs; ++verb) {
    CHECK_OK(hocket_prepared_call(calls[verb]));
    if (verb == 1) CHECK(y[0] == 10 * my_rank);
    if (verb == 4) CHECK(y[1] == 10 * (n - 1) + 1);
    if (verb == 5) CHECK(y[(n - 1) * kShare + 2] == 10 * (n - 1) + 2);
    hocket_prepared_free(&calls[verb]);
  }
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              my_rank == 0 ? "prepared is null" : "refused",
              my_rank == 0 ? hocket_prepare_broadcast(world, NULL, &out, 0, NULL, NULL)
                           : hocket_broadcast(world, NULL, &out, 0, NULL));
}

static int told_code;
/* A callback's call is refused, and each rank hears of it. */
static void tell(void* context) {
  *(int*)context += 1;
  told_code = hocket_barrier(world, NULL);
}

static void callbacks(void) {
  int told = 0;
  double x = 1;
  const hocket_array one = host_array(&x, 1, HOCKET_FLOAT64);
  hocket_work* work = NULL;
  CHECK_OK(hocket_all_reduce_async(world, NULL, &one, HOCKET_SUM, NULL, &work));
  CHECK_OK(hocket_work_wait(work));
  CHECK_OK(hocket_work_on_done(work, &tell, &told));
  CHECK(told == 1 && told_code == HOCKET_INVALID_ARGUMENT && x == n);
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "f is null", hocket_work_on_done(work, NULL, &told));
  hocket_work_free(&work);
  CHECK_FAILS(HOCKET_SYSTEM, "/dev/null/folder", hocket_comm_dump(world, "/dev/null/folder"));
}

static void several_works(void) {
  enum { kWorks = 3 };
  double x[kWorks];
  hocket_work* works[kWorks] = {NULL};
  const int next = (my_rank + 1) % n, previous = (my_rank + n - 1) % n;
  size_t places[kWorks] = {9, 9, 9}, found = 9, first = 9;
  int done = 9;
  for (int i = 0; i < kWorks; ++i) {
    const hocket_array room = host_array(&x[i], 1, HOCKET_FLOAT64);
    CHECK_OK(hocket_recv_async(world, &room, previous, 20 + i, NULL, &works[i]));
  }
  CHECK_OK(hocket_barrier(world, NULL));
  CHECK_OK(hocket_wait_some(works, kWorks, 1000, places, &found));
  CHECK(found == 0);
  CHECK_OK(hocket_wait_any(works, kWorks, 0, &first, &done));
  CHECK(done == 0 && first == 9);
  CHECK_OK(hocket_wait_all(works, kWorks, 1000, &done));
  CHECK(done == 0);
  CHECK_OK(hocket_barrier(world, NULL));
  for (int i = kWorks - 1; i >= 0; --i) {
    double sent = 10 * my_rank + i;
    const hocket_array array = host_array(&sent, 1, HOCKET_FLOAT64);
    CHECK_OK(hocket_send(world, &array, next, 20 + i, NULL));
    if (i == kWorks - 1) {
      CHECK_OK(hocket_wait_any(works, kWorks, HOCKET_FOREVER, &first, &done));
      CHECK(done == 1 && first == kWorks - 1 && x[first] == 10 * previous + (int)first);
      CHECK_OK(hocket_barrier(world, NULL));
    }
  }
  CHECK_OK(hocket_wait_all(works, kWorks, HOCKET_FOREVER, &done));
  CHECK(done == 1);
  CHECK_OK(hocket_wait_some(works, kWorks, HOCKET_FOREVER, places, &found));
  CHECK(found == kWorks && places[0] == 0 && places[2] == 2);
  for (int i = 0; i < kWorks; ++i) {
    CHECK(x[i] == 10 * previous + i);
    hocket_work_free(&works[i]);
  }
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "works[0] is null", hocket_wait_all(works, 1, 0, &done));
  CHECK_FAILS(
      HOCKET_INVALID_ARGUMENT, "works is empty", hocket_wait_some(works, 0, 0, places, &found));
}

static void neighbours(void) {
  /* A column of a 3 by 4 array, and from it a row of another. */
  double x[12], y[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 12; ++i) x[i] = 100 * my_rank + i;
  const int next = (my_rank + 1) % n, previous = (my_rank + n - 1) % n;
  const hocket_strided column = {
      .data = &x[2], .dtype = HOCKET_FLOAT64, .axes = 1, .shape = {3}, .strides = {4}};
  const hocket_strided row = {
      .data = &y[1], .dtype = HOCKET_FLOAT64, .axes = 1, .shape = {3}, .strides = {1}};
  hocket_received told = {-1, -1, 0, -1};
  CHECK_OK(hocket_send_recv_strided(world, &column, next, &row, previous, 3, NULL, &told));
  CHECK(told.source == previous && told.count == 3 && y[0] == -1);
  for (int i = 0; i < 3; ++i) CHECK(y[1 + i] == 100 * previous + 2 + 4 * i);
  if (my_rank == 0) CHECK_OK(hocket_send_strided(world, &column, n - 1, 4, NULL));
  if (my_rank == n - 1 && n > 1) {
    CHECK_OK(hocket_recv_strided(world, &column, 0, 4, NULL, NULL));
    CHECK(x[2] == 2 && x[6] == 6 && x[7] == 100 * my_rank + 7);
  }
  if (n == 1) CHECK_OK(hocket_recv_strided(world, &row, 0, 4, NULL, NULL));
  hocket_strided wrong = column;
  wrong.axes = 9;
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "axes is 9", hocket_send_strided(world, &wrong, 0, 4, NULL));

  /* A ring of two cells a rank, with a border of one, and a second axis of one rank. */
  hocket_grid* grid = NULL;
  const int32_t shape[2] = {-1, 1}, periodic[2] = {1, 0};
  int32_t extents[2] = {0, 0}, place[2] = {9, 9}, source = 9, destination = 9, there = 9;
  CHECK_OK(hocket_grid_make(world, shape, periodic, 2, &grid));
  CHECK_OK(hocket_grid_shape(grid, extents, 2));
  CHECK(extents[0] == n && extents[1] == 1);
  CHECK_OK(hocket_grid_coordinates(grid, n - 1, place, 2));
  CHECK(place[0] == n - 1 && place[1] == 0);
  CHECK_OK(hocket_grid_rank(grid, place, 2, &there));
  CHECK(there == n - 1);
  CHECK_OK(hocket_grid_shift(grid, 0, 1, &source, &destination));
  CHECK(source == previous && destination == next);
  CHECK_OK(hocket_grid_shift(grid, 1, 1, &source, &destination));
  CHECK(source == HOCKET_NULL_RANK && destination == HOCKET_NULL_RANK);
  float cells[4][3];
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 3; ++k) cells[i][k] = i == 0 || i == 3 ? -1 : value(my_rank, 3 * i + k);
  }
  const hocket_strided part = {
      .data = cells, .dtype = HOCKET_FLOAT32, .axes = 2, .shape = {4, 3}, .strides = {3, 1}};
  const hocket_halo halo[2] = {{1, 1}, {0, 0}};
  CHECK_OK(hocket_neighbour_exchange(grid, &part, halo, 2, 0, NULL));
  for (int k = 0; k < 3; ++k) {
    CHECK(cells[0][k] == value(previous, 3 * 2 + k) && cells[3][k] == value(next, 3 + k));
    CHECK(cells[1][k] == value(my_rank, 3 + k));
  }
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "halo has 1 entries",
              hocket_neighbour_exchange(grid, &part, halo, 1, 0, NULL));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT, "length is 1", hocket_grid_shape(grid, extents, 1));
  hocket_grid_free(&grid);
  CHECK(grid == NULL);
}

static void coalesced(void) {
  double x[2] = {my_rank, my_rank + 1}, y[8 * 2];
  int32_t k[3] = {my_rank, 2, 3};
  const hocket_array arrays[2] = {host_array(x, 2, HOCKET_FLOAT64), host_array(k, 3, HOCKET_INT32)};
  const double sum = n * (n - 1) / 2.0;
  CHECK_OK(hocket_all_reduce_coalesced(world, arrays, 2, HOCKET_SUM, NULL));
  CHECK(x[0] == sum && x[1] == sum + n && k[0] == (int)sum && k[2] == 3 * n);
  x[0] = k[1] = my_rank;
  CHECK_OK(hocket_broadcast_coalesced(world, arrays, 2, n - 1, NULL));
  CHECK(x[0] == n - 1 && k[1] == n - 1);
  x[0] = my_rank;
  const hocket_array gathered = host_array(y, 2 * (size_t)n, HOCKET_FLOAT64);
  CHECK_OK(hocket_all_gather_coalesced(world, arrays, &gathered, 1, NULL));
  CHECK(y[0] == 0 && y[2 * (n - 1)] == n - 1);
  CHECK_OK(hocket_reduce_scatter_coalesced(world, &gathered, arrays, 1, HOCKET_SUM, NULL));
  CHECK(x[0] == n * my_rank);
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              my_rank == 0 ? "arrays is null" : "refused",
              hocket_all_reduce_coalesced(world, my_rank == 0 ? NULL : arrays, 2, 0, NULL));

  const hocket_array shards = host_array(y, 2, HOCKET_FLOAT64);
  y[0] = 0.1, y[1] = my_rank;
  CHECK_OK(hocket_reproducible_sum(world, &shards, arrays, HOCKET_SUM, NULL));
  CHECK(x[0] > 0.0999 * n && x[0] < 0.1001 * n && x[1] == sum);
  x[0] = x[1] = my_rank;
  CHECK_OK(hocket_compressed_all_reduce(world, arrays, HOCKET_SUM, NULL));
  CHECK(x[0] == sum && x[1] == sum);
  x[0] = my_rank;
  x[1] = 1;
  CHECK_OK(hocket_hierarchical_all_reduce(world, arrays, HOCKET_SUM, 0, NULL));
  CHECK(x[0] == sum && x[1] == n);
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              my_rank == 0 ? "op is 99" : "refused",
              hocket_hierarchical_all_reduce(world, arrays, my_rank == 0 ? 99 : 0, 0, NULL));

  /* Objects from rank to rank. */
  char text[16];
  sprintf(text, "from %d", my_rank);
  hocket_object *mine = NULL, *got = NULL;
  const void* bytes = NULL;
  size_t length = 0;
  int32_t from = -1;
  CHECK_OK(hocket_object_from_string(text, &mine));
  if (my_rank > 0) CHECK_OK(hocket_send_object(world, mine, 0, 6, NULL));
  for (int r = 1; my_rank == 0 && r < n; ++r) {
    CHECK_OK(hocket_recv_object(world, r, 6, NULL, &got, &from));
    CHECK_OK(hocket_object_bytes(got, &bytes, &length));
    sprintf(text, "from %d", r);
    CHECK(from == r && strcmp(bytes, text) == 0);
    hocket_object_free(&got);
  }
  hocket_object_free(&mine);
  CHECK_OK(hocket_barrier(world, NULL));
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

/* Waits for a call, takes its objects, and frees its handle. Returns their number. */
static size_t take_objects(hocket_work** work, hocket_object** results, size_t length) {
  size_t count = 99;
  CHECK_OK(hocket_work_wait(*work));
  CHECK_OK(hocket_work_objects(*work, results, length, &count, NULL));
  hocket_work_free(work);
  return count;
}

static void objects_without_waiting(void) {
  char text[32], expected[32];
  snprintf(text, sizeof text, "%*s from %d", my_rank, "", my_rank);
  hocket_object *mine = NULL, *taken = NULL;
  hocket_work *work = NULL, *others = NULL;
  size_t count = 0;
  hocket_object** all = calloc((size_t)n, sizeof *all);
  CHECK(all != NULL);
  CHECK_OK(hocket_object_from_bytes(text, strlen(text), &mine));

  /* Two at a time, and the objects may go once the calls have started. */
  CHECK_OK(hocket_broadcast_object_async(world, my_rank == 0 ? mine : NULL, 0, NULL, &work));
  CHECK_OK(hocket_all_gather_object_async(world, mine, NULL, &others));
  hocket_object_free(&mine);
  CHECK(take_objects(&others, all, (size_t)n) == (size_t)n);
  for (int r = 0; r < n; ++r) {
    snprintf(expected, sizeof expected, "%*s from %d", r, "", r);
    CHECK(has(all[r], expected));
  }
  CHECK(take_objects(&work, &taken, 1) == 1 && has(taken, " from 0"));
  hocket_object_free(&taken);

  CHECK_OK(hocket_scatter_object_async(
      world, (const hocket_object* const*)all, my_rank == 0 ? (size_t)n : 0, 0, NULL, &work));
  for (int r = 0; r < n; ++r) hocket_object_free(&all[r]);
  CHECK(take_objects(&work, &taken, 1) == 1 && has(taken, text));

  CHECK_OK(hocket_gather_object_async(world, taken, n - 1, NULL, &work));
  const size_t wanted = my_rank == n - 1 ? (size_t)n : 0;
  CHECK_OK(hocket_work_wait(work));
  if (wanted > 0) { /* with too few places nothing is given, and it may be called again */
    CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
                "length is",
                hocket_work_objects(work, all, wanted - 1, &count, NULL));
    CHECK(all[0] == NULL);
  }
  CHECK(take_objects(&work, all, (size_t)n) == wanted);
  for (int r = 0; r < n; ++r) {
    CHECK((all[r] != NULL) == (wanted > 0));
    hocket_object_free(&all[r]);
  }
  free(all);

  /* Round the ring, also to oneself. */
  int32_t from = 99;
  CHECK_OK(hocket_recv_object_async(world, HOCKET_ANY_SOURCE, 8, NULL, &work));
  CHECK_OK(hocket_send_object_async(world, taken, (my_rank + 1) % n, 8, NULL, &others));
  hocket_object_free(&taken);
  CHECK_OK(hocket_work_wait(others));
  CHECK_FAILS(HOCKET_INVALID_ARGUMENT,
              "no call that gives objects",
              hocket_work_objects(others, &taken, 1, &count, NULL));
  hocket_work_free(&others);
  CHECK_OK(hocket_work_wait(work));
  CHECK_OK(hocket_work_objects(work, &taken, 1, &count, &from));
  CHECK(count == 1 && from == (my_rank + n - 1) % n);
  hocket_work_free(&work);
  snprintf(expected, sizeof expected, "%*s from %d", (int)from, "", (int)from);
  CHECK(has(taken, expected));
  hocket_object_free(&taken);
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
  hocket_prepared* call = NULL;
  const hocket_operator again = {.size = sizeof op, .combine = weighted, .context = &weight};
  CHECK_OK(hocket_prepare_all_reduce_by(world, &in, &out, &again, NULL, &call));
  CHECK_OK(hocket_prepared_call(call));
  hocket_prepared_free(&call);
  CHECK(y[0] == weighted_total(n - 1, 0, weight));
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
  hocket_prepared* call = NULL;
  CHECK_OK(hocket_prepare_argmax(world, &in, NULL, &values, &who, NULL, NULL, &call));
  CHECK_OK(hocket_prepared_call(call));
  hocket_prepared_free(&call);
  CHECK(ranks[0] == n - 1 && least[0] == value(n - 1, 0));
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
  prepared();
  callbacks();
  several_works();
  neighbours();
  coalesced();
  groups();
  symmetric();
  objects();
  objects_without_waiting();
  CHECK_OK(hocket_comm_status(world));
  CHECK_OK(hocket_barrier(world, NULL));
  hocket_comm_free(&world);
  CHECK(world == NULL);
  return 0;
}
