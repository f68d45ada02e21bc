// Calls of MPI's standard interface, area by area, on any number of ranks. Expected values differ
// for each rank and place.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void test_environment(void) {
  int flag = 0, version = 0, subversion = 0, length = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
  CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
  CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == 5);
  CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS && strstr(text, "hocket"));
  CHECK(PMPI_Get_processor_name(text, &length) == MPI_SUCCESS && length > 0);
  CHECK(MPI_Wtime() > 0);
}

static void test_messages(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int sent[3] = {rank, rank * 10, rank * 100}, got[4] = {-1, -1, -1, -1}, count = 0;
  MPI_Status status;
  CHECK(MPI_Sendrecv(sent,
                     3,
                     MPI_INT,
                     right,
                     7,
                     got,
                     4,
                     MPI_INT,
                     left,
                     MPI_ANY_TAG,
                     MPI_COMM_WORLD,
                     &status) == MPI_SUCCESS);
  CHECK(got[0] == left && got[1] == left * 10 && got[2] == left * 100 && got[3] == -1);
  CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 7);
  CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 3);

  // A column of a matrix becomes a row of another.
  double matrix[4][3], row[4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) matrix[i][j] = rank * 100 + i * 10 + j;
  }
  MPI_Datatype column;
  CHECK(MPI_Type_vector(4, 1, 3, MPI_DOUBLE, &column) == MPI_SUCCESS);
  CHECK(MPI_Type_commit(&column) == MPI_SUCCESS);
  MPI_Request requests[2];
  CHECK(MPI_Irecv(row, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]) == 0);
  CHECK(MPI_Isend(&matrix[0][1], 1, column, right, 3, MPI_COMM_WORLD, &requests[1]) == 0);
  MPI_Status statuses[2];
  CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
  CHECK(requests[0] == MPI_REQUEST_NULL && statuses[0].MPI_SOURCE == left);
  for (int i = 0; i < 4; ++i) CHECK(row[i] == left * 100 + i * 10 + 1);
  CHECK(MPI_Type_free(&column) == MPI_SUCCESS && column == MPI_DATATYPE_NULL);

  // A message that was taken is found by no other receive.
  CHECK(MPI_Isend(&rank, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
  MPI_Message message;
  CHECK(MPI_Mprobe(left, 5, MPI_COMM_WORLD, &message, &status) == MPI_SUCCESS);
  int flag = 1;
  CHECK(MPI_Iprobe(left, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
  CHECK(MPI_Mrecv(got, 1, MPI_INT, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS && got[0] == left);
  CHECK(message == MPI_MESSAGE_NULL);
  CHECK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);

  CHECK(MPI_Recv(got, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

// A message that is too long fails its receive alone.
static void test_truncation(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int lengths[] = {1, 100, 5000, 200000};
  for (int k = 0; k < 4; ++k) {
    const int length = lengths[k], room = length / 2;
    int* sent = malloc(sizeof(int) * (size_t)length);
    int* got = malloc(sizeof(int) * (size_t)length);
    for (int i = 0; i < length; ++i) {
      sent[i] = rank * 1000000 + i;
      got[i] = -1;
    }
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    int count = -1;
    CHECK(MPI_Irecv(got, room, MPI_INT, left, k, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Isend(sent, length, MPI_INT, right, k, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
    CHECK(error_class(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
    CHECK(error_class(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS);
    for (int i = 0; i < length; ++i) CHECK(got[i] == (i < room ? left * 1000000 + i : -1));
    // The next message is whole, also where its receive blocks.
    CHECK(MPI_Isend(sent, length, MPI_INT, right, k, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Recv(got, length, MPI_INT, left, k, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == length);
    for (int i = 0; i < length; ++i) CHECK(got[i] == left * 1000000 + i);
    CHECK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    free(sent);
    free(got);
  }
}

// Rooms of few elements and of none, by both kinds of sends; the status is filled all the same.
static void test_small_rooms(void) {
  static int sent[100000];
  static const int lengths[] = {4, 5000, 15000, 100000};
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < 16; ++i) {
    const int length = lengths[i % 4], room = i / 4 % 2 == 0 ? 2 : 0;
    int got[3] = {-1, -1, -1}, count = -1;
    MPI_Request request;
    MPI_Status status;
    sent[0] = rank * 100 + i;
    CHECK((i < 8 ? MPI_Isend : MPI_Issend)(
              sent, length, MPI_INT, right, 13, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(error_class(MPI_Recv(got, room, MPI_INT, left, 13, MPI_COMM_WORLD, &status)) ==
          MPI_ERR_TRUNCATE);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == room);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 13);
    CHECK(got[0] == (room > 0 ? left * 100 + i : -1) && got[2] == -1);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
}

// A synchronous send has not ended while nobody receives, however short it is.
static void test_synchronous(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int length = 0; length <= 100000; length = length * 100 + 10) {
    int* sent = calloc((size_t)length + 1, sizeof(int));
    int* got = calloc((size_t)length + 1, sizeof(int));
    sent[0] = rank + 1;
    MPI_Request request;
    int flag = 1;
    CHECK(MPI_Issend(sent, length, MPI_INT, right, 2, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Recv(got, length, MPI_INT, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == 0);
    CHECK(length == 0 || got[0] == left + 1);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    free(sent);
    free(got);
  }
  // A receive that has begun lets the send end, although its rank waits for something else.
  int in = -1;
  MPI_Request request;
  CHECK(MPI_Irecv(&in, 1, MPI_INT, left, 12, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  CHECK(MPI_Ssend(&rank, 1, MPI_INT, right, 12, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == left);
}

static void test_partitioned(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int sent[6], got[6], flag = 1;
  MPI_Request requests[2];
  CHECK(
      MPI_Psend_init(sent, 3, 2, MPI_INT, right, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]) ==
      MPI_SUCCESS);
  CHECK(MPI_Precv_init(got, 3, 2, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]) ==
        MPI_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 6; ++i) sent[i] = rank * 100 + round * 10 + i;
    CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
    CHECK(MPI_Pready(1, requests[0]) == MPI_SUCCESS);
    CHECK(error_class(MPI_Pready(1, requests[0])) == MPI_ERR_ARG);
    CHECK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    CHECK(MPI_Pready_list(2, (int[]){2, 0}, requests[0]) == MPI_SUCCESS);
    while (!flag) CHECK(MPI_Parrived(requests[1], 2, &flag) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 6; ++i) CHECK(got[i] == left * 100 + round * 10 + i);
  }
  CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS);
  CHECK(MPI_Request_free(&requests[1]) == MPI_SUCCESS);
}

static void test_sessions(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int sets = 0, length = 0, sum = 0, members = 0;
  char name[32];
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets) == MPI_SUCCESS && sets == 2);
  CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL) == MPI_SUCCESS);
  CHECK(length == (int)strlen("mpi://WORLD") + 1);
  CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name) == MPI_SUCCESS);
  CHECK(strcmp(name, "mpi://WORLD") == 0);
  CHECK(error_class(MPI_Group_from_session_pset(session, "mpi://none", &group)) == MPI_ERR_ARG);
  CHECK(MPI_Group_from_session_pset(session, name, &group) == MPI_SUCCESS);
  CHECK(MPI_Comm_create_from_group(group, "a tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == 0);
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(MPI_Group_size(group, &members) == MPI_SUCCESS && members == size);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Group_free(&group) == MPI_SUCCESS);
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS && session == MPI_SESSION_NULL);
}

static void test_persistent(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out = 0, in = -1;
  MPI_Request requests[2];
  CHECK(MPI_Send_init(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
  CHECK(MPI_Recv_init(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
  for (int turn = 0; turn < 3; ++turn) {
    out = rank * 10 + turn;
    CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(in == left * 10 + turn && requests[1] != MPI_REQUEST_NULL);
  }
  CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS);
  CHECK(MPI_Request_free(&requests[1]) == MPI_SUCCESS);
}

// Neither commutative nor, of what it does with digits, the same in another order.
static void append(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) {
    ((long*)inout)[i] += ((long*)in)[i] * 10;
  }
}

static void test_collectives(void) {
  double sum[2] = {rank + 1, rank * rank};
  CHECK(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(sum[0] == size * (size + 1) / 2.0);
  CHECK(sum[1] == (size - 1) * size * (2 * size - 1) / 6.0);

  struct {
    double value;
    int index;
  } own = {(rank * 7) % size, rank}, best = {-1, -1};
  CHECK(MPI_Allreduce(&own, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK((best.index * 7) % size == best.value && best.value >= own.value);

  MPI_Op op;
  CHECK(MPI_Op_create(append, 0, &op) == MPI_SUCCESS);
  long digit = rank + 1, result = 0;
  CHECK(MPI_Scan(&digit, &result, 1, MPI_LONG, op, MPI_COMM_WORLD) == MPI_SUCCESS);
  long expected = 1;
  for (int i = 1; i <= rank; ++i) expected = expected * 10 + i + 1;
  CHECK(result == expected);
  CHECK(MPI_Op_free(&op) == MPI_SUCCESS);

  int counts[16], places[16], gathered[256];
  for (int i = 0; i < size; ++i) {
    counts[i] = i + 1;
    places[i] = i * 8;
  }
  int mine[16];
  for (int i = 0; i <= rank; ++i) mine[i] = rank * 100 + i;
  MPI_Request request;
  CHECK(MPI_Igatherv(mine,
                     rank + 1,
                     MPI_INT,
                     gathered,
                     counts,
                     places,
                     MPI_INT,
                     size - 1,
                     MPI_COMM_WORLD,
                     &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; rank == size - 1 && i < size; ++i) {
    for (int k = 0; k <= i; ++k) CHECK(gathered[i * 8 + k] == i * 100 + k);
  }

  short to_all[16], from_all[16];
  for (int i = 0; i < size; ++i) to_all[i] = (short)(rank * 16 + i);
  CHECK(MPI_Alltoall(to_all, 1, MPI_SHORT, from_all, 1, MPI_SHORT, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int i = 0; i < size; ++i) CHECK(from_all[i] == i * 16 + rank);
}

static void test_communicators(void) {
  MPI_Comm half, ring;
  int found = -1, found_size = -1, compared = -1;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half) == MPI_SUCCESS);
  CHECK(MPI_Comm_size(half, &found_size) == MPI_SUCCESS);
  CHECK(found_size == (size + 1 - rank % 2) / 2);
  CHECK(MPI_Comm_rank(half, &found) == MPI_SUCCESS && found == found_size - 1 - rank / 2);
  CHECK(MPI_Comm_compare(half, MPI_COMM_WORLD, &compared) == MPI_SUCCESS);
  CHECK(compared == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
  CHECK(MPI_Comm_free(&half) == MPI_SUCCESS && half == MPI_COMM_NULL);

  const int periodic = 1;
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring) == MPI_SUCCESS);
  int left = -1, right = -1;
  CHECK(MPI_Cart_shift(ring, 0, 1, &left, &right) == MPI_SUCCESS);
  CHECK(left == (rank + size - 1) % size && right == (rank + 1) % size);
  const int out[2] = {rank * 2, rank * 2 + 1};
  int in[2] = {-1, -1};
  CHECK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring) == MPI_SUCCESS);
  CHECK(in[0] == left * 2 + 1 && in[1] == right * 2);
  CHECK(MPI_Comm_free(&ring) == MPI_SUCCESS);

  MPI_Group world, evens;
  CHECK(MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
  int ranges[1][3] = {{0, size - 1, 2}};
  CHECK(MPI_Group_range_incl(world, 1, ranges, &evens) == MPI_SUCCESS);
  MPI_Comm made = MPI_COMM_NULL;
  if (rank % 2 == 0) {  // the others do not take part
    CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, evens, 4, &made) == MPI_SUCCESS);
    int sum = rank;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, made) == MPI_SUCCESS);
    const int n = (size + 1) / 2;
    CHECK(sum == n * (n - 1));
    CHECK(MPI_Comm_free(&made) == MPI_SUCCESS);
  }
  CHECK(MPI_Group_free(&evens) == MPI_SUCCESS && MPI_Group_free(&world) == MPI_SUCCESS);
}

static int copies, deletions;
static int copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)keyval, (void)extra;
  ++copies;
  *(void**)out = (char*)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
static int drop(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  ++deletions;
  return MPI_SUCCESS;
}

static void test_attributes(void) {
  static char place[2];
  int keyval = MPI_KEYVAL_INVALID, flag = 0;
  void* value = NULL;
  MPI_Comm other;
  CHECK(MPI_Comm_create_keyval(copy, drop, &keyval, NULL) == MPI_SUCCESS);
  CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, place) == MPI_SUCCESS);
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &other) == MPI_SUCCESS && copies == 1);
  CHECK(MPI_Comm_get_attr(other, keyval, &value, &flag) == MPI_SUCCESS);
  CHECK(flag && value == (void*)(place + 1));
  CHECK(MPI_Comm_free(&other) == MPI_SUCCESS && deletions == 1);
  CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval) == MPI_SUCCESS && deletions == 2);
  CHECK(MPI_Comm_free_keyval(&keyval) == MPI_SUCCESS && keyval == MPI_KEYVAL_INVALID);
  int* limit = NULL;
  CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag) == MPI_SUCCESS);
  CHECK(flag && *limit >= 32767);
}

