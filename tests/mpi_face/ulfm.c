// Going on after a failure, by the calls of ULFM. Rank 1 of three or more dies; with a seed, all
// but rank 0 die, one after the other while the others shrink.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int ones_of(MPI_Comm comm) {
  int one = 1, sum = -1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  return sum;
}
static int revoked(MPI_Comm comm) {
  int flag = -1;
  OK(MPIX_Comm_is_revoked(comm, &flag));
  return flag;
}
// Each rank clears the bit of its own number.
static int agreed(MPI_Comm comm, int expected) {
  int flag = ~(1 << rank);
  const int code = MPIX_Comm_agree(comm, &flag);
  CHECK((flag & 0xff) == expected);
  return code;
}

static void without_a_failure(MPI_Comm comm) {
  MPI_Comm other;
  MPI_Group failed;
  CHECK(!revoked(comm));
  OK(agreed(comm, 0xff & ~((1 << size) - 1)));
  OK(MPIX_Comm_get_failed(comm, &failed));
  CHECK(failed == MPI_GROUP_EMPTY);
  OK(MPIX_Comm_shrink(comm, &other));
  CHECK(ones_of(other) == size && ones_of(comm) == size);
  OK(MPI_Comm_free(&other));
  OK(agreed(comm, 0xff & ~((1 << size) - 1)));
}

// Receives from rank 1, which dies before it has sent anything.
enum { kWatched = 5 };
static MPI_Request watched[kWatched];
static int places[kWatched];
static void watch(MPI_Comm comm) {
  for (int i = 0; i < kWatched - 1; ++i) {
    OK(MPI_Irecv(&places[i], 1, MPI_INT, 1, i, comm, &watched[i]));
  }
  MPI_Request* const parts = &watched[kWatched - 1];
  OK(MPI_Precv_init(&places[kWatched - 1], 1, 1, MPI_INT, 1, 0, comm, MPI_INFO_NULL, parts));
  OK(MPI_Start(parts));
}
// A look at a failed request reports its error, and so does the call that ends the request.
static void looks_keep_failures(void) {
  MPI_Request* const parts = &watched[kWatched - 1];
  MPI_Status statuses[1];
  int code = MPI_SUCCESS, flag = 0, index, some;
  while (code == MPI_SUCCESS) code = MPI_Request_get_status(watched[0], &flag, statuses);
  CHECK(flag && error_class(code) == MPIX_ERR_PROC_FAILED);
  FAILS(MPI_Request_get_status_all(1, &watched[1], &flag, statuses), MPI_ERR_IN_STATUS);
  CHECK(error_class(statuses[0].MPI_ERROR) == MPIX_ERR_PROC_FAILED);
  FAILS(MPI_Request_get_status_any(1, &watched[2], &index, &flag, statuses), MPIX_ERR_PROC_FAILED);
  FAILS(MPI_Request_get_status_some(1, &watched[3], &some, &index, statuses), MPI_ERR_IN_STATUS);
  for (code = MPI_SUCCESS; code == MPI_SUCCESS;) code = MPI_Parrived(*parts, 0, &flag);
  CHECK(error_class(code) == MPIX_ERR_PROC_FAILED);
  for (int i = 0; i < kWatched; ++i) FAILS(MPI_Wait(&watched[i], statuses), MPIX_ERR_PROC_FAILED);
  OK(MPI_Request_free(parts));
}

