// Collective reads and writes of files in two phases, and with each rank's own calls, on up to four
// ranks. The path is the first argument; with "hosts" behind it, the ranks are on several hosts.
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { kRanks = 4, kImage = 1 << 15, kMost = 1 << 13 };

static const char* path;

// The bytes of a view: where each one is in the file, as this program computes it.
typedef struct {
  int count;
  int places[kMost];
} Places;
static Places places[kRanks];

static void add(int of, int place, int bytes) {
  for (int i = 0; i < bytes; ++i) places[of].places[places[of].count++] = place + i;
}

// --- Views: each fills `places` of a rank, and returns that rank's file type ---------------------

static MPI_Datatype placed(MPI_Datatype type, MPI_Aint at) {
  const int one = 1;
  MPI_Datatype made;
  OK(MPI_Type_create_hindexed(1, &one, &at, type, &made));
  OK(MPI_Type_free(&type));
  return made;
}
static MPI_Datatype vector_view(int of, int blocks, int block, int stride, int first) {
  for (int i = 0; i < blocks; ++i) add(of, first + i * stride, block);
  MPI_Datatype made;
  OK(MPI_Type_vector(blocks, block, stride, MPI_BYTE, &made));
  return placed(made, first);
}
static MPI_Datatype cyclic(int of) { return vector_view(of, 30, 13, 13 * size, 13 * of); }
static MPI_Datatype with_holes(int of) { return vector_view(of, 40, 3, 6 * size + 3, 6 * of); }
static MPI_Datatype contiguous(int of) { return vector_view(of, 1, 4000, 4000, 4000 * of); }
static MPI_Datatype same_for_all(int of) { return vector_view(of, 50, 7, 11, 5); }
static MPI_Datatype far_apart(int of) { return vector_view(of, 2, 9, 20000, 3000 * of); }
static MPI_Datatype last_is_empty(int of) {
  MPI_Datatype const made = cyclic(of);
  if (of == size - 1) places[of].count = 0;
  return made;
}
static MPI_Datatype first_is_long(int of) {
  return of == 0 ? vector_view(of, 1, 4000, 4000, 0)
                 : vector_view(of, 30, 5, 5 * size, 4000 + 5 * of);
}
// Columns of a plane.
static MPI_Datatype plane(int of) {
  const int sizes[2] = {180, 10 * size}, subsizes[2] = {180, 10}, starts[2] = {0, 10 * of};
  for (int row = 0; row < 180; ++row) add(of, (row * 10 * size + 10 * of) * 4, 40);
  MPI_Datatype made;
  OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &made));
  return made;
}
// The inner part of a volume.
static MPI_Datatype volume(int of) {
  const int sizes[3] = {6, 5, 4 * size}, subsizes[3] = {4, 3, 4}, starts[3] = {1, 1, 4 * of};
  for (int z = 1; z < 5; ++z) {
    for (int y = 1; y < 4; ++y) add(of, ((z * 5 + y) * 4 * size + 4 * of) * 2, 8);
  }
  MPI_Datatype made;
  OK(MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_SHORT, &made));
  return made;
}
static MPI_Datatype distributed(int of) {
  const int sizes[2] = {15, 7 * size}, parts[2] = {1, size}, blocks[2] = {3, 2};
  const int ways[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
  for (int row = 0; row < sizes[0]; ++row) {
    for (int column = 0; column < sizes[1]; ++column) {
      if (column / 2 % size == of) add(of, (row * sizes[1] + column) * 4, 4);
    }
  }
  MPI_Datatype made;
  OK(MPI_Type_create_darray(size, of, 2, sizes, ways, blocks, parts, MPI_ORDER_C, MPI_INT, &made));
  return made;
}
// Pieces of one to five bytes in turns, with gaps of none to two bytes.
static MPI_Datatype indexed(int of) {
  int lengths[200], starts[200], pieces = 0, place = 3;
  for (int i = 0; i < 200; ++i) {
    const int length = i % 5 + 1;
    if (i % size == of) {
      add(of, place, length);
      lengths[pieces] = length;
      starts[pieces++] = place;
    }
    place += length + i % 3;
  }
  MPI_Datatype made;
  OK(MPI_Type_indexed(pieces, lengths, starts, MPI_BYTE, &made));
  return made;
}

static const struct {
  const char* name;
  MPI_Datatype (*of_rank)(int);
} views[] = {{"cyclic", cyclic},
             {"with holes", with_holes},
             {"contiguous", contiguous},
             {"same for all", same_for_all},
             {"far apart", far_apart},
             {"last is empty", last_is_empty},
             {"first is long", first_is_long},
             {"plane", plane},
             {"volume", volume},
             {"distributed", distributed},
             {"indexed", indexed}};

static const struct {
  const char *way, *buffer;
} hints[] = {
    {"disable", "4096"}, {"enable", "4096"}, {"enable", "1048576"}, {"automatic", "65536"}};

// --- The file ------------------------------------------------------------------------------------

static MPI_File opened(const char* name, const char* way, const char* buffer) {
  MPI_Info info;
  MPI_File file;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "romio_cb_read", way));
  OK(MPI_Info_set(info, "romio_cb_write", way));
  OK(MPI_Info_set(info, "cb_buffer_size", buffer));
  OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
  OK(MPI_Info_free(&info));
  return file;
}
static void set_view(MPI_File file, MPI_Offset at, MPI_Datatype type) {
  OK(MPI_File_set_view(file, at, MPI_BYTE, type, "native", MPI_INFO_NULL));
}
static int counted(const MPI_Status* status) {
  int count = -1;
  OK(MPI_Get_count(status, MPI_BYTE, &count));
  return count;
}
static unsigned char value(int of, int i) { return (unsigned char)(of * 61 + i * 7 + i / 251 + 1); }
static unsigned char before(int place) { return (unsigned char)(place * 3 + 5); }