static void test_errors(void) {
  int value = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  const int code = MPI_Send(&value, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD);
  CHECK(error_class(code) == MPI_ERR_RANK);
  CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && strstr(text, "MPI_ERR_RANK"));
  const struct {
    int found, expected;
  } refused[] = {
      {MPI_Send(&value, -1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_COUNT},
      {MPI_Send(&value, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD), MPI_ERR_TYPE},
      {MPI_Send(&value, 1, MPI_INT, rank, -5, MPI_COMM_WORLD), MPI_ERR_TAG},
      {MPI_Send(NULL, 1, MPI_INT, rank, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER},
      {MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_NULL), MPI_ERR_COMM},
      {MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT},
      {MPI_Allreduce(&value, &length, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP},
      {MPI_Allreduce(&value, &length, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP},
      {MPI_Open_port(MPI_INFO_NULL, text), MPI_ERR_UNSUPPORTED_OPERATION},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    if (error_class(refused[i].found) != refused[i].expected) fprintf(stderr, "row %zu\n", i);
    CHECK(error_class(refused[i].found) == refused[i].expected);
  }
}

// MPI_IN_PLACE where it means nothing, on all ranks.
static void test_in_place_refused(void) {
  int in[64] = {0}, out[64] = {0}, counts[64], places[64];
  for (int i = 0; i < size; ++i) counts[i] = 1, places[i] = i;
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype number = MPI_INT;
  void* const here = MPI_IN_PLACE;
  const int refused[] = {
      MPI_Send(here, 1, number, rank, 0, world),
      MPI_Recv(here, 1, number, rank, 0, world, MPI_STATUS_IGNORE),
      MPI_Bcast(here, 1, number, 0, world),
      MPI_Allreduce(in, here, 1, number, MPI_SUM, world),
      MPI_Scan(in, here, 1, number, MPI_SUM, world),
      MPI_Exscan(in, here, 1, number, MPI_SUM, world),
      MPI_Reduce_scatter_block(in, here, 1, number, MPI_SUM, world),
      MPI_Reduce_scatter(in, here, counts, number, MPI_SUM, world),
      MPI_Allgather(in, 1, number, here, 1, number, world),
      MPI_Allgatherv(in, 1, number, here, counts, places, number, world),
      MPI_Alltoall(in, 1, number, here, 1, number, world),
      MPI_Alltoallv(in, counts, places, number, here, counts, places, number, world),
      MPI_Reduce_local(here, out, 1, number, MPI_SUM),
      MPI_Reduce_local(in, here, 1, number, MPI_SUM),
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    if (error_class(refused[i]) != MPI_ERR_BUFFER) fprintf(stderr, "row %zu\n", i);
    CHECK(error_class(refused[i]) == MPI_ERR_BUFFER);
  }
  if (rank == 0) return;
  // The root alone may pass it.
  const int rooted[] = {
      MPI_Reduce(here, out, 1, number, MPI_SUM, 0, world),
      MPI_Gather(here, 1, number, out, 1, number, 0, world),
      MPI_Gatherv(here, 1, number, out, counts, places, number, 0, world),
      MPI_Scatter(in, 1, number, here, 1, number, 0, world),
      MPI_Scatterv(in, counts, places, number, here, 1, number, 0, world),
  };
  for (size_t i = 0; i < sizeof rooted / sizeof *rooted; ++i) {
    if (error_class(rooted[i]) != MPI_ERR_BUFFER) fprintf(stderr, "rooted row %zu\n", i);
    CHECK(error_class(rooted[i]) == MPI_ERR_BUFFER);
  }
}

// The tool interface has nothing, and says so.
static void test_tool(void) {
  int provided = -1, count = -1, index = -1, length = 0;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL, kept;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  CHECK(MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
  CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
  CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
  CHECK(MPI_T_finalize() == MPI_SUCCESS);
  CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS && session != MPI_T_PVAR_SESSION_NULL);
  kept = session;
  int counts[6];
  const struct {
    int found, expected;
  } rows[] = {
      {MPI_T_cvar_get_num(&counts[0]), MPI_SUCCESS},
      {MPI_T_pvar_get_num(&counts[1]), MPI_SUCCESS},
      {MPI_T_category_get_num(&counts[2]), MPI_SUCCESS},
      {MPI_T_event_get_num(&counts[3]), MPI_SUCCESS},
      {MPI_T_source_get_num(&counts[4]), MPI_SUCCESS},
      {MPI_T_category_changed(&counts[5]), MPI_SUCCESS},
      {MPI_T_cvar_get_num(NULL), MPI_T_ERR_INVALID},
      {MPI_T_cvar_get_index("eager_limit", &index), MPI_T_ERR_INVALID_NAME},
      {MPI_T_pvar_get_index("unexpected", MPI_T_PVAR_CLASS_LEVEL, &index), MPI_T_ERR_INVALID_NAME},
      {MPI_T_category_get_info(0, NULL, &length, NULL, &length, &count, &count, &count),
       MPI_T_ERR_INVALID_INDEX},
      {MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count), MPI_T_ERR_INVALID_INDEX},
      {MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, 0, NULL, &handle, &count),
       MPI_T_ERR_INVALID_SESSION},
      {MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS},
      {MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS},
      {MPI_T_pvar_reset(session, handle), MPI_T_ERR_INVALID_HANDLE},
      {MPI_T_pvar_read(session, handle, &count), MPI_T_ERR_INVALID_HANDLE},
      {MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &count), MPI_T_ERR_INVALID_HANDLE},
      {MPI_T_pvar_session_free(&session), MPI_SUCCESS},
      {MPI_T_pvar_session_free(&kept), MPI_T_ERR_INVALID_SESSION},
      {MPI_T_finalize(), MPI_SUCCESS},
      {MPI_T_cvar_get_num(&count), MPI_T_ERR_NOT_INITIALIZED},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (rows[i].found != rows[i].expected) fprintf(stderr, "row %zu\n", i);
    CHECK(rows[i].found == rows[i].expected);
  }
  for (int i = 0; i < 6; ++i) CHECK(counts[i] == 0);
  CHECK(session == MPI_T_PVAR_SESSION_NULL);
}

