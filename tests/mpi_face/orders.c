// Calls that ranks make in different orders, as a table of cases: freeing communicators, and
// starting partitioned messages. They do the same under MPICH, but for those that OTHER_MPI leaves
// out.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int left, right;
static int is_on_hosts;  // where a broadcast's root waits for others

static void sum_over(MPI_Comm comm) {
  int sum = -1, of = -1, is_inter = 0;
  OK(MPI_Comm_test_inter(comm, &is_inter));
  OK(is_inter ? MPI_Comm_remote_size(comm, &of) : MPI_Comm_size(comm, &of));
  const int one = 1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK(sum == of);
}

// --- Ways to make a communicator of all ranks ----------------------------------------------------

static void by_dup(MPI_Comm* made) { OK(MPI_Comm_dup(MPI_COMM_WORLD, made)); }
static void by_idup(MPI_Comm* made) {
  MPI_Request request;
  OK(MPI_Comm_idup(MPI_COMM_WORLD, made, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void by_group(MPI_Comm* made) {
  MPI_Group group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, made));
  OK(MPI_Group_free(&group));
}
static void by_group_alone(MPI_Comm* made) {
  MPI_Group group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  OK(MPI_Comm_create_from_group(group, "orders", MPI_INFO_NULL, MPI_ERRORS_RETURN, made));
  OK(MPI_Group_free(&group));
}
// A part of a communicator that has been freed.
static void by_part(MPI_Comm* made) {
  MPI_Comm whole;
  by_idup(&whole);
  OK(MPI_Comm_split(whole, rank % 2, rank, made));
  OK(MPI_Comm_free(&whole));
}
static void by_grid(MPI_Comm* made) {
  MPI_Comm whole;
  by_idup(&whole);
  OK(MPI_Cart_create(whole, 1, &size, (int[]){1}, 0, made));
  OK(MPI_Comm_free(&whole));
}
static void by_two_groups(MPI_Comm* made) {
  if (size < 2) return by_idup(made);
  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, (rank + 1) % 2, 6, made));
  OK(MPI_Comm_free(&half));
}
static void by_merging(MPI_Comm* made) {
  if (size < 2) return by_idup(made);
  MPI_Comm both;
  by_two_groups(&both);
  OK(MPI_Intercomm_merge(both, rank % 2, made));
  OK(MPI_Comm_free(&both));
}

typedef void (*Way)(MPI_Comm*);
static const Way ways[] = {
    by_dup, by_idup, by_group, by_group_alone, by_part, by_grid, by_two_groups, by_merging};
enum { kWays = sizeof ways / sizeof *ways, kEach = 3 };

// --- Freeing -------------------------------------------------------------------------------------

