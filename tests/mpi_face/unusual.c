// Unusual uses of MPI's calls, as a table of cases. They do the same under MPICH, for which
// OTHER_MPI leaves out what it does not have.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

// --- Attributes ----------------------------------------------------------------------------------

static int dropped[8], drops;
static int drop(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm, (void)keyval, (void)extra;
  dropped[drops++ % 8] = *(int*)value;
  return MPI_SUCCESS;
}
static int refuse_to_copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)keyval, (void)extra, (void)in, (void)out;
  *flag = 1;
  return MPI_ERR_OTHER;
}
static int refuse_to_copy_type(
    MPI_Datatype type, int keyval, void* extra, void* in, void* out, int* flag) {
  (void)type, (void)keyval, (void)extra, (void)in, (void)out;
  *flag = 1;
  return MPI_ERR_OTHER;
}

// Attributes go in the reverse order of their setting, whatever the order of their keys.
static void attributes_go_in_reverse(void) {
  static int values[3] = {0, 1, 2};
  static const int order[3] = {2, 0, 1};
  int keys[3], freed;
  MPI_Comm comm;
  CHECK(MPI_Comm_dup(MPI_COMM_SELF, &comm) == MPI_SUCCESS);
  for (int i = 0; i < 3; ++i) MPI_Comm_create_keyval(MPI_COMM_DUP_FN, drop, &keys[i], NULL);
  for (int i = 0; i < 3; ++i) MPI_Comm_set_attr(comm, keys[order[i]], &values[order[i]]);
  drops = 0;
  freed = keys[0];
  CHECK(MPI_Comm_free_keyval(&keys[0]) == MPI_SUCCESS && keys[0] == MPI_KEYVAL_INVALID);
  // An attribute keeps its key in use.
  int* found = NULL;
  int flag = 0;
  CHECK(MPI_Comm_get_attr(comm, freed, &found, &flag) == MPI_SUCCESS && flag);
  CHECK(found == &values[0]);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
  CHECK(drops == 3 && dropped[0] == 1 && dropped[1] == 0 && dropped[2] == 2);
  MPI_Comm_free_keyval(&keys[1]);
  MPI_Comm_free_keyval(&keys[2]);
}

static void failed_copies_leave_nothing(void) {
  static int value = 5;
  int key, type_key;
  MPI_Comm comm, copy = MPI_COMM_SELF;
  MPI_Datatype type, type_copy = MPI_INT;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_create_keyval(refuse_to_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, &value);
  CHECK(MPI_Comm_dup(comm, &copy) != MPI_SUCCESS && copy == MPI_COMM_NULL);
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);

  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_create_keyval(refuse_to_copy_type, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
  MPI_Type_set_attr(type, type_key, &value);
  CHECK(MPI_Type_dup(type, &type_copy) != MPI_SUCCESS && type_copy == MPI_DATATYPE_NULL);
  MPI_Type_free(&type);
  MPI_Type_free_keyval(&type_key);
}

// --- Errors --------------------------------------------------------------------------------------

static int handled;
static void forgive(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  *code = MPI_SUCCESS;
}