// The ranks that are left send partitioned messages and make communicators by themselves.
static void hidden_messages_go_on(MPI_Comm left) {
  int own = -1, others = -1, flag = 0, out = 70 + rank, got = -1;
  MPI_Request requests[2];
  MPI_Group group;
  MPI_Comm made;
  OK(MPI_Comm_rank(left, &own));
  OK(MPI_Comm_size(left, &others));
  const int right = (own + 1) % others, before = (own + others - 1) % others;
  OK(MPI_Precv_init(&got, 1, 1, MPI_INT, before, 2, left, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Start(&requests[0]));
  OK(MPI_Parrived(requests[0], 0, &flag));
  CHECK(!flag);
  OK(MPI_Barrier(left));
  OK(MPI_Psend_init(&out, 1, 1, MPI_INT, right, 2, left, MPI_INFO_NULL, &requests[1]));
  OK(MPI_Start(&requests[1]));
  OK(MPI_Pready(0, requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(got == 70 + (before > 0 ? before + 1 : before));
  for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
  OK(MPI_Comm_group(left, &group));
  OK(MPI_Comm_create_group(left, group, 3, &made));
  CHECK(ones_of(made) == others);
  OK(MPI_Comm_free(&made));
  OK(MPI_Group_free(&group));
}

static void after_a_death(MPI_Comm comm, MPI_Comm* left) {
  const int living = (1 << size) - 1 - 2;
  FAILS(MPI_Barrier(comm), MPIX_ERR_PROC_FAILED);
  MPI_Group failed, whole;
  int place = 0, dead = -1, count = -1;
  OK(MPIX_Comm_get_failed(comm, &failed));
  OK(MPI_Comm_group(comm, &whole));
  OK(MPI_Group_translate_ranks(failed, 1, &place, whole, &dead));
  CHECK(dead == 1);
  OK(MPI_Group_free(&failed));
  OK(MPIX_Comm_failure_get_acked(comm, &failed));
  CHECK(failed == MPI_GROUP_EMPTY);
  FAILS(agreed(comm, 0xff & ~living), MPIX_ERR_PROC_FAILED);
  OK(MPIX_Comm_failure_ack(comm));
  OK(MPIX_Comm_failure_get_acked(comm, &failed));
  OK(MPI_Group_size(failed, &count));
  CHECK(count == 1);
  OK(MPI_Group_free(&failed));
  OK(agreed(comm, 0xff & ~living));
  OK(MPIX_Comm_shrink(comm, left));
  CHECK(ones_of(*left) == size - 1);
  int own = -1;
  OK(MPI_Comm_rank(*left, &own));
  CHECK(own == (rank > 1 ? rank - 1 : rank));
  OK(MPI_Group_free(&whole));
}

static void after_a_revocation(MPI_Comm left) {
  MPI_Comm comm, next;
  int own = -1, got = -1;
  OK(MPI_Comm_dup(left, &comm));
  OK(MPI_Comm_rank(comm, &own));
  if (own == 0) {
    OK(MPIX_Comm_revoke(comm));
  } else {
    FAILS(MPI_Recv(&got, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
  }
  CHECK(revoked(comm) && !revoked(left));
  OK(MPIX_Comm_shrink(comm, &next));
  CHECK(ones_of(next) == size - 1 && ones_of(left) == size - 1);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free(&next));
}

static void* die_soon(void* delay) {
  usleep(*(const useconds_t*)delay);
  raise(SIGKILL);
  return NULL;
}
// The last rank dies at some moment of a shrinking call. All others get the same communicator,
// with the dead rank or without it.
static void shrink_while_ranks_die(MPI_Comm comm) {
  for (int last = size - 1; last > 0; --last) {
    MPI_Comm left;
    int most = -1, least = -1;
    useconds_t delay = (useconds_t)(rand() % 400);
    pthread_t thread;
    pass_before(last, last + 1, comm);
    if (rank == last) CHECK(pthread_create(&thread, NULL, die_soon, &delay) == 0);
    for (int count = size; count != last;) {
      OK(MPIX_Comm_shrink(comm, &left));
      if (rank == last) pause();
      OK(MPI_Comm_size(left, &count));
      CHECK(count == last || count == last + 1);
      comm = left;
    }
    OK(MPI_Allreduce(&last, &most, 1, MPI_INT, MPI_MAX, comm));
    OK(MPI_Allreduce(&last, &least, 1, MPI_INT, MPI_MIN, comm));
    CHECK(most == last && least == last);
  }
}

int main(int argc, char** argv) {
  MPI_Comm comm, left, other;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  if (argc > 1) {
    srand((unsigned)atoi(argv[1]));
    shrink_while_ranks_die(comm);
    OK(MPI_Finalize());
    return 0;
  }
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  without_a_failure(comm);
  if (rank != 1) watch(other);
  pass_before(1, size, comm);
  if (rank == 1) raise(SIGKILL);
  after_a_death(comm, &left);
  after_a_revocation(left);
  hidden_messages_go_on(left);
  looks_keep_failures();  // and ends the hidden messages of all
  OK(MPI_Comm_free(&left));
  OK(MPI_Finalize());
  return 0;
}
