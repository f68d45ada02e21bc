// Windows of MPI's standard interface, on any number of ranks. The argument says how:
//   threads           several threads of each rank use a window as well
//   hosts             the ranks are on several hosts
//   threads_on_hosts  both
// With another one, rank 1 dies while the others wait in the way that it names.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

// --- Windows of each flavor, with int numbers ----------------------------------------------------

enum { kFlavors = 4, kShared = 2, kNumbers = 64 };

static int hosts;  // whether the ranks are on several, and so have no shared windows

struct window {
  int flavor;
  MPI_Win win;
  int* own;      // this rank's memory
  MPI_Aint* at;  // target_disp of each rank's first number
  int unit;      // what one number adds to target_disp
};

static struct window opened(int kind) {
  const MPI_Aint bytes = kNumbers * (MPI_Aint)sizeof(int);
  struct window made = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_NULL, NULL, NULL, 1};
  made.at = calloc((size_t)size, sizeof *made.at);
  switch (kind) {
    case 0:
      made.own = calloc(kNumbers, sizeof(int));
      OK(MPI_Win_create(made.own, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
      break;
    case 1:
      made.flavor = MPI_WIN_FLAVOR_ALLOCATE;
      OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.own, &made.win));
      break;
    case kShared:
      made.flavor = MPI_WIN_FLAVOR_SHARED;
      OK(MPI_Win_allocate_shared(
          bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made.own, &made.win));
      break;
    default: {
      made.flavor = MPI_WIN_FLAVOR_DYNAMIC;
      made.own = calloc(kNumbers, sizeof(int));
      made.unit = sizeof(int);
      OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made.win));
      OK(MPI_Win_attach(made.win, made.own, bytes));
      MPI_Aint here = 0;
      OK(MPI_Get_address(made.own, &here));
      OK(MPI_Allgather(&here, 1, MPI_AINT, made.at, 1, MPI_AINT, MPI_COMM_WORLD));
    }
  }
  OK(MPI_Win_set_errhandler(made.win, MPI_ERRORS_RETURN));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  return made;
}
static void closed(struct window* w) {
  if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(w->win, w->own));
  }
  OK(MPI_Win_free(&w->win));
  CHECK(w->win == MPI_WIN_NULL);
  if (w->flavor == MPI_WIN_FLAVOR_CREATE || w->flavor == MPI_WIN_FLAVOR_DYNAMIC) free(w->own);
  free(w->at);
}
static MPI_Aint place(const struct window* w, int target, int number) {
  return w->at[target] + number * w->unit;
}

// A signal to the process waits for the program's thread: no thread of the face takes it.
static void test_signals(void) {
  const struct timespec at_once = {0, 0};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
  CHECK(kill(getpid(), SIGUSR1) == 0);
  CHECK(sigtimedwait(&one, NULL, &at_once) == SIGUSR1);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0);
}

