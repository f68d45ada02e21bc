// Ranks that wait in each of MPI's ways for rank 0, which never comes, until it is killed, for
// killed.py. They all need it, so they end by themselves.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kTag = 1, kRequests = 3 };

// The wait of a rank, and the rank that it waits for.
struct Wait {
  MPI_Comm comm;
  int source;
  MPI_Request requests[kRequests];  // receives
};
static int value[kRequests];

static void begin(struct Wait* wait) {
  for (int i = 0; i < kRequests; ++i) {
    OK(MPI_Irecv(&value[i], 1, MPI_INT, wait->source, kTag + i, wait->comm, &wait->requests[i]));
  }
}

static void receive(struct Wait* wait) {
  OK(MPI_Recv(value, 1, MPI_INT, wait->source, kTag, wait->comm, MPI_STATUS_IGNORE));
}
static void probe(struct Wait* wait) {
  OK(MPI_Probe(wait->source, kTag, wait->comm, MPI_STATUS_IGNORE));
}
static void mprobe(struct Wait* wait) {
  MPI_Message message;
  OK(MPI_Mprobe(wait->source, kTag, wait->comm, &message, MPI_STATUS_IGNORE));
}
static void iprobe(struct Wait* wait) {
  for (int flag = 0; !flag;) {
    OK(MPI_Iprobe(wait->source, kTag, wait->comm, &flag, MPI_STATUS_IGNORE));
  }
}
static void improbe(struct Wait* wait) {
  MPI_Message message;
  for (int flag = 0; !flag;) {
    OK(MPI_Improbe(wait->source, kTag, wait->comm, &flag, &message, MPI_STATUS_IGNORE));
  }
}
static void napping_iprobe(struct Wait* wait) {
  for (int flag = 0; !flag; usleep(1000)) {
    OK(MPI_Iprobe(wait->source, MPI_ANY_TAG, wait->comm, &flag, MPI_STATUS_IGNORE));
  }
}
static void test(struct Wait* wait) {
  begin(wait);
  for (int flag = 0; !flag;) OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
}
static void napping_test(struct Wait* wait) {
  begin(wait);
  for (int flag = 0; !flag; usleep(1000)) {
    OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
  }
}
static void testall(struct Wait* wait) {
  begin(wait);
  for (int flag = 0; !flag;) {
    OK(MPI_Testall(kRequests, wait->requests, &flag, MPI_STATUSES_IGNORE));
  }
}
static void testany(struct Wait* wait) {
  begin(wait);
  for (int flag = 0, index; !flag;) {
    OK(MPI_Testany(kRequests, wait->requests, &index, &flag, MPI_STATUS_IGNORE));
  }
}
static void testsome(struct Wait* wait) {
  int indices[kRequests];
  begin(wait);
  for (int found = 0; !found;) {
    OK(MPI_Testsome(kRequests, wait->requests, &found, indices, MPI_STATUSES_IGNORE));
  }
}
static void get_status(struct Wait* wait) {
  begin(wait);
  for (int flag = 0; !flag;) {
    OK(MPI_Request_get_status(wait->requests[0], &flag, MPI_STATUS_IGNORE));
  }
}
static void wait_for_one(struct Wait* wait) {
  begin(wait);
  OK(MPI_Wait(&wait->requests[0], MPI_STATUS_IGNORE));
}
static void waitall(struct Wait* wait) {
  begin(wait);
  OK(MPI_Waitall(kRequests, wait->requests, MPI_STATUSES_IGNORE));
}
static void waitany(struct Wait* wait) {
  int index;
  begin(wait);
  OK(MPI_Waitany(kRequests, wait->requests, &index, MPI_STATUS_IGNORE));
}
static void waitsome(struct Wait* wait) {
  int found, indices[kRequests];
  begin(wait);
  OK(MPI_Waitsome(kRequests, wait->requests, &found, indices, MPI_STATUSES_IGNORE));
}
static void persistent(struct Wait* wait) {
  OK(MPI_Recv_init(value, 1, MPI_INT, wait->source, kTag, wait->comm, &wait->requests[0]));
  OK(MPI_Start(&wait->requests[0]));
  for (int flag = 0; !flag;) OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
}
static void synchronous(struct Wait* wait) {
  OK(MPI_Issend(value, 1, MPI_INT, 0, kTag, wait->comm, &wait->requests[0]));
  for (int flag = 0; !flag; usleep(1000)) {
    OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
  }
}