static void handlers_may_change_the_code(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(forgive, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  handled = 0;
  CHECK(MPI_Send(NULL, 0, MPI_INT, 5, 0, comm) == MPI_SUCCESS && handled == 1);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

// The errors of requests go to the handler of their communicator, here of another than the world's.
static void errors_of_requests_have_a_handler(void) {
  MPI_Comm comm;
  MPI_Errhandler kept;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &kept);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  int sent[4] = {1, 2, 3, 4}, got[2];
  MPI_Request requests[2];
#ifndef OTHER_MPI  // where several requests are their own affair
  MPI_Status statuses[2];
  MPI_Irecv(got, 2, MPI_INT, 0, 0, comm, &requests[0]);
  MPI_Isend(sent, 4, MPI_INT, 0, 0, comm, &requests[1]);
  CHECK(error_class(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
#endif
  MPI_Irecv(got, 2, MPI_INT, 0, 0, comm, &requests[0]);
  MPI_Isend(sent, 4, MPI_INT, 0, 0, comm, &requests[1]);
  CHECK(error_class(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
  CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, kept);
  MPI_Errhandler_free(&kept);
  MPI_Comm_free(&comm);
}

// Programs from before MPI 4 set the world's handler for errors that belong to no object.
static void errors_of_no_object(void) {
  int size_of_type = 0;
  CHECK(error_class(MPI_Type_size(MPI_DATATYPE_NULL, &size_of_type)) == MPI_ERR_TYPE);
}

static void null_places(void) {
  MPI_Group group;
  CHECK(error_class(MPI_Comm_size(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  CHECK(error_class(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL)) == MPI_ERR_ARG);
  CHECK(error_class(MPI_Comm_group(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  CHECK(error_class(MPI_Type_contiguous(2, MPI_INT, NULL)) == MPI_ERR_ARG);
  CHECK(error_class(MPI_Type_size(MPI_INT, NULL)) == MPI_ERR_ARG);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  CHECK(error_class(MPI_Group_rank(group, NULL)) == MPI_ERR_ARG);
  CHECK(error_class(MPI_Group_union(group, group, NULL)) == MPI_ERR_ARG);
  MPI_Group_free(&group);
}

// --- Messages ------------------------------------------------------------------------------------

static void a_flush_that_waits_in_its_request(void) {
  static char buffer[4096 + MPI_BSEND_OVERHEAD], sent[4096], got[4096];
  int bytes;
  void* detached;
  MPI_Request request;
  memset(sent, rank + 1, sizeof sent);
  MPI_Buffer_attach(buffer, sizeof buffer);
  CHECK(MPI_Bsend(sent, sizeof sent, MPI_BYTE, rank, 6, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Buffer_iflush(&request) == MPI_SUCCESS);
  CHECK(MPI_Recv(got, sizeof got, MPI_BYTE, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == 0);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && got[4095] == (char)(rank + 1));
  CHECK(MPI_Buffer_detach(&detached, &bytes) == MPI_SUCCESS && detached == buffer);
}

// --- Generalized requests ------------------------------------------------------------------------

static int frees_of[3];
static int query(void* extra, MPI_Status* status) {
  (void)extra;
  MPI_Status_set_elements(status, MPI_INT, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}
static int free_extra(void* extra) {
  ++frees_of[*(int*)extra];
  return MPI_SUCCESS;
}
static int cancel_nothing(void* extra, int is_complete) {
  (void)extra, (void)is_complete;
  return MPI_SUCCESS;
}

// A request may be freed before the program completes it, and is in use until then.
static void generalized_freed_and_completed(void) {
  static int numbers[3] = {0, 1, 2};
  MPI_Request freed[3], copies[3], later;
  memset(frees_of, 0, sizeof frees_of);
  for (int i = 0; i < 3; ++i) {
    OK(MPI_Grequest_start(query, free_extra, cancel_nothing, &numbers[i], &freed[i]));
    copies[i] = freed[i];
  }
  OK(MPI_Request_free(&freed[0]));
  CHECK(freed[0] == MPI_REQUEST_NULL && frees_of[0] == 0);
  int got = -1, flag = -1;
  OK(MPI_Irecv(&got, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &later));  // has a handle of its own
  OK(MPI_Grequest_complete(copies[0]));
  CHECK(frees_of[0] == 1);
  OK(MPI_Grequest_complete(copies[1]));
  CHECK(frees_of[1] == 0);
  OK(MPI_Request_free(&freed[1]));
  CHECK(frees_of[1] == 1);
  OK(MPI_Grequest_complete(copies[2]));
  OK(MPI_Wait(&freed[2], MPI_STATUS_IGNORE));
  CHECK(frees_of[0] == 1 && frees_of[1] == 1 && frees_of[2] == 1);
  OK(MPI_Test(&later, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_SELF));
  OK(MPI_Wait(&later, MPI_STATUS_IGNORE));
  CHECK(got == rank);
}

// --- Disconnecting -------------------------------------------------------------------------------

// Rank 0 disconnects from a communicator on which rank 1 is late, and then all of its calls there
// have ended.

static void disconnecting_waits_for_buffered_sends(void) {
  enum { kBytes = 1 << 20, kRoom = kBytes + MPI_BSEND_OVERHEAD };
  static char buffer[kRoom], sent[kBytes], got[kBytes];
  MPI_Comm comm, other;
  if (size < 2) return;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  if (rank == 0) {
    int bytes;
    void* detached;
    memset(sent, 5, sizeof sent);
    OK(MPI_Buffer_attach(buffer, kRoom));
    OK(MPI_Bsend(sent, kBytes, MPI_BYTE, 1, 6, comm));
    OK(MPI_Comm_attach_buffer(comm, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Comm_disconnect(&comm));
    OK(MPI_Bsend(sent, kBytes, MPI_BYTE, 1, 6, other));  // there is room again
    OK(MPI_Buffer_detach(&detached, &bytes));
  } else {
    if (rank == 1) {
      usleep(100000);
      OK(MPI_Recv(got, kBytes, MPI_BYTE, 0, 6, comm, MPI_STATUS_IGNORE));
      CHECK(got[0] == 5 && got[kBytes - 1] == 5);
    }
    OK(MPI_Comm_disconnect(&comm));
    if (rank == 1) OK(MPI_Recv(got, kBytes, MPI_BYTE, 0, 6, other, MPI_STATUS_IGNORE));
  }
  OK(MPI_Comm_disconnect(&other));
}

static void disconnecting_waits_for_requests(void) {
  int out[2] = {31, 32}, got[2] = {-1, -1}, flags[2] = {0, 0};
  MPI_Comm comm, made;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (size < 2) return;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  if (rank == 0) {
    OK(MPI_Precv_init(got, 2, 1, MPI_INT, 1, 6, comm, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Start(&requests[1]));
  } else {
    usleep(100000);
  }
  OK(MPI_Comm_idup(comm, &made, &requests[0]));
  if (rank == 1) {
    OK(MPI_Psend_init(out, 2, 1, MPI_INT, 0, 6, comm, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Start(&requests[1]));
    OK(MPI_Pready_range(0, 1, requests[1]));
  }
  OK(MPI_Comm_disconnect(&comm));
  for (int i = 0; i < 2; ++i) OK(MPI_Test(&requests[i], &flags[i], MPI_STATUS_IGNORE));
  CHECK(flags[0] && flags[1] && (rank != 0 || got[1] == 32));
  if (rank < 2) OK(MPI_Request_free(&requests[1]));
  OK(MPI_Comm_disconnect(&made));
}

// --- Persistent requests -------------------------------------------------------------------------

static void persistent_calls_in_any_order(void) {
  int value = rank == 0 ? 42 : -1, sum = 0;
  MPI_Request requests[3];
  MPI_Bcast_init(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) CHECK(MPI_Start(&requests[(rank + i) % 3]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(value == 42 && sum == size * (size - 1) / 2);
    sum = 0;
  }
  for (int i = 0; i < 3; ++i) CHECK(MPI_Request_free(&requests[i]) == MPI_SUCCESS);
}

static void freed_while_requests_have_them(void) {
  int sent[4] = {rank, -1, rank + 1, -1}, got[4] = {0, 0, 0, 0}, sum[4] = {0, 0, 0, 0};
  MPI_Datatype pairs;
  MPI_Comm comm;
  MPI_Request requests[2];
  MPI_Type_vector(2, 1, 2, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Send_init(sent, 1, pairs, 0, 7, comm, &requests[0]);
  MPI_Recv_init(got, 1, pairs, 0, 7, comm, &requests[1]);
  MPI_Type_free(&pairs);
  for (int round = 0; round < 2; ++round) {
    CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(got[0] == rank && got[1] == 0 && got[2] == rank + 1 && got[3] == 0);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_free(&comm);

  MPI_Datatype types[8];
  int counts[8], places[8];
  for (int i = 0; i < 8; ++i) {
    MPI_Type_contiguous(1, MPI_INT, &types[i]);
    MPI_Type_commit(&types[i]);
    counts[i] = i < size ? 1 : 0;
    places[i] = i * (int)sizeof(int);
  }
  int out[8], in[8];
  for (int i = 0; i < 8; ++i) out[i] = rank * 10 + i;
  if (size <= 8) {
    MPI_Alltoallw_init(out,
                       counts,
                       places,
                       types,
                       in,
                       counts,
                       places,
                       types,
                       MPI_COMM_WORLD,
                       MPI_INFO_NULL,
                       &requests[0]);
    for (int i = 0; i < 8; ++i) {
      MPI_Type_free(&types[i]);
      counts[i] = -7;
    }
    CHECK(MPI_Start(&requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < size; ++i) CHECK(in[i] == i * 10 + rank);
    MPI_Request_free(&requests[0]);
  }
  (void)sum;
}

// --- Communicators -------------------------------------------------------------------------------

// Ranks duplicate two communicators in different orders, and send messages meanwhile.
static void duplicates_in_any_order(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Comm from[2], made[2];
  MPI_Request requests[2];
  int value = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &from[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &from[1]);
  for (int i = 0; i < 2; ++i) {
    const int k = (rank + i) % 2;
    CHECK(MPI_Comm_idup(from[k], &made[k], &requests[k]) == MPI_SUCCESS);
    MPI_Sendrecv(&rank,
                 1,
                 MPI_INT,
                 right,
                 8,
                 &value,
                 1,
                 MPI_INT,
                 left,
                 8,
                 MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK(value == left);
  }
  CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    int result = -1, sum = 0;
    CHECK(MPI_Comm_compare(from[i], made[i], &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
    CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made[i]) == MPI_SUCCESS);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Comm_free(&made[i]);
    MPI_Comm_free(&from[i]);
  }
}

static void balanced_extents(void) {
  static const int cases[][5] = {{72, 2, 9, 8, 0},
                                 {180, 2, 15, 12, 0},
                                 {504, 2, 24, 21, 0},
                                 {60, 3, 5, 4, 3},
                                 {1, 2, 1, 1, 0},
                                 {97, 2, 97, 1, 0}};
  for (int i = 0; i < 6; ++i) {
    int dims[3] = {0, 0, 0};
    CHECK(MPI_Dims_create(cases[i][0], cases[i][1], dims) == MPI_SUCCESS);
    CHECK(memcmp(dims, cases[i] + 2, sizeof dims) == 0);
  }
  // Many divisors, and large primes: no search of all products or of all numbers.
  static const int large[][8] = {{1048576, 6, 16, 16, 8, 8, 8, 8},
                                 {720720, 9, 13, 11, 7, 5, 4, 3},
                                 {735134400, 3, 918, 910, 880, 0, 0, 0},
                                 {2147483647, 3, 2147483647, 1, 1, 0, 0, 0},
                                 {999983, 2, 999983, 1, 0, 0, 0, 0}};
  for (int i = 0; i < 5; ++i) {
    int dims[9] = {0};
    CHECK(MPI_Dims_create(large[i][0], large[i][1], dims) == MPI_SUCCESS);
    CHECK(memcmp(dims, large[i] + 2, 6 * sizeof *dims) == 0);
  }
  int given[3] = {0, 7, 0};
  CHECK(MPI_Dims_create(7 * 72, 3, given) == MPI_SUCCESS);
  CHECK(given[0] == 9 && given[1] == 7 && given[2] == 8);
}

// --- Types and values ----------------------------------------------------------------------------

static void elements_of_a_status(void) {
  MPI_Datatype type, parts[2] = {MPI_CHAR, MPI_DOUBLE};
  const int lengths[2] = {1, 2};
  const MPI_Aint places[2] = {0, 8};
  MPI_Status status;
  int count = -1, elements = -1;
  memset(&status, 0, sizeof status);
  MPI_Type_create_struct(2, lengths, places, parts, &type);
  MPI_Type_commit(&type);
  CHECK(MPI_Status_set_elements(&status, type, 3) == MPI_SUCCESS);
  CHECK(MPI_Get_elements(&status, type, &elements) == MPI_SUCCESS && elements == 3);
  CHECK(MPI_Get_count(&status, type, &count) == MPI_SUCCESS && count == 1);
  CHECK(MPI_Status_set_elements(&status, type, 5) == MPI_SUCCESS);
  CHECK(MPI_Get_elements(&status, type, &elements) == MPI_SUCCESS && elements == 5);
  CHECK(MPI_Get_count(&status, type, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
  MPI_Type_free(&type);
}

static void reductions_of_characters(void) {
  char own = (char)(rank + 3), most = 0;
  CHECK(MPI_Allreduce(&own, &most, 1, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(most == size + 2);
}

// Elements that go backwards in memory, and a type of one byte more than its data.
static void extents_below_zero(void) {
  MPI_Datatype backwards;
  int sent[3] = {rank, rank + 10, rank + 20}, got[3] = {-1, -1, -1};
  MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &backwards);
  MPI_Type_commit(&backwards);
  MPI_Sendrecv(
      &sent[2], 3, backwards, rank, 9, got, 3, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(got[0] == rank + 20 && got[1] == rank + 10 && got[2] == rank);
  int all[3] = {0, 0, 0};
  MPI_Bcast(rank == 0 ? &sent[2] : &all[2], 3, backwards, 0, MPI_COMM_WORLD);
  if (rank != 0) CHECK(all[0] == 0 && all[1] == 10 && all[2] == 20);
  MPI_Type_free(&backwards);
}

static void names_of_process_sets(void) {
  MPI_Session session;
  MPI_Group group;
  int members = 0;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  CHECK(MPI_Group_from_session_pset(session, "mpi://world", &group) == MPI_SUCCESS);
  CHECK(MPI_Group_size(group, &members) == MPI_SUCCESS && members == size);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
}

// MPICH's interface has statuses of Fortran's.
static void statuses_of_fortran(void) {
#if MPI_F_STATUS_SIZE == 5
  MPI_Status status, back;
  MPI_F08_status newer;
  MPI_Fint numbers[MPI_F_STATUS_SIZE] = {0}, others[MPI_F_STATUS_SIZE] = {0};
  int got = -1, count = -1;
  CHECK(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 6, &got, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &status) ==
        MPI_SUCCESS);
  CHECK(MPI_Status_c2f(&status, numbers) == MPI_SUCCESS);
  CHECK(numbers[MPI_F_SOURCE] == 0 && numbers[MPI_F_TAG] == 6);
  CHECK(MPI_Status_f2f08(numbers, &newer) == MPI_SUCCESS);
  CHECK(MPI_Status_f082f(&newer, others) == MPI_SUCCESS);
  CHECK(MPI_Status_f2c(others, &back) == MPI_SUCCESS && back.MPI_TAG == 6);
  CHECK(MPI_Get_count(&back, MPI_INT, &count) == MPI_SUCCESS && count == 1);
  CHECK(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) != MPI_SUCCESS);
  CHECK(MPI_F08_STATUS_IGNORE != NULL && MPI_F08_STATUS_IGNORE != MPI_F08_STATUSES_IGNORE);
#endif
}

static void names_from_before_mpi_3(void) {
#ifndef OTHER_MPI
  MPI_Datatype type, parts[2] = {MPI_INT, MPI_DOUBLE};
  int lengths[2] = {1, 1};
  struct {
    int i;
    double d;
  } value;
  MPI_Aint base, places[2], extent = 0, lb = -1, ub = -1;
  CHECK(MPI_Address(&value, &base) == MPI_SUCCESS);
  CHECK(MPI_Address(&value.i, &places[0]) == MPI_SUCCESS);
  CHECK(MPI_Address(&value.d, &places[1]) == MPI_SUCCESS);
  for (int i = 0; i < 2; ++i) places[i] -= base;
  CHECK(MPI_Type_struct(2, lengths, places, parts, &type) == MPI_SUCCESS);
  CHECK(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == sizeof value);
  CHECK(MPI_Type_lb(type, &lb) == MPI_SUCCESS && lb == 0);
  CHECK(MPI_Type_ub(type, &ub) == MPI_SUCCESS && ub == sizeof value);
  MPI_Type_free(&type);
  CHECK(MPI_Type_hvector(2, 1, 12, MPI_INT, &type) == MPI_SUCCESS);
  CHECK(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == 16);
  MPI_Type_free(&type);
  CHECK(MPI_Type_hindexed(2, lengths, places, MPI_INT, &type) == MPI_SUCCESS);
  CHECK(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == 12);
  MPI_Type_free(&type);
  MPI_Errhandler handler;
  CHECK(MPI_Errhandler_create(forgive, &handler) == MPI_SUCCESS);
  CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
#endif
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"attributes go in reverse", attributes_go_in_reverse},
    {"failed copies leave nothing", failed_copies_leave_nothing},
    {"handlers may change the code", handlers_may_change_the_code},
    {"errors of requests have a handler", errors_of_requests_have_a_handler},
    {"errors of no object", errors_of_no_object},
    {"null places", null_places},
    {"a flush that waits in its request", a_flush_that_waits_in_its_request},
    {"generalized freed and completed", generalized_freed_and_completed},
    {"disconnecting waits for buffered sends", disconnecting_waits_for_buffered_sends},
    {"disconnecting waits for requests", disconnecting_waits_for_requests},
    {"persistent calls in any order", persistent_calls_in_any_order},
    {"freed while requests have them", freed_while_requests_have_them},
    {"duplicates in any order", duplicates_in_any_order},
    {"balanced extents", balanced_extents},
    {"elements of a status", elements_of_a_status},
    {"reductions of characters", reductions_of_characters},
    {"extents below zero", extents_below_zero},
    {"names of process sets", names_of_process_sets},
    {"statuses of Fortran", statuses_of_fortran},
    {"names from before MPI 3", names_from_before_mpi_3},
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 1) fprintf(stderr, "rank %d: %s\n", rank, cases[i].name);
    cases[i].run();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
