// Receives that the program cancels or frees before their message has come, as a table of cases.
// They do the same under MPICH, for which OTHER_MPI leaves out what it does not have.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// The ring: each rank receives from `left`, and sends to `right`. Cases talk on `comm`, their own.
static int left, right;
static MPI_Comm comm;

static int is_cancelled(const MPI_Status* status) {
  int flag = -1;
  OK(MPI_Test_cancelled(status, &flag));
  return flag;
}
static int value(int sender, int number) { return 1000 * (sender + 1) + number; }
static void irecv(int* place, int source, int tag, MPI_Request* request) {
  *place = -1;
  OK(MPI_Irecv(place, 1, MPI_INT, source, tag, comm, request));
}
static void send(int number, int tag) {
  static int slots[256], next;  // a send to this rank may wait for its receive
  int* const out = &slots[next++ % 256];
  MPI_Request request;
  *out = value(rank, number);
  OK(MPI_Isend(out, 1, MPI_INT, right, tag, comm, &request));
  OK(MPI_Request_free(&request));
}
static void cancel(MPI_Request* request) {
  MPI_Status status;
  OK(MPI_Cancel(request));
  OK(MPI_Wait(request, &status));
  CHECK(*request == MPI_REQUEST_NULL && is_cancelled(&status));
}
static void expect(int* place, int number, MPI_Request* request) {
  MPI_Status status;
  OK(MPI_Wait(request, &status));
  CHECK(!is_cancelled(&status) && *place == value(left, number));
  CHECK(status.MPI_SOURCE == left);
}
static void meet(void) { OK(MPI_Barrier(comm)); }

// --- Receives whose message has not come ---------------------------------------------------------

static void one_alone(void) {
  int got;
  MPI_Request request;
  irecv(&got, left, 3, &request);
  cancel(&request);
  CHECK(got == -1);
  meet();
  send(1, 3);
  irecv(&got, left, 3, &request);
  expect(&got, 1, &request);
}

// Each call that ends requests tells which were cancelled.
static void each_call_tells(void) {
  enum { kCount = 4 };
  for (int how = 0; how < 6; ++how) {
    int got[kCount], places[kCount], done = 0, flag = 0, index = -1;
    MPI_Request requests[kCount];
    MPI_Status statuses[kCount];
    for (int i = 0; i < kCount; ++i) irecv(&got[i], left, i, &requests[i]);
    for (int i = 0; i < kCount; ++i) OK(MPI_Cancel(&requests[i]));
    if (how == 0) OK(MPI_Waitall(kCount, requests, statuses));
    while (how == 1 && !flag) OK(MPI_Testall(kCount, requests, &flag, statuses));
    for (int i = 0; (how == 2 || how == 3) && i < kCount; ++i) {
      if (how == 2) OK(MPI_Waitany(kCount, requests, &index, &statuses[i]));
      flag = 0;
      while (how == 3 && !flag) OK(MPI_Testany(kCount, requests, &index, &flag, &statuses[i]));
      CHECK(index >= 0 && index < kCount);
    }
    while (how > 3 && done < kCount) {
      int some = 0;
      if (how == 4) OK(MPI_Waitsome(kCount, requests, &some, places, &statuses[done]));
      if (how == 5) OK(MPI_Testsome(kCount, requests, &some, places, &statuses[done]));
      done += some;
    }
    for (int i = 0; i < kCount; ++i) {
      CHECK(requests[i] == MPI_REQUEST_NULL && is_cancelled(&statuses[i]) && got[i] == -1);
    }
  }
}

static void a_look_tells_before_the_end(void) {
  int got, flag = 0;
  MPI_Request request;
  MPI_Status status;
  irecv(&got, left, 3, &request);
  OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Cancel(&request));
  while (!flag) OK(MPI_Request_get_status(request, &flag, &status));
  CHECK(is_cancelled(&status) && request != MPI_REQUEST_NULL);
  OK(MPI_Wait(&request, &status));
  CHECK(is_cancelled(&status));
}