// The first rank makes the file, by calls of the system, and cuts it at a length.
static void make_file(off_t at, off_t length) {
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    unsigned char image[kImage];
    for (int i = 0; i < kImage; ++i) image[i] = before(i);
    const int made = open(path, O_WRONLY | O_CREAT, 0666);
    CHECK(made >= 0 && pwrite(made, image, kImage, at) == kImage);
    CHECK(ftruncate(made, at + length) == 0 && close(made) == 0);
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}
static void read_image(unsigned char* image, off_t at) {
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0 && pread(file, image, kImage, at) == kImage && close(file) == 0);
}

// Each byte is as before, or that of a rank whose view has it.
static void check_image(off_t at) {
  static int index_of[kRanks][kImage];
  unsigned char image[kImage];
  OK(MPI_Barrier(MPI_COMM_WORLD));
  read_image(image, at);
  memset(index_of, -1, sizeof index_of);
  for (int of = 0; of < size; ++of) {
    for (int i = 0; i < places[of].count; ++i) index_of[of][places[of].places[i]] = i;
  }
  for (int place = 0; place < kImage; ++place) {
    int is_written = 0, is_right = 0;
    for (int of = 0; of < size; ++of) {
      if (index_of[of][place] < 0) continue;
      is_written = 1;
      is_right = is_right || image[place] == value(of, index_of[of][place]);
    }
    CHECK(is_written ? is_right : image[place] == before(place));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

// --- Views, written and read ---------------------------------------------------------------------

static void write_view(MPI_File file) {
  const int count = places[rank].count, half = count / 2 + (rank < count / 2 ? rank : 0);
  unsigned char own[kMost];
  MPI_Status status;
  for (int i = 0; i < count; ++i) own[i] = value(rank, i);
  OK(MPI_File_write_at_all(file, 0, own, half, MPI_BYTE, &status));
  CHECK(counted(&status) == half);
  OK(MPI_File_seek(file, half, MPI_SEEK_SET));
  OK(MPI_File_write_all_begin(file, own + half, count - half, MPI_BYTE));
  OK(MPI_File_write_all_end(file, own + half, &status));
  CHECK(counted(&status) == count - half);
  MPI_Offset position = -1;
  OK(MPI_File_get_position(file, &position));
  CHECK(position == count);
}

// Reads from the byte `from` on, in a file of this length.
static void read_view(MPI_File file, off_t at, int from, int length) {
  unsigned char found[kMost], image[kImage];
  make_file(at, length);
  memset(found, 0x55, sizeof found);
  memset(image, 0, sizeof image);
  for (int i = 0; i < kImage; ++i) image[i] = before(i);
  const int count = places[rank].count < from ? 0 : places[rank].count - from;
  int expected = 0;
  while (expected < count && places[rank].places[from + expected] < length) ++expected;
  MPI_Status status;
  OK(MPI_File_read_at_all(file, from, found, count, MPI_BYTE, &status));
  CHECK(counted(&status) == expected);
  for (int i = 0; i < kMost; ++i) {
    CHECK(found[i] == (i < expected ? image[places[rank].places[from + i]] : 0x55));
  }
}

static void test_views(off_t at) {
  const int lengths[] = {kImage, 20001, 4096, 4001, 1000, 701, 14, 0};
  for (size_t v = 0; v < sizeof views / sizeof *views; ++v) {
    MPI_Datatype types[kRanks];
    memset(places, 0, sizeof places);
    for (int of = 0; of < size; ++of) types[of] = views[v].of_rank(of);
    OK(MPI_Type_commit(&types[rank]));
    for (size_t h = 0; h < sizeof hints / sizeof *hints; ++h) {
      make_file(at, kImage);
      MPI_File file = opened(path, hints[h].way, hints[h].buffer);
      set_view(file, at, types[rank]);
      write_view(file);
      check_image(at);
      for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
        read_view(file, at, i % 2 ? 17 : 0, lengths[i]);
      }
      OK(MPI_File_close(&file));
    }
    for (int of = 0; of < size; ++of) OK(MPI_Type_free(&types[of]));
  }
}

// Elements of memory with gaps, in external32: a long has four bytes in the file, big-endian.
static void test_external32(void) {
  enum { kLongs = 100 };
  for (size_t h = 0; h < sizeof hints / sizeof *hints; ++h) {
    make_file(0, 0);
    MPI_File file = opened(path, hints[h].way, hints[h].buffer);
    MPI_Datatype spread, filetype;
    OK(MPI_Type_vector(kLongs, 1, 2, MPI_LONG, &spread));
    OK(MPI_Type_create_resized(MPI_LONG, 0, (MPI_Aint)(4 * size), &filetype));
    OK(MPI_Type_commit(&spread));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_File_set_view(file, 4 * rank, MPI_LONG, filetype, "external32", MPI_INFO_NULL));
    long out[2 * kLongs], in[2 * kLongs];
    for (int i = 0; i < 2 * kLongs; ++i) out[i] = rank * 70000 + i, in[i] = -1;
    MPI_Status status;
    OK(MPI_File_write_all(file, out, 1, spread, &status));
    CHECK(counted(&status) == kLongs * (int)sizeof(long));
    unsigned char image[4 * kLongs * kRanks];
    const int bare = open(path, O_RDONLY);
    CHECK(read(bare, image, sizeof image) == 4 * kLongs * size && close(bare) == 0);
    for (int i = 0; i < kLongs * size; ++i) {
      const unsigned char* const b = image + 4 * i;
      CHECK((b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3]) == i % size * 70000 + i / size * 2);
    }
    OK(MPI_File_read_at_all(file, 1, in, 1, spread, &status));
    CHECK(counted(&status) == (kLongs - 1) * (int)sizeof(long));
    for (int i = 0; i < 2 * kLongs - 2; ++i) CHECK(in[i] == (i % 2 ? -1 : out[i + 2]));
    OK(MPI_Type_free(&spread));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_close(&file));
  }
}