static void test_fence(struct window* w) {
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
  for (int to = 0; to < size; ++to) {
    const int sent[2] = {rank * 100 + to, -rank};
    OK(MPI_Put(sent, 2, MPI_INT, to, place(w, to, 2 * rank), 2, MPI_INT, w->win));
  }
  OK(MPI_Win_fence(0, w->win));
  for (int from = 0; from < size; ++from) {
    CHECK(w->own[2 * from] == from * 100 + rank && w->own[2 * from + 1] == -from);
    int found[2] = {0, 0};
    OK(MPI_Get(found, 2, MPI_INT, from, place(w, from, 2 * rank), 2, MPI_INT, w->win));
    CHECK(found[0] == rank * 100 + from && found[1] == -rank);
    OK(MPI_Get_c(found, 1, MPI_INT, from, place(w, from, 2 * rank + 1), 1, MPI_INT, w->win));
    CHECK(found[0] == -rank);
  }
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

// Each target type against MPI_Pack: a put writes its bytes and no others, a get reads them.
static void test_types(struct window* w) {
  MPI_Datatype types[6];
  const int lengths[3] = {2, 1, 3}, places[3] = {9, 0, 4};
  const int blocks[2] = {1, 2};
  const MPI_Aint displacements[2] = {16, 4};
  MPI_Datatype kinds[2] = {MPI_INT, MPI_SHORT}, inner;
  OK(MPI_Type_vector(3, 1, 2, MPI_INT, &types[0]));
  OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &types[1]));
  OK(MPI_Type_create_struct(2, blocks, displacements, kinds, &types[2]));
  OK(MPI_Type_create_resized(MPI_SHORT, 0, 12, &types[3]));
  OK(MPI_Type_create_hvector(2, 1, -8, MPI_INT, &inner));
  OK(MPI_Type_create_hindexed(1, &blocks[0], &displacements[0], inner, &types[4]));
  OK(MPI_Type_dup(MPI_INT, &types[5]));
  const int target = (rank + 1) % size;
  for (int t = 0; t < 6; ++t) {
    OK(MPI_Type_commit(&types[t]));
    for (int count = 0; count <= 2; ++count) {
      unsigned char sent[128], expected[kNumbers * sizeof(int)], found[kNumbers * sizeof(int)];
      for (int i = 0; i < 128; ++i) sent[i] = (unsigned char)(i * 7 + t + rank * 50 + 1);
      int bytes = 0;
      OK(MPI_Type_size(types[t], &bytes));
      OK(MPI_Win_fence(0, w->win));
      memset(w->own, 0, kNumbers * sizeof(int));
      OK(MPI_Win_fence(0, w->win));
      OK(MPI_Put(
          sent, bytes * count, MPI_BYTE, target, place(w, target, 3), count, types[t], w->win));
      unsigned char got[128] = {0};
      OK(MPI_Get(
          got, bytes * count, MPI_BYTE, target, place(w, target, 3), count, types[t], w->win));
      CHECK(memcmp(got, sent, (size_t)(bytes * count)) == 0);
      OK(MPI_Get(found, kNumbers, MPI_INT, target, place(w, target, 0), kNumbers, MPI_INT, w->win));
      memset(expected, 0, sizeof expected);
      int position = 0;
      OK(MPI_Unpack(
          sent, 128, &position, expected + 3 * sizeof(int), count, types[t], MPI_COMM_WORLD));
      CHECK(memcmp(found, expected, sizeof found) == 0);
      // The type at the origin, and the bytes at the target.
      memset(found, 0, sizeof found);
      OK(MPI_Put(expected + 3 * sizeof(int),
                 count,
                 types[t],
                 target,
                 place(w, target, 40),
                 bytes * count,
                 MPI_BYTE,
                 w->win));
      OK(MPI_Get(found + 3 * sizeof(int),
                 count,
                 types[t],
                 target,
                 place(w, target, 40),
                 bytes * count,
                 MPI_BYTE,
                 w->win));
      CHECK(memcmp(found, expected, sizeof found) == 0);
      OK(MPI_Win_fence(0, w->win));
    }
    OK(MPI_Type_free(&types[t]));
  }
  OK(MPI_Type_free(&inner));
}