// Numbers of 16 bits, by their bits: 1.5 and 2 are 3e00 and 4000 as IEEE's, and 3fc0 and 4000 else.
static void test_small_floats(void) {
  const unsigned short halves[2] = {0x3e00, 0x4000};
  unsigned short found[2] = {0x4000, 0x3e00};
  CHECK(MPI_Reduce_local(halves, found, 2, MPI_REAL2, MPI_SUM) == MPI_SUCCESS);
  CHECK(found[0] == 0x4300 && found[1] == 0x4300);  // 3.5
  unsigned short complex[2] = {0x3e00, 0x4000};     // (1.5 + 2i) squared is -1.75 + 6i
  CHECK(MPI_Reduce_local(halves, complex, 1, MPI_COMPLEX4, MPI_PROD) == MPI_SUCCESS);
  CHECK(complex[0] == 0xbf00 && complex[1] == 0x4600);
#ifdef MPIX_C_FLOAT16
  const unsigned short brains[2] = {0x3fc0, 0x4000};
  unsigned short largest[2] = {0x4000, 0x3fc0};
  CHECK(MPI_Reduce_local(brains, largest, 2, MPIX_BFLOAT16, MPI_MAX) == MPI_SUCCESS);
  CHECK(largest[0] == 0x4000 && largest[1] == 0x4000);
  unsigned short sum = 0x3c00;  // 1
  int bytes = 0;
  CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPIX_C_FLOAT16, MPI_PROD, MPI_COMM_WORLD) ==
        MPI_SUCCESS);
  CHECK(sum == 0x3c00);
  CHECK(MPI_Type_size(MPIX_BFLOAT16, &bytes) == MPI_SUCCESS && bytes == 2);
#endif
}

// A rank that dies is named to those that wait for it.
static void test_death(void) {
  CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  if (rank == size - 1) abort();
  const int code = MPI_Barrier(MPI_COMM_WORLD);
  char text[MPI_MAX_ERROR_STRING], name[32];
  int length = 0;
  CHECK(error_class(code) == MPIX_ERR_PROC_FAILED);
  CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS);
  snprintf(name, sizeof name, "rank %d", size - 1);
  CHECK(strstr(text, name) != NULL);
}

int main(int argc, char** argv) {
  int provided = -1;
  const int wanted =
      argc > 1 && strcmp(argv[1], "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  CHECK(MPI_Init_thread(&argc, &argv, wanted, &provided) == MPI_SUCCESS && provided == wanted);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "death") == 0) {
    test_death();
    return 0;
  }
  test_environment();
  test_messages();
  test_persistent();
  test_collectives();
  test_communicators();
  test_attributes();
  test_errors();
  test_in_place_refused();
  test_truncation();
  test_small_rooms();
  test_synchronous();
  test_partitioned();
  test_sessions();
  test_tool();
  test_small_floats();
  CHECK(MPI_Finalize() == MPI_SUCCESS);
  return 0;
}