// Rank r writes and reads r + 1 blocks at the shared position, in a view that is the same for all.
static void test_ordered(void) {
  for (size_t h = 0; h < sizeof hints / sizeof *hints; ++h) {
    make_file(0, kImage);
    memset(places, 0, sizeof places);
    for (int of = 0, block = 0; of < size; ++of) {
      for (int i = 0; i <= of; ++i) add(of, 16 * block++, 8);
    }
    MPI_Datatype block;
    OK(MPI_Type_create_resized(MPI_DOUBLE, 0, 16, &block));
    OK(MPI_Type_commit(&block));
    MPI_File file = opened(path, hints[h].way, hints[h].buffer);
    set_view(file, 0, block);
    unsigned char own[8 * kRanks], found[8 * kRanks];
    const int count = 8 * (rank + 1);
    for (int i = 0; i < count; ++i) own[i] = value(rank, i);
    OK(MPI_File_write_ordered(file, own, count, MPI_BYTE, MPI_STATUS_IGNORE));
    check_image(0);
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_begin(file, found, count, MPI_BYTE));
    OK(MPI_File_read_ordered_end(file, found, MPI_STATUS_IGNORE));
    CHECK(memcmp(own, found, (size_t)count) == 0);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&block));
  }
}

// --- Which way is taken --------------------------------------------------------------------------