static void test_accumulate(struct window* w) {
  enum { kTimes = 50 };
  memset(w->own, 0, kNumbers * sizeof(int));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
  OK(MPI_Win_lock_all(0, w->win));
  const int ones[3] = {1, 10, 100};
  int taken[kTimes];
  for (int i = 0; i < kTimes; ++i) {
    for (int to = 0; to < size; ++to) {
      OK(MPI_Accumulate(ones, 3, MPI_INT, to, place(w, to, 0), 3, MPI_INT, MPI_SUM, w->win));
    }
    OK(MPI_Fetch_and_op(ones, &taken[i], MPI_INT, 0, place(w, 0, 5), MPI_SUM, w->win));
    CHECK(i == 0 || taken[i] > taken[i - 1]);
    // A lock by compare and swap guards a number that is read and written.
    int free_ = 0, mine = rank + 1, old = -1, number = 0;
    do {
      OK(MPI_Compare_and_swap(
          &mine, &free_, &old, MPI_INT, size - 1, place(w, size - 1, 6), w->win));
    } while (old != 0);
    OK(MPI_Get(&number, 1, MPI_INT, size - 1, place(w, size - 1, 7), 1, MPI_INT, w->win));
    OK(MPI_Win_flush(size - 1, w->win));
    ++number;
    OK(MPI_Put(&number, 1, MPI_INT, size - 1, place(w, size - 1, 7), 1, MPI_INT, w->win));
    OK(MPI_Win_flush_all(w->win));
    OK(MPI_Compare_and_swap(&free_, &mine, &old, MPI_INT, size - 1, place(w, size - 1, 6), w->win));
    CHECK(old == mine);
  }
  OK(MPI_Win_unlock_all(w->win));
  OK(MPI_Win_fence(0, w->win));
  for (int i = 0; i < 3; ++i) CHECK(w->own[i] == ones[i] * kTimes * size);
  if (rank == 0) CHECK(w->own[5] == kTimes * size);
  if (rank == size - 1) CHECK(w->own[6] == 0 && w->own[7] == kTimes * size);
  OK(MPI_Win_fence(0, w->win));

  // Operators by rank 0 on the last rank's memory, as a table: old, with, result.
  const struct {
    MPI_Op op;
    int result;
  } rows[] = {{MPI_SUM, 17},
              {MPI_PROD, 60},
              {MPI_MAX, 12},
              {MPI_MIN, 5},
              {MPI_BAND, 4},
              {MPI_BOR, 13},
              {MPI_BXOR, 9},
              {MPI_REPLACE, 5},
              {MPI_NO_OP, 12},
              {MPI_LXOR, 0}};
  const int last = size - 1, with = 5, before = 12;
  for (size_t i = 0; rank == 0 && i < sizeof rows / sizeof *rows; ++i) {
    int old = -1, found = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, w->win));
    OK(MPI_Rput(&before, 1, MPI_INT, last, place(w, last, 9), 1, MPI_INT, w->win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget_accumulate(&with,
                           1,
                           MPI_INT,
                           &old,
                           1,
                           MPI_INT,
                           last,
                           place(w, last, 9),
                           1,
                           MPI_INT,
                           rows[i].op,
                           w->win,
                           &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Rget(&found, 1, MPI_INT, last, place(w, last, 9), 1, MPI_INT, w->win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(old == before && found == rows[i].result);
    OK(MPI_Put(&before, 1, MPI_INT, last, place(w, last, 9), 1, MPI_INT, w->win));
    OK(MPI_Raccumulate(
        &with, 1, MPI_INT, last, place(w, last, 9), 1, MPI_INT, rows[i].op, w->win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Get(&found, 1, MPI_INT, last, place(w, last, 9), 1, MPI_INT, w->win));
    CHECK(found == rows[i].result);
    OK(MPI_Win_unlock(last, w->win));
  }
  // A pair with a gap, and numbers with gaps.
  const struct {
    double value;
    int index;
  } pairs[2] = {{1.5, 9}, {2.5, 3}};
  MPI_Datatype spread;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &spread));
  OK(MPI_Type_commit(&spread));
  if (rank == 0) {
    OK(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, w->win));
    OK(MPI_Put(&pairs[0], 1, MPI_DOUBLE_INT, last, place(w, last, 16), 1, MPI_DOUBLE_INT, w->win));
    OK(MPI_Accumulate(&pairs[1],
                      1,
                      MPI_DOUBLE_INT,
                      last,
                      place(w, last, 16),
                      1,
                      MPI_DOUBLE_INT,
                      MPI_MAXLOC,
                      w->win));
    struct {
      double value;
      int index;
    } largest = {0, 0};
    OK(MPI_Get(&largest, 1, MPI_DOUBLE_INT, last, place(w, last, 16), 1, MPI_DOUBLE_INT, w->win));
    CHECK(largest.value == 2.5 && largest.index == 3);
    const int numbers[3] = {1, 2, 3};
    OK(MPI_Put(numbers, 3, MPI_INT, last, place(w, last, 20), 3, MPI_INT, w->win));
    OK(MPI_Accumulate(numbers, 1, spread, last, place(w, last, 20), 1, spread, MPI_PROD, w->win));
    int found[3];
    OK(MPI_Get(found, 3, MPI_INT, last, place(w, last, 20), 3, MPI_INT, w->win));
    CHECK(found[0] == 1 && found[1] == 2 && found[2] == 9);
    OK(MPI_Win_unlock(last, w->win));
  }
  OK(MPI_Type_free(&spread));
  OK(MPI_Win_fence(0, w->win));
}

// Under an exclusive lock nobody else changes the number; ranks with a shared one see it unchanged.
static void test_locks(struct window* w) {
  enum { kTimes = 30 };
  memset(w->own, 0, kNumbers * sizeof(int));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
  for (int i = 0; i < kTimes; ++i) {
    const int target = i % size;
    int number = -1, again = -2;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    OK(MPI_Get(&number, 1, MPI_INT, target, place(w, target, 1), 1, MPI_INT, w->win));
    OK(MPI_Win_flush_local(target, w->win));
    ++number;
    OK(MPI_Put(&number, 1, MPI_INT, target, place(w, target, 1), 1, MPI_INT, w->win));
    OK(MPI_Win_unlock(target, w->win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    OK(MPI_Get(&number, 1, MPI_INT, target, place(w, target, 1), 1, MPI_INT, w->win));
    OK(MPI_Win_sync(w->win));
    OK(MPI_Get(&again, 1, MPI_INT, target, place(w, target, 1), 1, MPI_INT, w->win));
    CHECK(number == again);
    OK(MPI_Win_unlock(target, w->win));
    OK(MPI_Win_lock_all(0, w->win));
    OK(MPI_Win_flush_local_all(w->win));
    OK(MPI_Win_unlock_all(w->win));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, w->win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, w->win));
  }
  OK(MPI_Win_fence(0, w->win));
  int sum = 0;
  OK(MPI_Allreduce(&w->own[1], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK(sum == kTimes * size);
  OK(MPI_Win_fence(0, w->win));
}

// Each rank exposes its memory to the rank before it, and accesses that of the rank behind it.
static void test_post_start(struct window* w) {
  MPI_Group all, before, behind;
  const int previous = (rank + size - 1) % size, next = (rank + 1) % size;
  OK(MPI_Win_get_group(w->win, &all));
  OK(MPI_Group_incl(all, 1, &previous, &before));
  OK(MPI_Group_incl(all, 1, &next, &behind));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
  for (int turn = 0; turn < 6; ++turn) {
    const int sent = rank * 1000 + turn;
    OK(MPI_Win_post(before, 0, w->win));
    OK(MPI_Win_start(behind, 0, w->win));
    OK(MPI_Put(&sent, 1, MPI_INT, next, place(w, next, 3), 1, MPI_INT, w->win));
    if (size > 1) {
      FAILS(MPI_Put(&sent, 1, MPI_INT, rank, place(w, rank, 4), 1, MPI_INT, w->win),
            MPI_ERR_RMA_SYNC);
    }
    OK(MPI_Win_complete(w->win));
    if (turn % 2 == 0) {
      OK(MPI_Win_wait(w->win));
    } else {
      int flag = 0;
      while (!flag) OK(MPI_Win_test(w->win, &flag));
    }
    CHECK(w->own[3] == previous * 1000 + turn);
  }
  OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, w->win));
  OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, w->win));
  OK(MPI_Win_complete(w->win));
  OK(MPI_Win_wait(w->win));
  OK(MPI_Group_free(&behind));
  OK(MPI_Group_free(&before));
  OK(MPI_Group_free(&all));
}