static void barrier(struct Wait* wait) { OK(MPI_Barrier(wait->comm)); }
static void ibarrier(struct Wait* wait) {
  OK(MPI_Ibarrier(wait->comm, &wait->requests[0]));
  for (int flag = 0; !flag; usleep(1000)) {
    OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
  }
}
static void duplicate(struct Wait* wait) {
  MPI_Comm made;
  OK(MPI_Comm_idup(wait->comm, &made, &wait->requests[0]));
  for (int flag = 0; !flag; usleep(1000)) {
    OK(MPI_Test(&wait->requests[0], &flag, MPI_STATUS_IGNORE));
  }
}

static void create_group(struct Wait* unused) {
  (void)unused;
  MPI_Group all;
  MPI_Comm made;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  OK(MPI_Comm_create_group(MPI_COMM_WORLD, all, kTag, &made));
}

static void partitions(struct Wait* wait) {
  OK(MPI_Precv_init(value, 2, 1, MPI_INT, 0, kTag, wait->comm, MPI_INFO_NULL, &wait->requests[0]));
  OK(MPI_Start(&wait->requests[0]));
  for (int flag = 0; !flag; usleep(1000)) OK(MPI_Parrived(wait->requests[0], 1, &flag));
}

static void* in_thread(void* wait) {
  receive(wait);
  return NULL;
}
static void* probe_in_thread(void* wait) {
  probe(wait);
  return NULL;
}
// The first thread makes no call of MPI meanwhile.
static void join(void* (*run)(void*), struct Wait* wait) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run, wait) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}
static void thread(struct Wait* wait) { join(in_thread, wait); }
static void probing_thread(struct Wait* wait) { join(probe_in_thread, wait); }

static void (*const ways[])(struct Wait*) = {
    receive,      probe,        mprobe,     iprobe,        improbe,    napping_iprobe, test,
    napping_test, testall,      testany,    testsome,      get_status, wait_for_one,   waitall,
    waitany,      waitsome,     persistent, synchronous,   barrier,    ibarrier,       duplicate,
    partitions,   create_group, thread,     probing_thread};
enum { kWays = sizeof ways / sizeof *ways };

// Rank 0 is a group of its own, as with mpi4py.futures.
static MPI_Comm between_groups(void) {
  MPI_Comm own, made;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank != 0, rank, &own));
  OK(MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, kTag, &made));
  return made;
}

// waits WAY COMM SOURCE: WAY is a number from 0, COMM is world, dup or inter, SOURCE is 0 or any.
// waits abort [barrier]: rank 1 calls MPI_Abort, and the others make no call, or wait for it.
int main(int argc, char** argv) {
  int level;
  const int ends = argc > 1 && strcmp(argv[1], "abort") == 0;
  CHECK(ends || argc > 3);
  const int way = atoi(argv[1]) % kWays;
  const int has_threads = ways[way] == thread || ways[way] == probing_thread;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (ends && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (ends && argc > 2) OK(MPI_Barrier(MPI_COMM_WORLD));
  while (ends) pause();
  struct Wait wait = {.comm = MPI_COMM_WORLD, .source = 0};
  if (strcmp(argv[2], "dup") == 0) OK(MPI_Comm_dup(MPI_COMM_WORLD, &wait.comm));
  if (strcmp(argv[2], "inter") == 0) wait.comm = between_groups();
  if (strcmp(argv[3], "any") == 0) wait.source = MPI_ANY_SOURCE;
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) printf("begun\n");
  fflush(stdout);
  while (rank == 0) pause();
  ways[way](&wait);
  return 1;
}