// The number of reads and writes of this process so far. -1: the system does not tell.
static long calls_of_system(int is_write) {
  FILE* const file = fopen("/proc/self/io", "r");
  char line[100];
  long found = -1;
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL) {
    sscanf(line, is_write ? "syscw: %ld" : "syscr: %ld", &found);
  }
  fclose(file);
  return found;
}

// Runs of this length, in turns, are written and read. Ranks make one call for each, or few.
static void check_way(const char* way, int length, int is_atomic, int is_together) {
  enum { kRuns = 500 };
  static char data[kRuns << 15];
  MPI_Datatype run, view;
  make_file(0, 0);
  MPI_File file = opened(path, way, "1048576");
  OK(MPI_Type_contiguous(length, MPI_BYTE, &run));
  OK(MPI_Type_create_resized(run, 0, (MPI_Aint)length * size, &view));
  OK(MPI_Type_commit(&view));
  set_view(file, (MPI_Offset)rank * length, view);
  OK(MPI_File_set_atomicity(file, is_atomic));
  memset(data, rank + 1, (size_t)kRuns * (size_t)length);
  for (int is_write = 1; is_write >= 0; --is_write) {
    const long earlier = calls_of_system(is_write);
    if (is_write)
      OK(MPI_File_write_at_all(file, 0, data, kRuns * length, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!is_write)
      OK(MPI_File_read_at_all(file, 0, data, kRuns * length, MPI_BYTE, MPI_STATUS_IGNORE));
    const long calls = calls_of_system(is_write) - earlier;
    if (earlier >= 0) CHECK(is_together ? calls < kRuns / 2 : calls >= kRuns);
    for (int i = 0; i < kRuns * length; ++i) CHECK(data[i] == rank + 1);
  }
  OK(MPI_Type_free(&run));
  OK(MPI_Type_free(&view));
  OK(MPI_File_close(&file));
}
static void test_ways(void) {
  if (size == 1) return;  // its runs touch, so they are one
  check_way("disable", 16, 0, 0);
  check_way("enable", 16, 0, 1);
  check_way("automatic", 16, 0, 1);
  check_way("automatic", 1 << 15, 0, 0);  // long runs
  check_way("enable", 16, 1, 0);          // in atomic mode each rank locks its part
}

static int is_hint(MPI_File file, const char* key, const char* expected) {
  MPI_Info info;
  char found[MPI_MAX_INFO_VAL + 1] = "";
  int is_there = 0;
  OK(MPI_File_get_info(file, &info));
  OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, found, &is_there));
  OK(MPI_Info_free(&info));
  return is_there && strcmp(found, expected) == 0;
}
static void test_hints(void) {
  static const struct {
    const char *key, *is_new, *then;
  } given[] = {{"romio_cb_write", "disable", "disable"},
               {"romio_cb_write", "sometimes", "disable"},
               {"romio_cb_read", "enable", "enable"},
               {"romio_cb_read", "", "enable"},
               {"cb_buffer_size", "65536", "65536"},
               {"cb_buffer_size", "0", "65536"},
               {"cb_buffer_size", "-4096", "65536"},
               {"cb_buffer_size", "99999999999999999999", "65536"},
               {"other", "anything", "anything"}};
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
  CHECK(is_hint(file, "romio_cb_read", "automatic"));
  CHECK(is_hint(file, "romio_cb_write", "automatic"));
  CHECK(is_hint(file, "cb_buffer_size", "1048576"));
  for (size_t i = 0; i < sizeof given / sizeof *given; ++i) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, given[i].key, given[i].is_new));
    if (i % 2) OK(MPI_File_set_info(file, info));
    if (!(i % 2)) OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
    CHECK(is_hint(file, given[i].key, given[i].then));
    OK(MPI_Info_free(&info));
  }
  OK(MPI_File_close(&file));
}

// --- Failures of one rank ------------------------------------------------------------------------