// --- What a window has ---------------------------------------------------------------------------

static void test_attributes(const struct window* w) {
  void* base = NULL;
  MPI_Aint* bytes = NULL;
  int *unit = NULL, *flavor = NULL, *model = NULL, flag = 0;
  OK(MPI_Win_get_attr(w->win, MPI_WIN_BASE, &base, &flag));
  CHECK(flag);
  OK(MPI_Win_get_attr(w->win, MPI_WIN_SIZE, &bytes, &flag));
  OK(MPI_Win_get_attr(w->win, MPI_WIN_DISP_UNIT, &unit, &flag));
  OK(MPI_Win_get_attr(w->win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag));
  OK(MPI_Win_get_attr(w->win, MPI_WIN_MODEL, &model, &flag));
  const int is_dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
  CHECK(base == (is_dynamic ? MPI_BOTTOM : (void*)w->own));
  CHECK(*bytes == (is_dynamic ? 0 : kNumbers * (MPI_Aint)sizeof(int)));
  CHECK(*unit == (is_dynamic ? 1 : (int)sizeof(int)));
  CHECK(*flavor == w->flavor && *model == MPI_WIN_UNIFIED);

  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  OK(MPI_Win_get_name(w->win, name, &length));
  CHECK(length == 0);
  OK(MPI_Win_set_name(w->win, "halo"));
  OK(MPI_Win_get_name(w->win, name, &length));
  CHECK(length == 4 && strcmp(name, "halo") == 0);

  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "no_locks", "false"));
  OK(MPI_Win_set_info(w->win, info));
  OK(MPI_Info_free(&info));
  OK(MPI_Win_get_info(w->win, &info));
  OK(MPI_Info_get(info, "no_locks", MPI_MAX_OBJECT_NAME - 1, name, &flag));
  CHECK(flag && strcmp(name, "false") == 0);
  OK(MPI_Info_free(&info));
}

static int dropped, told;
static int drop(MPI_Win win, int keyval, void* value, void* extra) {
  (void)win, (void)keyval;
  CHECK(value == &dropped && extra == &told);
  ++dropped;
  return MPI_SUCCESS;
}
static void tell(MPI_Win* win, int* code, ...) {
  CHECK(*win != MPI_WIN_NULL);
  told = error_class(*code);
}

static void test_keyvals_and_handlers(void) {
  struct window w = opened(1);
  int keyval = MPI_KEYVAL_INVALID, flag = 1;
  void* value = NULL;
  OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, drop, &keyval, &told));
  OK(MPI_Win_get_attr(w.win, keyval, &value, &flag));
  CHECK(!flag);
  OK(MPI_Win_set_attr(w.win, keyval, &dropped));
  OK(MPI_Win_get_attr(w.win, keyval, &value, &flag));
  CHECK(flag && value == &dropped);
  OK(MPI_Win_set_attr(w.win, keyval, &dropped));
  CHECK(dropped == 1);
  OK(MPI_Win_delete_attr(w.win, keyval));
  CHECK(dropped == 2);
  FAILS(MPI_Win_delete_attr(w.win, keyval), MPI_ERR_KEYVAL);
  OK(MPI_Win_set_attr(w.win, keyval, &dropped));
  FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &dropped), MPI_ERR_KEYVAL);

  MPI_Errhandler handler, kept;
  OK(MPI_Win_create_errhandler(tell, &handler));
  OK(MPI_Win_set_errhandler(w.win, handler));
  FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler), MPI_ERR_ERRHANDLER);
  FAILS(MPI_Win_unlock(0, w.win), MPI_ERR_RMA_SYNC);
  CHECK(told == MPI_ERR_RMA_SYNC);
  OK(MPI_Win_call_errhandler(w.win, MPI_ERR_SIZE));
  CHECK(told == MPI_ERR_SIZE);
  OK(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
  OK(MPI_Win_get_errhandler(w.win, &kept));
  CHECK(kept == MPI_ERRORS_RETURN);
  OK(MPI_Errhandler_free(&handler));
  closed(&w);
  CHECK(dropped == 3);
  OK(MPI_Win_free_keyval(&keyval));
  CHECK(keyval == MPI_KEYVAL_INVALID);
}