// A message that fits several receives goes to the first that is left.
static void later_messages_go_to_later_receives(void) {
  const int any = MPI_ANY_SOURCE, any_tag = MPI_ANY_TAG;
  const struct {
    int sources[3], tags[3], cancelled, takes[2];
  } cases[] = {
      {{left, left, left}, {5, 5, 5}, 0, {1, 2}},
      {{left, left, left}, {5, 5, 5}, 1, {0, 2}},
      {{left, left, left}, {5, 5, 5}, 2, {0, 1}},
      {{any, left, left}, {5, 5, 5}, 0, {1, 2}},
      {{left, any, left}, {5, 5, 5}, 0, {1, 2}},
      {{left, any, left}, {5, 5, 5}, 1, {0, 2}},
      {{any, any, any}, {any_tag, any_tag, any_tag}, 1, {0, 2}},
      {{any, left, any}, {any_tag, 5, 5}, 0, {1, 2}},
      {{left, any, any}, {any_tag, any_tag, 5}, 0, {1, 2}},
      {{left, any, any}, {any_tag, any_tag, 5}, 2, {0, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int got[3];
    MPI_Request requests[3];
    for (int k = 0; k < 3; ++k) irecv(&got[k], cases[i].sources[k], cases[i].tags[k], &requests[k]);
    cancel(&requests[cases[i].cancelled]);
    meet();
    send(10, 5);
    send(11, 5);
    for (int k = 0; k < 2; ++k) {
      expect(&got[cases[i].takes[k]], 10 + k, &requests[cases[i].takes[k]]);
    }
    CHECK(got[cases[i].cancelled] == -1);
    meet();
  }
}

static void every_other_of_many(void) {
  enum { kCount = 200 };
  int got[kCount];
  MPI_Request requests[kCount];
  for (int i = 0; i < kCount; ++i)
    irecv(&got[i], i % 3 == 0 ? MPI_ANY_SOURCE : left, 2, &requests[i]);
  for (int i = kCount - 1; i >= 0; i -= 2) cancel(&requests[i]);
  meet();
  for (int i = 0; i < kCount; i += 2) send(i, 2);
  for (int i = 0; i < kCount; i += 2) expect(&got[i], i, &requests[i]);
}

static void places_with_gaps_stay(void) {
  int got[6] = {-1, -2, -3, -4, -5, -6};
  MPI_Datatype type;
  MPI_Request request;
  OK(MPI_Type_vector(3, 1, 2, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Irecv(got, 1, type, left, 0, comm, &request));
  OK(MPI_Type_free(&type));
  cancel(&request);
  for (int i = 0; i < 6; ++i) CHECK(got[i] == -1 - i);
}

static void persistent_ones_start_again(void) {
  int got = -1, flag = -1;
  MPI_Request request;
  MPI_Status status;
  OK(MPI_Recv_init(&got, 1, MPI_INT, left, 4, comm, &request));
  for (int round = 0; round < 3; ++round) {
    OK(MPI_Start(&request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    CHECK(is_cancelled(&status) && request != MPI_REQUEST_NULL && got == -1);
    OK(MPI_Test(&request, &flag, &status));  // it is not active
    CHECK(flag && !is_cancelled(&status));
    meet();
    OK(MPI_Start(&request));
    send(round, 4);
    OK(MPI_Wait(&request, &status));
    CHECK(!is_cancelled(&status) && got == value(left, round));
    got = -1;
  }
  OK(MPI_Request_free(&request));
}

static void to_oneself(void) {
  int got = -1, out = 5;
  MPI_Request request;
  OK(MPI_Irecv(&got, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
  cancel(&request);
  OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &request));
  OK(MPI_Send(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(got == 5);
}

static void between_two_groups(void) {
  if (size < 2) return;
  MPI_Comm half, both, kept = comm;
  const int is_low = rank < size / 2;
  OK(MPI_Comm_split(comm, is_low, 0, &half));
  OK(MPI_Intercomm_create(half, 0, comm, is_low ? size / 2 : 0, 6, &both));
  int got = -1, out = rank + 1;
  MPI_Request request;
  OK(MPI_Irecv(&got, 1, MPI_INT, 0, 0, both, &request));
  cancel(&request);
  meet();
  int of_half = -1;
  OK(MPI_Comm_rank(half, &of_half));
  if (of_half == 0) {
    OK(MPI_Irecv(&got, 1, MPI_INT, 0, 0, both, &request));
    OK(MPI_Send(&out, 1, MPI_INT, 0, 0, both));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == (is_low ? size / 2 : 0) + 1);
  }
  comm = kept;
  OK(MPI_Comm_free(&both));
  OK(MPI_Comm_free(&half));
}

static void from_nobody(void) {
  int got = -1;
  MPI_Request request;
  MPI_Status status;
  OK(MPI_Irecv(&got, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(is_cancelled(&status) || status.MPI_SOURCE == MPI_PROC_NULL);
}

// --- Receives whose message has come -------------------------------------------------------------

// A message of each length is matched, then its receive is cancelled.
static void matched_messages_are_delivered(void) {
  static const int lengths[] = {0, 1, 100, 3000, 10000, 300000, 2000000};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    const int n = lengths[i];
    int* out = malloc((size_t)(n + 1) * sizeof *out);
    int* got = calloc((size_t)(n + 1), sizeof *got);
    for (int k = 0; k < n; ++k) out[k] = value(rank, k);
    MPI_Request receive, sent;
    MPI_Status status;
    OK(MPI_Irecv(got, n, MPI_INT, left, 1, comm, &receive));
    OK(MPI_Issend(out, n, MPI_INT, right, 1, comm, &sent));
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));  // the receive has begun
    meet();
    OK(MPI_Cancel(&receive));
    OK(MPI_Wait(&receive, &status));
    int count = -1;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(!is_cancelled(&status) && status.MPI_SOURCE == left && count == n);
    for (int k = 0; k < n; ++k) CHECK(got[k] == value(left, k));
    free(out);
    free(got);
  }
}

static void waiting_messages_are_delivered(void) {
  int got;
  MPI_Request request;
  send(7, 1);
  OK(MPI_Probe(left, 1, comm, MPI_STATUS_IGNORE));
  irecv(&got, left, 1, &request);
  OK(MPI_Cancel(&request));
  expect(&got, 7, &request);
}

static void probed_messages_are_delivered(void) {
  int got = -1;
  MPI_Request request;
  MPI_Message message;
  send(8, 1);
  OK(MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, MPI_STATUS_IGNORE));
  OK(MPI_Imrecv(&got, 1, MPI_INT, &message, &request));
  OK(MPI_Cancel(&request));
  expect(&got, 8, &request);
}

// Each message of a stream is received or left, whenever its receive is cancelled.
static void races_lose_nothing(void) {
  enum { kRounds = 300 };
  int got, last = -1, kept = 0;
  MPI_Status status;
  MPI_Request request, sends[kRounds];
  int out[kRounds];
  for (int i = 0; i < kRounds; ++i) {
    out[i] = value(rank, i);
    OK(MPI_Isend(&out[i], 1, MPI_INT, right, 9, comm, &sends[i]));
    irecv(&got, i % 2 ? left : MPI_ANY_SOURCE, 9, &request);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    if (is_cancelled(&status)) {
      CHECK(got == -1);
    } else {
      CHECK(got == value(left, ++last));
      ++kept;
    }
  }
  while (kept < kRounds) {
    OK(MPI_Recv(&got, 1, MPI_INT, left, 9, comm, MPI_STATUS_IGNORE));
    CHECK(got == value(left, ++last));
    ++kept;
  }
  OK(MPI_Waitall(kRounds, sends, MPI_STATUSES_IGNORE));
}

static void twice_and_too_late(void) {
  int got;
  MPI_Request request;
  irecv(&got, left, 1, &request);
  OK(MPI_Cancel(&request));
  cancel(&request);
  meet();
  send(2, 1);
  irecv(&got, left, 1, &request);
  int flag = 0;
  while (!flag) OK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
  OK(MPI_Cancel(&request));
  expect(&got, 2, &request);
}

// --- Other requests ------------------------------------------------------------------------------

static void sends_go_on(void) {
#ifndef OTHER_MPI  // it may cancel them
  enum { kCount = 200000 };
  static int out[kCount], got[kCount];
  MPI_Request request;
  MPI_Status status;
  for (int i = 0; i < kCount; ++i) out[i] = value(rank, i);
  OK(MPI_Isend(out, kCount, MPI_INT, right, 1, comm, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Recv(got, kCount, MPI_INT, left, 1, comm, &status));
  CHECK(got[kCount - 1] == value(left, kCount - 1));
  OK(MPI_Wait(&request, &status));
  CHECK(!is_cancelled(&status));
  int in = -1;
  OK(MPI_Isendrecv(out, 1, MPI_INT, right, 2, &in, 1, MPI_INT, left, 2, comm, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, &status));
  CHECK(!is_cancelled(&status) && in == value(left, 0));
#endif
}

static void collectives_go_on(void) {
#ifndef OTHER_MPI  // to cancel them is an error of the program
  int sum = -1;
  MPI_Request request;
  OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(sum == size * (size - 1) / 2);
#endif
}

// --- Freed requests ------------------------------------------------------------------------------

static void freed_after_cancelling(void) {
  int got, later;
  MPI_Request request;
  irecv(&got, left, 1, &request);
  OK(MPI_Cancel(&request));
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  meet();
  send(4, 1);
  irecv(&later, left, 1, &request);
  expect(&later, 4, &request);
  CHECK(got == -1);
}

static void freed_receives_go_on(void) {
  static int got, later;
  MPI_Request request;
  irecv(&got, left, 1, &request);
  OK(MPI_Request_free(&request));
  meet();
  send(5, 1);
  send(6, 1);
  irecv(&later, left, 1, &request);
  expect(&later, 6, &request);
  CHECK(got == value(left, 5));
}

// A receive outlives the handle of its communicator.
static void cancelled_after_the_communicator_is_freed(void) {
  int got = -1;
  MPI_Comm other;
  MPI_Request request;
  OK(MPI_Comm_dup(comm, &other));
  OK(MPI_Irecv(&got, 1, MPI_INT, left, 1, other, &request));
  OK(MPI_Comm_free(&other));
  cancel(&request);
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"one alone", one_alone},
    {"each call tells", each_call_tells},
    {"a look tells before the end", a_look_tells_before_the_end},
    {"later messages go to later receives", later_messages_go_to_later_receives},
    {"every other of many", every_other_of_many},
    {"places with gaps stay", places_with_gaps_stay},
    {"persistent ones start again", persistent_ones_start_again},
    {"to oneself", to_oneself},
    {"between two groups", between_two_groups},
    {"from nobody", from_nobody},
    {"matched messages are delivered", matched_messages_are_delivered},
    {"waiting messages are delivered", waiting_messages_are_delivered},
    {"probed messages are delivered", probed_messages_are_delivered},
    {"races lose nothing", races_lose_nothing},
    {"twice and too late", twice_and_too_late},
    {"sends go on", sends_go_on},
    {"collectives go on", collectives_go_on},
    {"freed after cancelling", freed_after_cancelling},
    {"freed receives go on", freed_receives_go_on},
    {"cancelled after the communicator is freed", cancelled_after_the_communicator_is_freed},
};

// --- Threads -------------------------------------------------------------------------------------

static MPI_Request awaited;
static MPI_Status awaited_status;
static void* await(void* unused) {
  (void)unused;
  OK(MPI_Wait(&awaited, &awaited_status));
  return NULL;
}

// One thread waits for the receive that another cancels.
static void while_another_thread_waits(void) {
  for (int round = 0; round < 50; ++round) {
    int got;
    pthread_t thread;
    irecv(&got, left, 1, &awaited);
    MPI_Request same = awaited;
    CHECK(pthread_create(&thread, NULL, await, NULL) == 0);
    if (round % 2) sched_yield();
    OK(MPI_Cancel(&same));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(is_cancelled(&awaited_status) && got == -1);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int provided = -1;
  OK(MPI_Init_thread(&argc,
                     &argv,
                     strcmp(how, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                     &provided));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (strcmp(how, "names") == 0) fprintf(stderr, "rank %d: %s\n", rank, cases[i].name);
    cases[i].run();
    int sum = -1;  // the communicator goes on
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&comm));
  }
  comm = MPI_COMM_WORLD;
  if (strcmp(how, "threads") == 0) while_another_thread_waits();
#ifndef OTHER_MPI
  static int never;
  MPI_Request left_over;  // MPI_Finalize does not wait for it
  irecv(&never, left, 99, &left_over);
  if (rank % 2) OK(MPI_Request_free(&left_over));
#endif
  OK(MPI_Finalize());
  return 0;
}