// The last rank's arguments are refused. The others write and read their parts.
static void test_refusal(void) {
  const int last = size - 1;
  MPI_Datatype types[kRanks];
  make_file(0, kImage);
  memset(places, 0, sizeof places);
  for (int of = 0; of < size; ++of) types[of] = cyclic(of);
  OK(MPI_Type_commit(&types[rank]));
  MPI_File file = opened(path, "enable", "4096");
  set_view(file, 0, types[rank]);
  unsigned char own[kMost], found[kMost];
  const int count = places[rank].count;
  for (int i = 0; i < count; ++i) own[i] = value(rank, i);
  for (int is_write = 1; is_write >= 0; --is_write) {
    MPI_Datatype const type = rank == last ? MPI_DATATYPE_NULL : MPI_BYTE;
    const int code = is_write
                         ? MPI_File_write_at_all(file, 0, own, count, type, MPI_STATUS_IGNORE)
                         : MPI_File_read_at_all(file, 0, found, count, type, MPI_STATUS_IGNORE);
    CHECK(error_class(code) == (rank == last ? MPI_ERR_TYPE : MPI_SUCCESS));
  }
  if (rank != last) CHECK(memcmp(own, found, (size_t)count) == 0);
  // The byte fits into 64 bits, but on several ranks its place does not.
  const MPI_Offset far = rank < last ? 0 : INT64_MAX - (size == 1 ? 1 : kMost);
  FAILS(MPI_File_write_at_all(file, far, own, count, MPI_BYTE, MPI_STATUS_IGNORE),
        rank == last ? MPI_ERR_ARG : MPI_SUCCESS);
  places[last].count = 0;
  check_image(0);
  for (int of = 0; of < size; ++of) OK(MPI_Type_free(&types[of]));
  OK(MPI_File_close(&file));
}

// Writes runs of 100 bytes in turns, and returns the call's code.
static int written(MPI_File file, int runs) {
  static char data[100000];
  MPI_Datatype run, view;
  OK(MPI_Type_contiguous(100, MPI_BYTE, &run));
  OK(MPI_Type_create_resized(run, 0, 100 * size, &view));
  OK(MPI_Type_commit(&view));
  set_view(file, 100 * rank, view);
  const int code = MPI_File_write_at_all(file, 0, data, 100 * runs, MPI_BYTE, MPI_STATUS_IGNORE);
  OK(MPI_Type_free(&run));
  OK(MPI_Type_free(&view));
  return code;
}

// The system fails on one rank. All ranks hear of it, and the file can still be used.
static void test_failing_system(void) {
  const int last = size - 1;
  char told[100];
  MPI_File file = opened("/dev/full", "enable", "4096");
  FAILS(written(file, 1000), MPI_ERR_NO_SPACE);
  OK(MPI_File_close(&file));

  make_file(0, 0);
  file = opened(path, "enable", "65536");
  struct rlimit limit, before_it;
  CHECK(getrlimit(RLIMIT_FSIZE, &before_it) == 0);
  limit = before_it;
  limit.rlim_cur = 4096;
  signal(SIGXFSZ, SIG_IGN);
  if (rank == last) CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const int code = written(file, 1000);
  CHECK(setrlimit(RLIMIT_FSIZE, &before_it) == 0);
  snprintf(told, sizeof told, "rank %d refused the call: %s", last, path);
  TELLS(code, MPI_ERR_IO, rank == last ? path : told);
  OK(written(file, 1000));
  OK(MPI_File_close(&file));
}

// The last rank has no memory for its window, of which it hears before it moves anything.
static void test_no_memory(void) {
  const int last = size - 1;
  long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  CHECK(statm != NULL && fscanf(statm, "%ld", &pages) == 1 && fclose(statm) == 0);
  make_file(0, 0);
  MPI_File file = opened(path, "enable", "536870912");
  const MPI_Offset far = (MPI_Offset)rank << 30;
  struct rlimit limit, before_it;
  CHECK(getrlimit(RLIMIT_AS, &before_it) == 0);
  limit = before_it;
  limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (64 << 20);
  if (rank == last) CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const int code = MPI_File_write_at_all(file, far, "bytes", 5, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(setrlimit(RLIMIT_AS, &before_it) == 0);
  TELLS(code, size == 1 ? MPI_SUCCESS : MPI_ERR_ARG, size == 1 ? "" : "no memory");
  OK(written(file, 1000));
  OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 1 && size <= kRanks);
  path = argv[1];
  test_views(0);
  test_views(((off_t)5 << 30) + 3);
  if (rank == 0) CHECK(unlink(path) == 0);
  test_external32();
  if (argc == 2) test_ordered();
  test_ways();
  test_hints();
  test_refusal();
  test_failing_system();
  test_no_memory();
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) CHECK(unlink(path) == 0);
  OK(MPI_Finalize());
  return 0;
}