// The parts of a shared window follow each other, and are this process's memory.
static void test_shared(void) {
  for (int has_gaps = 0; has_gaps < 2; ++has_gaps) {
    MPI_Win win;
    MPI_Info info;
    char* own = NULL;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", has_gaps ? "true" : "false"));
    const MPI_Aint bytes = rank == 0 ? 0 : 3 + rank;
    OK(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &own, &win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    memset(own, 'a' + rank, (size_t)bytes);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    char* last_end = NULL;
    for (int of = 0; of < size; ++of) {
      MPI_Aint found = -1;
      int unit = 0;
      char* base = NULL;
      OK(MPI_Win_shared_query(win, of, &found, &unit, &base));
      CHECK(found == (of == 0 ? 0 : 3 + of) && unit == 1 && (of != rank || base == own));
      for (MPI_Aint i = 0; i < found; ++i) CHECK(base[i] == 'a' + of);
      if (!has_gaps && last_end != NULL) CHECK(base == last_end);
      last_end = base + found;
    }
    MPI_Aint found = -1;
    int unit = 0;
    char* base = NULL;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &found, &unit, &base));
    CHECK(found == (size > 1 ? 4 : 0));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
  }
}

// Units and sizes that differ among ranks; zero bytes; a part of the ranks.
static void test_parts(void) {
  MPI_Win win;
  short own[16] = {0};
  OK(MPI_Win_create(rank % 2 ? own : NULL,
                    rank % 2 ? (MPI_Aint)sizeof own : 0,
                    rank + 1,
                    MPI_INFO_NULL,
                    MPI_COMM_WORLD,
                    &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  OK(MPI_Win_fence(0, win));
  const short sent = 7;
  if (size > 1) OK(MPI_Put(&sent, 1, MPI_SHORT, 1, 3, 1, MPI_SHORT, win));
  FAILS(MPI_Put(&sent, 1, MPI_SHORT, 0, 0, 1, MPI_SHORT, win), MPI_ERR_RMA_RANGE);
  OK(MPI_Put(&sent, 0, MPI_SHORT, 0, 0, 0, MPI_SHORT, win));
  OK(MPI_Win_fence(0, win));
  CHECK(rank != 1 || own[3] == 7);
  OK(MPI_Win_free(&win));

  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
  int *numbers = NULL, half_rank = -1, half_size = 0, found = -1;
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, half, &numbers, &win));
  OK(MPI_Comm_free(&half));  // the window lives on
  *numbers = rank;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(&found, 1, MPI_INT, half_size - 1, 0, 1, MPI_INT, win));
  CHECK(found == rank % 2);
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_free(&win));
}

// The last rank makes a window of another kind. All ranks hear which rank called what.
static void test_other_kinds(void) {
  if (size == 1) return;
  int number = 0;
  void* base = NULL;
  MPI_Win win = MPI_WIN_NULL;
  char told[200];
  snprintf(
      told, sizeof told, "rank %d called MPI_Win_create, and rank 0 MPI_Win_allocate", size - 1);
  TELLS(rank == size - 1
            ? MPI_Win_create(&number, sizeof number, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)
            : MPI_Win_allocate(sizeof number, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
        MPI_ERR_NOT_SAME,
        told);
  snprintf(told,
           sizeof told,
           "rank %d called MPI_Win_allocate_shared, and rank 0 MPI_Win_create_dynamic",
           size - 1);
  TELLS(rank == size - 1 ? MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win)
                         : MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win),
        MPI_ERR_NOT_SAME,
        told);
}