// The places 0 to 2 in an order of its own for each rank and round.
static int place(int round, int i) {
  static const int orders[6][3] = {
      {0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  return orders[(rank + round * (1 + rank)) % 6][i];
}

static void freed_in_any_order(void) {
  for (int way = 0; way < kWays; ++way) {
    for (int round = 0; round < 3; ++round) {
      MPI_Comm made[kEach];
      for (int i = 0; i < kEach; ++i) ways[way](&made[i]);
      for (int i = 0; i < kEach; ++i) sum_over(made[i]);
      for (int i = 0; i < kEach; ++i) {
        MPI_Comm* const one = &made[place(round, i)];
        if (round == 2) {
          OK(MPI_Comm_disconnect(one));
        } else {
          OK(MPI_Comm_free(one));
        }
        CHECK(*one == MPI_COMM_NULL);
      }
    }
  }
}

static void of_all_kinds_at_once(void) {
  MPI_Comm made[kWays];
  for (int way = 0; way < kWays; ++way) ways[way](&made[way]);
  for (int i = 0; i < kWays; ++i) {
    const int k = (i + rank) % kWays;
    OK(MPI_Comm_free(&made[rank % 2 ? k : kWays - 1 - k]));
  }
}

// Rank 0 tells the others to go on only after it has freed the communicator.
static void go_on(void) {
  char word = 0;
  for (int i = 1; rank == 0 && i < size; ++i)
    OK(MPI_Send(&word, 1, MPI_CHAR, i, 77, MPI_COMM_WORLD));
  if (rank != 0) OK(MPI_Recv(&word, 1, MPI_CHAR, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

// Its part of a broadcast ends before the others begin it.
static void freed_before_others_call(void) {
  for (int way = 0; way < kWays; ++way) {
    if (ways[way] == by_part || ways[way] == by_two_groups || is_on_hosts) continue;
    MPI_Comm made;
    ways[way](&made);
    int value = rank == 0 ? 5 : -1;
    if (rank != 0) go_on();
    OK(MPI_Bcast(&value, 1, MPI_INT, 0, made));
    OK(MPI_Comm_free(&made));
    if (rank == 0) go_on();
    CHECK(value == 5);
  }
}

static void messages_outlive_their_communicator(void) {
  enum { kMost = 300000 };
  static int out[kMost], got[kMost];
  static char room[kMost * sizeof(int) + 2 * MPI_BSEND_OVERHEAD];
  OK(MPI_Buffer_attach(room, sizeof room));
  static const int lengths[] = {1, 3000, 20000, kMost};
  for (int way = 0; way < kWays; ++way) {
    const int is_whole = ways[way] != by_part && ways[way] != by_two_groups;
    if (!is_whole || ways[way] == by_merging || size < 2) continue;
    for (int i = 0; i < 4; ++i) {
      const int n = lengths[i];
      for (int how = 0; how < 4; ++how) {
        MPI_Comm made;
        MPI_Request request = MPI_REQUEST_NULL;
        ways[way](&made);
        for (int k = 0; k < n; ++k) out[k] = how + k;
        if (rank == 1) {
          if (how % 2) go_on();
          memset(got, 0, sizeof got);
          OK(MPI_Recv(got, n, MPI_INT, 0, 1, made, MPI_STATUS_IGNORE));
          CHECK(got[0] == how && got[n - 1] == how + n - 1);
        }
        if (rank == 0 && how < 2) OK(MPI_Isend(out, n, MPI_INT, 1, 1, made, &request));
        if (rank == 0 && how == 2) {
          OK(MPI_Isend(out, n, MPI_INT, 1, 1, made, &request));
          OK(MPI_Request_free(&request));
        }
        if (rank == 0 && how == 3) OK(MPI_Bsend(out, n, MPI_INT, 1, 1, made));
        OK(MPI_Comm_free(&made));
        if (how % 2 && rank != 1) go_on();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));  // `out` has left
      }
    }
  }
  void* back;
  int bytes;
  OK(MPI_Buffer_detach(&back, &bytes));
}

static void collective_requests_outlive_it(void) {
  for (int way = 0; way < kWays; ++way) {
    MPI_Comm made[2];
    MPI_Request requests[2];
    int sums[2] = {-1, -1};
    const int one = 1;
    for (int i = 0; i < 2; ++i) {
      ways[way](&made[i]);
      OK(MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, made[i], &requests[i]));
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_free(&made[(i + rank) % 2]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(sums[0] >= 1 && sums[0] == sums[1]);
  }
}

static void persistent_requests_outlive_it(void) {
  for (int way = 0; way < kWays; ++way) {
    if (ways[way] == by_two_groups) continue;
    MPI_Comm made[2];
    MPI_Request requests[2];
    int sums[2], one = 1;
    for (int i = 0; i < 2; ++i) {
      ways[way](&made[i]);
      OK(MPI_Allreduce_init(
          &one, &sums[i], 1, MPI_INT, MPI_SUM, made[i], MPI_INFO_NULL, &requests[i]));
    }
    for (int i = 0; i < 2; ++i) OK(MPI_Comm_free(&made[(i + rank) % 2]));
    for (int i = 0; i < 2; ++i) OK(MPI_Start(&requests[(i + rank) % 2]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(sums[0] >= 1 && sums[0] == sums[1]);
    for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[(i + rank) % 2]));
  }
}

// The windows and files of a communicator outlive it.
static void windows_and_files_outlive_it(const char* path) {
  for (int way = 0; way < kWays; ++way) {
    if (ways[way] == by_two_groups) continue;
    MPI_Comm made;
    MPI_Win win;
    MPI_File file;
    int* part = NULL;
    char name[512];
    ways[way](&made);
    int own = -1, of = 0;
    OK(MPI_Comm_rank(made, &own));
    OK(MPI_Comm_size(made, &of));
    snprintf(name, sizeof name, "%s.%d", path, ways[way] == by_part ? rank % 2 : 0);
    OK(MPI_Win_allocate(sizeof *part, sizeof *part, MPI_INFO_NULL, made, &part, &win));
    OK(MPI_File_open(made, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_Comm_free(&made));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&own, 1, MPI_INT, (own + 1) % of, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(*part == (own + of - 1) % of);
    OK(MPI_File_write_at_all(file, own * 4, &own, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_Win_free(&win));
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (own == 0) remove(name);
  }
}

// --- Partitioned messages ------------------------------------------------------------------------

static void psend(int* out, int tag, MPI_Comm comm, MPI_Request* request) {
  OK(MPI_Psend_init(out, 2, 2, MPI_INT, right, tag, comm, MPI_INFO_NULL, request));
}
static void precv(int* got, int tag, MPI_Comm comm, MPI_Request* request) {
  OK(MPI_Precv_init(got, 4, 1, MPI_INT, left, tag, comm, MPI_INFO_NULL, request));
}
static void send_parts(MPI_Request request) {
  OK(MPI_Start(&request));
  OK(MPI_Pready_range(0, 1, request));
}
static int part(int sender, int message, int round, int i) {
  return 1000 * sender + 100 * message + 10 * round + i;
}

// They are matched in the order of their making, whatever the order of their starts.
static void partitioned_by_making(void) {
  enum { kCount = 6 };
  static const int orders[3][kCount] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}};
  int out[kCount][4], got[kCount][4];
  MPI_Comm other;
  MPI_Request sends[kCount], receives[kCount];
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  for (int first = 0; first < 2; ++first) {  // the receives are made first, or the sends
    for (int k = 0; k < 2; ++k) {
      for (int m = 0; m < kCount; ++m) {
        MPI_Comm const comm = m < 4 ? MPI_COMM_WORLD : other;
        const int tag = m % 4 == 3 ? 8 : 7;
        if (k == first) {
          psend(out[m], tag, comm, &sends[m]);
        } else {
          precv(got[m], tag, comm, &receives[m]);
        }
      }
    }
    for (int round = 0; round < 9; ++round) {
      for (int m = 0; m < kCount; ++m) {
        for (int i = 0; i < 4; ++i) {
          out[m][i] = part(rank, m, round, i);
          got[m][i] = -1;
        }
      }
      for (int m = 0; m < kCount; ++m) {
        if (round % 2) OK(MPI_Start(&receives[orders[round / 3][m]]));
        send_parts(sends[orders[(round + rank) % 3][m]]);
        if (round % 2 == 0) OK(MPI_Start(&receives[orders[round / 3][m]]));
      }
      MPI_Status statuses[kCount];
      OK(MPI_Waitall(kCount, receives, statuses));
      OK(MPI_Waitall(kCount, sends, MPI_STATUSES_IGNORE));
      for (int m = 0; m < kCount; ++m) {
        for (int i = 0; i < 4; ++i) CHECK(got[m][i] == part(left, m, round, i));
        CHECK(statuses[m].MPI_SOURCE == left && statuses[m].MPI_TAG == (m % 4 == 3 ? 8 : 7));
      }
    }
    for (int m = 0; m < kCount; ++m) {
      OK(MPI_Request_free(&sends[m]));
      OK(MPI_Request_free(&receives[m]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Comm_free(&other));
}

// A receive may start before its send is made. Others that end meanwhile are found.
static void partitioned_before_its_send(void) {
  int out[4] = {1, 2, 3, 4 + rank}, got[4] = {0, 0, 0, 0}, index = -1, flag = -1, in = -1;
  MPI_Request requests[2], send;
  precv(got, 3, MPI_COMM_WORLD, &requests[0]);
  OK(MPI_Start(&requests[0]));
  OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
  OK(MPI_Parrived(requests[0], 0, &index));
  CHECK(!flag && !index);
  OK(MPI_Irecv(&in, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Send(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD));
  OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
  CHECK(index == 1 && in == left);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  psend(out, 3, MPI_COMM_WORLD, &send);
  send_parts(send);
  OK(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE));
  CHECK(index == 0 && got[0] == 1 && got[3] == 4 + left);
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&requests[0]));
}

// Other receives and probes do not see them.
static void partitioned_are_apart(void) {
  int out[4] = {1, 2, 3, 4}, got[4], flag = -1, in = -1;
  MPI_Request send, receive;
  psend(out, 3, MPI_COMM_WORLD, &send);
  precv(got, 3, MPI_COMM_WORLD, &receive);
  send_parts(send);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Sendrecv(&rank,
                  1,
                  MPI_INT,
                  right,
                  3,
                  &in,
                  1,
                  MPI_INT,
                  left,
                  MPI_ANY_TAG,
                  MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(in == left);
  OK(MPI_Start(&receive));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  CHECK(got[3] == 4);
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

// A request that was freed without a start keeps its place in the order.
static void partitioned_freed_unused(void) {
#ifndef OTHER_MPI  // MPICH 5 does not end
  int out[2][4] = {{1}, {2}}, got[2][4];
  MPI_Request sends[2], receives[2];
  MPI_Datatype type;
  for (int m = 0; m < 2; ++m) {
    psend(out[m], 3, MPI_COMM_WORLD, &sends[m]);
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Precv_init(got[m], 1, 2, type, left, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[m]));
    OK(MPI_Type_free(&type));
  }
  OK(MPI_Request_free(&sends[0]));
  OK(MPI_Request_free(&receives[0]));
  OK(MPI_Start(&receives[1]));
  send_parts(sends[1]);
  OK(MPI_Wait(&receives[1], MPI_STATUS_IGNORE));
  CHECK(got[1][0] == 2);
  OK(MPI_Wait(&sends[1], MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&sends[1]));
  OK(MPI_Request_free(&receives[1]));
#endif
}

static void partitioned_with_nobody(void) {
  int out[2] = {1, 2}, got[2] = {-1, -1};
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Comm const comm = MPI_COMM_WORLD;
  OK(MPI_Psend_init(out, 2, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &requests[0]));
  OK(MPI_Precv_init(got, 2, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_INFO_NULL, &requests[1]));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready_range(0, 1, requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[1], &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && got[0] == -1);
  }
  for (int i = 0; i < 2; ++i) OK(MPI_Request_free(&requests[i]));
}

static void partitioned_have_no_wildcards(void) {
#ifndef OTHER_MPI  // which may leave that unchecked
  int got[2];
  MPI_Request request;
  MPI_Comm const comm = MPI_COMM_WORLD;
  const int any = MPI_ANY_SOURCE, any_tag = MPI_ANY_TAG;
  FAILS(MPI_Precv_init(got, 2, 1, MPI_INT, any, 0, comm, MPI_INFO_NULL, &request), MPI_ERR_RANK);
  FAILS(MPI_Precv_init(got, 2, 1, MPI_INT, 0, any_tag, comm, MPI_INFO_NULL, &request), MPI_ERR_TAG);
  FAILS(MPI_Psend_init(got, 2, 1, MPI_INT, size, 0, comm, MPI_INFO_NULL, &request), MPI_ERR_RANK);
  FAILS(MPI_Psend_init(got, -1, 1, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request), MPI_ERR_ARG);
#endif
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"freed in any order", freed_in_any_order},
    {"of all kinds at once", of_all_kinds_at_once},
    {"freed before others call", freed_before_others_call},
    {"messages outlive their communicator", messages_outlive_their_communicator},
    {"collective requests outlive it", collective_requests_outlive_it},
    {"persistent requests outlive it", persistent_requests_outlive_it},
    {"partitioned by making", partitioned_by_making},
    {"partitioned before its send", partitioned_before_its_send},
    {"partitioned are apart", partitioned_are_apart},
    {"partitioned freed unused", partitioned_freed_unused},
    {"partitioned with nobody", partitioned_with_nobody},
    {"partitioned have no wildcards", partitioned_have_no_wildcards},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  is_on_hosts = argc > 1 && strcmp(argv[1], "hosts") == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (argc > 2) fprintf(stderr, "rank %d: %s\n", rank, cases[i].name);
    cases[i].run();
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  if (argc > 1 && !is_on_hosts) windows_and_files_outlive_it(argv[1]);
  MPI_Comm left_over;  // MPI_Finalize does not wait for it
  by_idup(&left_over);
  if (rank != 0) OK(MPI_Comm_free(&left_over));
  OK(MPI_Finalize());
  return 0;
}
