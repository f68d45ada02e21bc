// Programs that go on until a rank is killed, for killed.py: collectives, a farm, windows, files,
// and files in two phases.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void begun(long round) {
  if (rank != 0 || round != 0) return;
  printf("begun\n");
  fflush(stdout);
}

static void collectives(const char* unused) {
  enum { kCount = 20000 };
  static double out[kCount], in[kCount];
  (void)unused;
  for (long round = 0;; ++round) {
    const int count = round % 3 ? 1 : kCount;
    OK(MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Bcast(out, count, MPI_DOUBLE, (int)(round % size), MPI_COMM_WORLD));
    MPI_Request request;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    begun(round);
  }
}

// Rank 0 sends a task to whoever asks.
static void farm(const char* unused) {
  (void)unused;
  for (long round = 0;; ++round) {
    MPI_Status status;
    int task = (int)round;
    if (rank == 0) {
      OK(MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status));
      OK(MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD));
    } else {
      OK(MPI_Send(&task, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
      OK(MPI_Recv(&task, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &status));
    }
    begun(round);
  }
}

static void windows(const char* unused) {
  (void)unused;
  int* part = NULL;
  int own[4] = {0};
  MPI_Win shared, brought;
  OK(MPI_Win_allocate(sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &shared));
  OK(MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &brought));
  const int one = 1, next = (rank + 1) % size;
  for (long round = 0;; ++round) {
    MPI_Win const win = round % 2 ? shared : brought;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&one, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    begun(round);
  }
}

static void files(const char* path) {
  enum { kCount = 5000 };
  static int out[kCount];
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD,
                   path,
                   MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                   MPI_INFO_NULL,
                   &file));
  OK(MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL));
  OK(MPI_File_set_atomicity(file, 1));
  for (long round = 0;; ++round) {
    const MPI_Offset at = (MPI_Offset)rank * (MPI_Offset)sizeof out;
    OK(MPI_File_write_at_all(file, at, out, kCount, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_write_shared(file, out, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_ordered(file, out, 1, MPI_INT, MPI_STATUS_IGNORE));
    begun(round);
  }
}

// Runs of all ranks lie in turns, and are moved in several rounds of each call.
static void phases(const char* path) {
  enum { kCount = 5000 };
  static int out[kCount], in[kCount];
  MPI_File file;
  MPI_Info info;
  MPI_Datatype view;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "romio_cb_write", "enable"));
  OK(MPI_Info_set(info, "romio_cb_read", "enable"));
  OK(MPI_Info_set(info, "cb_buffer_size", "4096"));
  OK(MPI_File_open(MPI_COMM_WORLD,
                   path,
                   MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                   info,
                   &file));
  OK(MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL));
  OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * size, &view));
  OK(MPI_Type_commit(&view));
  OK(MPI_File_set_view(
      file, (MPI_Offset)sizeof(int) * rank, MPI_INT, view, "native", MPI_INFO_NULL));
  for (long round = 0;; ++round) {
    for (int i = 0; i < kCount; ++i) out[i] = (int)round * 7 + i * 3 + rank;
    OK(MPI_File_write_at_all(file, 0, out, kCount, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at_all(file, 0, in, kCount, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(in, out, sizeof in) == 0);
    begun(round);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(const char*);
  } programs[] = {{"collectives", collectives},
                  {"farm", farm},
                  {"windows", windows},
                  {"files", files},
                  {"phases", phases}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; argc > 2 && i < 5; ++i) {
    if (strcmp(argv[1], programs[i].name) == 0) programs[i].run(argv[2]);
  }
  return 1;
}