static void test_dynamic(void) {
  struct window w = opened(3);
  int number = 5, found = 0, other[4] = {1, 2, 3, 4};
  MPI_Aint there = 0;
  OK(MPI_Win_lock_all(0, w.win));
  FAILS(MPI_Win_attach(w.win, w.own + 1, 4), MPI_ERR_RMA_ATTACH);
  FAILS(MPI_Win_detach(w.win, w.own + 1), MPI_ERR_BASE);
  OK(MPI_Get_address(other, &there));
  FAILS(MPI_Put(&number, 1, MPI_INT, rank, there, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
  OK(MPI_Win_attach(w.win, other, sizeof other));
  OK(MPI_Put(&number, 1, MPI_INT, rank, MPI_Aint_add(there, 8), 1, MPI_INT, w.win));
  CHECK(other[2] == 5);
  FAILS(MPI_Get(&found, 2, MPI_INT, rank, MPI_Aint_add(there, 12), 2, MPI_INT, w.win),
        MPI_ERR_RMA_RANGE);
  OK(MPI_Win_detach(w.win, other));
  FAILS(MPI_Get(&found, 1, MPI_INT, rank, there, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
  // Adjacent pieces are as one, and a type may have elements in several that lie apart.
  int parts[12] = {0}, out[3] = {1, 2, 3};
  const int far[3] = {0, 3, 9};
  MPI_Datatype apart;
  OK(MPI_Get_address(parts, &there));
  OK(MPI_Win_attach(w.win, parts + 2, 2 * sizeof(int)));
  OK(MPI_Win_attach(w.win, parts, 2 * sizeof(int)));
  OK(MPI_Put(out, 3, MPI_INT, rank, MPI_Aint_add(there, 4), 3, MPI_INT, w.win));
  CHECK(parts[0] == 0 && parts[1] == 1 && parts[2] == 2 && parts[3] == 3);
  FAILS(MPI_Put(out, 3, MPI_INT, rank, MPI_Aint_add(there, 8), 3, MPI_INT, w.win),
        MPI_ERR_RMA_RANGE);
  OK(MPI_Type_create_indexed_block(3, 1, far, MPI_INT, &apart));
  OK(MPI_Type_commit(&apart));
  FAILS(MPI_Put(out, 3, MPI_INT, rank, there, 1, apart, w.win), MPI_ERR_RMA_RANGE);
  OK(MPI_Win_attach(w.win, parts + 9, sizeof(int)));
  OK(MPI_Put(out, 3, MPI_INT, rank, there, 1, apart, w.win));
  CHECK(parts[0] == 1 && parts[3] == 2 && parts[9] == 3 && parts[8] == 0 && parts[10] == 0);
  OK(MPI_Type_free(&apart));
  OK(MPI_Win_detach(w.win, parts));
  FAILS(MPI_Put(out, 2, MPI_INT, rank, MPI_Aint_add(there, 4), 2, MPI_INT, w.win),
        MPI_ERR_RMA_RANGE);
  OK(MPI_Win_detach(w.win, parts + 2));
  OK(MPI_Win_detach(w.win, parts + 9));
  // Many pieces, attached and detached in another order.
  enum { kPieces = 300 };
  int* pieces = malloc(2 * kPieces * sizeof(int));
  for (int i = 0; i < kPieces; ++i) OK(MPI_Win_attach(w.win, &pieces[2 * i], sizeof(int)));
  for (int i = 0; i < kPieces; ++i) OK(MPI_Win_detach(w.win, &pieces[2 * (i * 7 % kPieces)]));
  free(pieces);
  OK(MPI_Win_unlock_all(w.win));
  MPI_Aint bytes = 0;
  int unit = 0;
  FAILS(MPI_Win_shared_query(w.win, 0, &bytes, &unit, &there), MPI_ERR_RMA_FLAVOR);
  closed(&w);
  w = opened(0);
  FAILS(MPI_Win_attach(w.win, other, sizeof other), MPI_ERR_RMA_FLAVOR);
  closed(&w);
}

// Across hosts no shared window can be made, which all ranks hear; on each host one can.
static void test_no_shared_window(void) {
  MPI_Win win;
  MPI_Comm here;
  int* base = NULL;
  FAILS(MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
        MPI_ERR_RMA_SHARED);
  OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
  OK(MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, here, &base, &win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_free(&here));
}

// Threads of all ranks change one number, and read others, in one window.
enum { kThreads = 3, kTurns = 200 };
static struct window shared_by_threads;
static void* count(void* argument) {
  const struct window* w = &shared_by_threads;
  const int one = 1, own = 1 + (int)(intptr_t)argument;
  int found = -1, last = -1;
  for (int i = 0; i < kTurns; ++i) {
    OK(MPI_Fetch_and_op(&one, &found, MPI_INT, 0, place(w, 0, 0), MPI_SUM, w->win));
    CHECK(found > last);
    last = found;
    OK(MPI_Put(&i, 1, MPI_INT, rank, place(w, rank, own), 1, MPI_INT, w->win));
    OK(MPI_Win_flush(rank, w->win));
    OK(MPI_Get(&found, 1, MPI_INT, rank, place(w, rank, own), 1, MPI_INT, w->win));
    CHECK(found == i);
  }
  return NULL;
}
static void test_threads(void) {
  for (int kind = 0; kind < kFlavors; ++kind) {
    pthread_t threads[kThreads];
    if (hosts && kind == kShared) continue;
    struct window* w = &shared_by_threads;
    *w = opened(kind);
    OK(MPI_Win_lock_all(0, w->win));
    for (int i = 0; i < kThreads; ++i) {
      CHECK(pthread_create(&threads[i], NULL, count, (void*)(intptr_t)i) == 0);
    }
    for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Win_unlock_all(w->win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 0 || w->own[0] == kThreads * kTurns * size);
    closed(w);
  }
}

static void sum(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)in, (void)inout, (void)length, (void)type;
}

static void test_errors(void) {
  MPI_Win win = MPI_WIN_NULL;
  int number = 0, flag = 0, *base = NULL;
  // An argument of one rank is refused on all.
  const int last = size - 1;
  FAILS(MPI_Win_create(&number, rank == last ? -1 : 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
        MPI_ERR_SIZE);
  FAILS(MPI_Win_create(&number, 4, rank == last ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
        MPI_ERR_DISP);
  FAILS(MPI_Win_create(rank == last ? NULL : &number, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win),
        MPI_ERR_BASE);
  FAILS(MPI_Win_allocate(INT64_MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
  FAILS(MPI_Win_allocate((MPI_Aint)1 << 55, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win),
        MPI_ERR_NO_MEM);
  FAILS(MPI_Win_create(&number, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
  FAILS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
  FAILS(MPI_Win_free(&win), MPI_ERR_WIN);

  struct window w = opened(1);
  win = w.win;
  MPI_Group nobody;
  MPI_Op own_op;
  OK(MPI_Op_create(sum, 1, &own_op));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &nobody));
  const MPI_Datatype i = MPI_INT;
  FAILS(MPI_Put(&number, 1, i, 0, 0, 1, i, win), MPI_ERR_RMA_SYNC);  // in no epoch
  FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_lock(12345, 0, 0, win), MPI_ERR_LOCKTYPE);
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOSTORE, win), MPI_ERR_ASSERT);
  FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
  FAILS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_start(nobody, 0, win), MPI_ERR_RMA_SYNC);
  OK(MPI_Win_unlock(0, win));
  // A fence that one rank may not make ends on all.
  if (rank == last) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
  FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
  if (rank == last) OK(MPI_Win_unlock(0, win));

  OK(MPI_Win_lock_all(0, win));
  const struct {
    int found, expected;
  } rows[] = {
      {MPI_Put(&number, 1, i, size, 0, 1, i, win), MPI_ERR_RANK},
      {MPI_Put(&number, 1, i, -7, 0, 1, i, win), MPI_ERR_RANK},
      {MPI_Put(&number, -1, i, 0, 0, 1, i, win), MPI_ERR_COUNT},
      {MPI_Put(&number, 1, i, 0, 0, -1, i, win), MPI_ERR_COUNT},
      {MPI_Put(&number, 1, MPI_DATATYPE_NULL, 0, 0, 1, i, win), MPI_ERR_TYPE},
      {MPI_Put(&number, 1, i, 0, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE},
      {MPI_Put(&number, 1, i, 0, 0, 2, i, win), MPI_ERR_TYPE},
      {MPI_Put(NULL, 1, i, 0, 0, 1, i, win), MPI_ERR_BUFFER},
      {MPI_Put(&number, 1, i, 0, -1, 1, i, win), MPI_ERR_DISP},
      {MPI_Put(&number, 1, i, 0, kNumbers, 1, i, win), MPI_ERR_RMA_RANGE},
      {MPI_Put(&number, 1, i, 0, INTPTR_MAX, 1, i, win), MPI_ERR_RMA_RANGE},
      {MPI_Get(&number, 1, i, 0, kNumbers, 1, i, win), MPI_ERR_RMA_RANGE},
      {MPI_Get(NULL, 1, i, 0, 0, 1, i, win), MPI_ERR_BUFFER},
      {MPI_Accumulate(&number, 1, i, 0, 0, 1, i, MPI_OP_NULL, win), MPI_ERR_OP},
      {MPI_Accumulate(&number, 1, i, 0, 0, 1, i, own_op, win), MPI_ERR_OP},
      {MPI_Accumulate(&number, 1, MPI_FLOAT, 0, 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP},
      {MPI_Accumulate(&number, 1, i, 0, kNumbers, 1, i, MPI_SUM, win), MPI_ERR_RMA_RANGE},
      {MPI_Compare_and_swap(&number, &number, &number, MPI_FLOAT, 0, 0, win), MPI_ERR_TYPE},
      {MPI_Fetch_and_op(&number, NULL, i, 0, 0, MPI_SUM, win), MPI_ERR_BUFFER},
      {MPI_Put(&number, 1, i, MPI_PROC_NULL, 0, 1, i, win), MPI_SUCCESS},
      {MPI_Put(NULL, 0, i, 0, 0, 0, i, win), MPI_SUCCESS},
      {MPI_Fetch_and_op(NULL, &number, i, 0, 0, MPI_NO_OP, win), MPI_SUCCESS},
      {MPI_Win_get_attr(win, MPI_TAG_UB, &base, &flag), MPI_ERR_KEYVAL},
      {MPI_Win_set_errhandler(win, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER},
      {MPI_Win_post(nobody, 12345678, win), MPI_ERR_ASSERT},
  };
  for (size_t row = 0; row < sizeof rows / sizeof *rows; ++row) {
    if (error_class(rows[row].found) != rows[row].expected) fprintf(stderr, "row %zu\n", row);
    CHECK(error_class(rows[row].found) == rows[row].expected);
  }
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Op_free(&own_op));
  OK(MPI_Group_free(&nobody));
  closed(&w);
}

// --- Death ---------------------------------------------------------------------------------------

static void names_rank_1(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  OK(MPI_Error_string(code, text, &length));
  if (error_class(code) != MPIX_ERR_PROC_FAILED) fprintf(stderr, "rank %d: %s\n", rank, text);
  CHECK(error_class(code) == MPIX_ERR_PROC_FAILED && strstr(text, "rank 1") != NULL);
}

// Rank 1 dies; what the others do then must end with its name.
static void test_death(const char* how) {
  const int kind = strncmp(how, "create-", 7) == 0 ? 0 : 1;
  if (kind == 0) how += 7;
  struct window w = opened(kind);
  MPI_Win win = w.win;
  MPI_Group all, one;
  const int culprit = 1;
  OK(MPI_Win_get_group(win, &all));
  OK(MPI_Group_incl(all, 1, &culprit, &one));
  int number = 0, code = MPI_SUCCESS;
  const int takes_lock = strcmp(how, "exclusive") == 0 || strcmp(how, "shared") == 0;
  if (rank == 1 && takes_lock) {
    OK(MPI_Win_lock(*how == 'e' ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
  }
  const int posts = strcmp(how, "post") == 0 || strcmp(how, "test") == 0;
  if (posts && rank != 1) OK(MPI_Win_post(one, 0, win));
  pass_before(1, size, MPI_COMM_WORLD);
  if (rank == 1) {
    if (strcmp(how, "accumulate") == 0) {  // dies while it combines, and keeps the right to
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
      void* const nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      MPI_Accumulate(nothing, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
    }
    kill(getpid(), SIGKILL);
  }
  if (takes_lock) {
    code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  } else if (strcmp(how, "all") == 0) {
    while (code == MPI_SUCCESS) {
      code = MPI_Win_lock_all(0, win);
      if (code == MPI_SUCCESS) code = MPI_Win_unlock_all(win);
      if (code == MPI_SUCCESS) code = MPI_Win_fence(0, win);
    }
  } else if (strcmp(how, "fence") == 0) {
    code = MPI_Win_fence(0, win);
  } else if (strcmp(how, "free") == 0) {
    code = MPI_Win_free(&win);
  } else if (strcmp(how, "start") == 0) {
    code = MPI_Win_start(one, 0, win);
  } else if (strcmp(how, "post") == 0) {
    code = MPI_Win_wait(win);
  } else if (strcmp(how, "test") == 0) {
    int flag = 0;
    while (code == MPI_SUCCESS && !flag) code = MPI_Win_test(win, &flag);
  } else {  // each turns until the call fails, as rank 1 would have ended the loop
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    while (code == MPI_SUCCESS) {
      if (strcmp(how, "sync") == 0) {
        code = MPI_Win_sync(win);
      } else if (strcmp(how, "flush") == 0) {
        code = MPI_Win_flush(rank, win);
      } else if (strcmp(how, "get") == 0) {
        code = MPI_Get(&number, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
      } else {
        CHECK(strcmp(how, "accumulate") == 0);
        code = MPI_Accumulate(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
      }
    }
  }
  names_rank_1(code);
  _exit(0);
}

int main(int argc, char** argv) {
  int provided = -1;
  const int threads = argc > 1 && strncmp(argv[1], "threads", 7) == 0;
  hosts = argc > 1 && strstr(argv[1], "hosts") != NULL;
  OK(MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && !threads && !hosts) test_death(argv[1]);
  if (threads) test_threads();
  for (int kind = 0; kind < kFlavors; ++kind) {
    if (hosts && kind == kShared) continue;
    struct window w = opened(kind);
    test_signals();
    test_fence(&w);
    test_types(&w);
    test_accumulate(&w);
    test_locks(&w);
    test_post_start(&w);
    test_attributes(&w);
    closed(&w);
  }
  test_keyvals_and_handlers();
  if (hosts) {
    test_no_shared_window();
  } else {
    test_shared();
  }
  test_errors();
  test_parts();
  test_other_kinds();
  test_dynamic();
  OK(MPI_Finalize());
  return 0;
}
