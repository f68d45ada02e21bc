// MPItrampoline's door, by the names and the layout that MPItrampoline has: the library is loaded
// from the path in MPITRAMPOLINE_LIB, as JAX does it, and no MPI is linked.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uintptr_t Handle;
typedef struct {
  size_t internal[3];
  int MPI_SOURCE, MPI_TAG, MPI_ERROR;
} Status;

static int rank, size;
static void* library;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(found != NULL);
  return found;
}
#define NUMBER(name) (*(const int*)symbol(#name))
#define HANDLE(name) (*(const Handle*)symbol(#name))
#define CALL(name, types, ...) CHECK(((int(*) types)symbol(#name))(__VA_ARGS__) == 0)

static void test_constants(void) {
  CHECK(NUMBER(mpiabi_version_major) == 2 && NUMBER(mpiabi_version_minor) >= 10);
  CHECK(*(void* const*)symbol("MPIABI_STATUS_IGNORE") == NULL);
  CHECK(HANDLE(MPIABI_COMM_WORLD) != HANDLE(MPIABI_COMM_SELF));
  ((void (*)(void))symbol("mpiwrapper_export_fortran_constants_"))();
  int version = 0, subversion = 0;
  CALL(MPIABI_Get_version, (int*, int*), &version, &subversion);
  CHECK(version >= 3);
}

static void test_statuses(void) {
  const Handle world = HANDLE(MPIABI_COMM_WORLD), integer = HANDLE(MPIABI_INT);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int sent[2][3] = {{rank, rank + 10, rank + 20}, {rank * 3, rank * 5, rank * 7}}, got[2][4];
  Handle requests[4];
  Status statuses[4], single;
  for (int k = 0; k < 2; ++k) {
    CALL(MPIABI_Irecv,
         (void*, int, Handle, int, int, Handle, Handle*),
         got[k],
         4,
         integer,
         NUMBER(MPIABI_ANY_SOURCE),
         k + 5,
         world,
         &requests[k]);
    CALL(MPIABI_Isend,
         (const void*, int, Handle, int, int, Handle, Handle*),
         sent[k],
         k + 2,
         integer,
         right,
         k + 5,
         world,
         &requests[k + 2]);
  }
  CALL(MPIABI_Waitall, (int, Handle*, Status*), 4, requests, statuses);
  for (int k = 0; k < 2; ++k) {
    int count = -1;
    CHECK(requests[k] == HANDLE(MPIABI_REQUEST_NULL));
    CHECK(statuses[k].MPI_SOURCE == left && statuses[k].MPI_TAG == k + 5);
    CALL(MPIABI_Get_count, (const Status*, Handle, int*), &statuses[k], integer, &count);
    CHECK(count == k + 2 && got[k][1] == (k == 0 ? left + 10 : left * 5));
  }
  CALL(MPIABI_Sendrecv,
       (const void*, int, Handle, int, int, void*, int, Handle, int, int, Handle, Status*),
       sent[0],
       3,
       integer,
       right,
       9,
       got[0],
       4,
       integer,
       left,
       9,
       world,
       &single);
  CHECK(single.MPI_SOURCE == left && single.MPI_TAG == 9 && got[0][2] == left + 20);
  CALL(MPIABI_Sendrecv,
       (const void*, int, Handle, int, int, void*, int, Handle, int, int, Handle, Status*),
       sent[1],
       3,
       integer,
       right,
       9,
       got[0],
       4,
       integer,
       left,
       9,
       world,
       NULL);
  CHECK(got[0][2] == left * 7);

  int fortran[sizeof(Status) / sizeof(int)], elements = -1;
  Status copied;
  CALL(MPIABI_Status_c2f, (const Status*, int*), &single, fortran);
  CALL(MPIABI_Status_f2c, (const int*, Status*), fortran, &copied);
  CALL(MPIABI_Get_elements, (const Status*, Handle, int*), &copied, integer, &elements);
  CHECK(elements == 3 && copied.MPI_TAG == 9);
}

static int is_released;
static int query(void* state, Status* status) {
  CALL(MPIABI_Status_set_elements, (Status*, Handle, int), status, HANDLE(MPIABI_INT), 17);
  CALL(MPIABI_Status_set_cancelled, (Status*, int), status, 0);
  status->MPI_SOURCE = *(int*)state;
  status->MPI_TAG = 77;
  return 0;
}
static int release(void* state) {
  is_released = *(int*)state;
  return 0;
}
static int cancel(void* state, int complete) { return state == NULL && complete; }

static void test_generalized_requests(void) {
  Handle request;
  Status status;
  int state = rank + 40, count = 0;
  CALL(MPIABI_Grequest_start,
       (int (*)(void*, Status*), int (*)(void*), int (*)(void*, int), void*, Handle*),
       query,
       release,
       cancel,
       &state,
       &request);
  CALL(MPIABI_Grequest_complete, (Handle), request);
  CALL(MPIABI_Wait, (Handle*, Status*), &request, &status);
  CALL(MPIABI_Get_count, (const Status*, Handle, int*), &status, HANDLE(MPIABI_INT), &count);
  CHECK(status.MPI_SOURCE == state && status.MPI_TAG == 77 && count == 17 && is_released == state);
}

static void test_collectives(void) {
  Handle comm;
  double own[2] = {rank + 0.5, rank * 2.0}, sum[2] = {0, 0};
  CALL(MPIABI_Comm_split, (Handle, int, int, Handle*), HANDLE(MPIABI_COMM_WORLD), 0, -rank, &comm);
  const int number = ((int (*)(Handle))symbol("MPIABI_Comm_c2f"))(comm);
  CHECK(((Handle (*)(int))symbol("MPIABI_Comm_f2c"))(number) == comm);
  CALL(MPIABI_Allreduce,
       (const void*, void*, int, Handle, Handle, Handle),
       own,
       sum,
       2,
       HANDLE(MPIABI_DOUBLE),
       HANDLE(MPIABI_SUM),
       comm);
  CHECK(sum[0] == size * (size - 1) / 2.0 + size * 0.5 && sum[1] == size * (size - 1.0));
  CALL(MPIABI_Comm_free, (Handle*), &comm);

  Handle pair;
  const int lengths[2] = {1, 1};
  const intptr_t places[2] = {0, 8};
  const Handle types[2] = {HANDLE(MPIABI_INT), HANDLE(MPIABI_DOUBLE)};
  int bytes = 0;
  CALL(MPIABI_Type_struct,
       (int, const int*, const intptr_t*, const Handle*, Handle*),
       2,
       lengths,
       places,
       types,
       &pair);
  CALL(MPIABI_Type_size, (Handle, int*), pair, &bytes);
  CHECK(bytes == 12);
}

int main(void) {
  library = dlopen(getenv("MPITRAMPOLINE_LIB"), RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  int level = -1;
  CALL(MPIABI_Init_thread,
       (int*, char***, int, int*),
       NULL,
       NULL,
       NUMBER(MPIABI_THREAD_MULTIPLE),
       &level);
  CHECK(level == NUMBER(MPIABI_THREAD_MULTIPLE));
  CALL(MPIABI_Comm_rank, (Handle, int*), HANDLE(MPIABI_COMM_WORLD), &rank);
  CALL(MPIABI_Comm_size, (Handle, int*), HANDLE(MPIABI_COMM_WORLD), &size);
  test_constants();
  test_statuses();
  test_generalized_requests();
  test_collectives();
  CALL(MPIABI_Finalize, (void));
  return 0;
}
