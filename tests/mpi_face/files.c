// Files of MPI's standard interface, on any number of ranks. The path is the first argument; with
// "death" behind it, rank 1 dies before a collective call.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const char* path;

static MPI_File opened(int amode) {
  MPI_File file;
  OK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
  return file;
}
static int counted(const MPI_Status* status, MPI_Datatype type) {
  int count = -1;
  OK(MPI_Get_count(status, type, &count));
  return count;
}

enum { kBlock = 3, kBlocks = 4 };

// Blocks of the ranks lie in turns: 0 0 0 1 1 1 ... 0 0 0 1 1 1. Each rank's view has its own.
static void test_views(void) {
  MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE);
  OK(MPI_File_set_size(file, 0));
  MPI_Datatype blocks, filetype;
  OK(MPI_Type_contiguous(kBlock, MPI_INT, &blocks));
  OK(MPI_Type_create_resized(blocks, 0, (MPI_Aint)sizeof(int) * kBlock * size, &filetype));
  OK(MPI_Type_commit(&filetype));
  const MPI_Offset begin = 8 + (MPI_Offset)sizeof(int) * kBlock * rank;
  OK(MPI_File_set_view(file, begin, MPI_INT, filetype, "native", MPI_INFO_NULL));

  int mine[kBlock * kBlocks], found[kBlock * kBlocks + 1];
  for (int i = 0; i < kBlock * kBlocks; ++i) mine[i] = rank * 1000 + i;
  MPI_Status status;
  OK(MPI_File_write_all(file, mine, kBlock * kBlocks, MPI_INT, &status));
  CHECK(counted(&status, MPI_INT) == kBlock * kBlocks);
  MPI_Offset place = -1;
  OK(MPI_File_get_position(file, &place));
  CHECK(place == kBlock * kBlocks);
  OK(MPI_File_get_byte_offset(file, kBlock + 1, &place));
  CHECK(place == begin + (MPI_Offset)sizeof(int) * (kBlock * size + 1));

  // From the middle of one block into the next, and up to the end of the file.
  OK(MPI_File_read_at(file, 2, found, 3, MPI_INT, &status));
  for (int i = 0; i < 3; ++i) CHECK(found[i] == mine[i + 2]);
  OK(MPI_File_read_at_all(file, kBlock * kBlocks - 2, found, 5, MPI_INT, &status));
  CHECK(counted(&status, MPI_INT) == 2 && found[1] == mine[kBlock * kBlocks - 1]);
  OK(MPI_File_seek(file, -1, MPI_SEEK_END));
  OK(MPI_File_get_position(file, &place));
  CHECK(place == kBlock * kBlocks - 1);

  // Memory with gaps.
  int spread[6] = {-1, -1, -1, -1, -1, -1};
  MPI_Datatype every_second;
  OK(MPI_Type_vector(3, 1, 2, MPI_INT, &every_second));
  OK(MPI_Type_commit(&every_second));
  OK(MPI_File_read_at(file, 4, spread, 1, every_second, &status));
  for (int i = 0; i < 5; ++i) CHECK(spread[i] == (i % 2 ? -1 : mine[4 + i / 2]));

  OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  for (int block = 0; block < kBlocks; ++block) {
    for (int of = 0; of < size; ++of) {
      OK(MPI_File_read(file, found, kBlock, MPI_INT, &status));
      for (int i = 0; i < kBlock; ++i) CHECK(found[i] == of * 1000 + block * kBlock + i);
    }
  }
  OK(MPI_Type_free(&every_second));
  OK(MPI_Type_free(&filetype));
  OK(MPI_Type_free(&blocks));
  OK(MPI_File_close(&file));
  CHECK(file == MPI_FILE_NULL);
}

// A file type of unequal pieces and of nested ones against a model: the bytes at its places.
static void test_irregular_views(void) {
  const int lengths[3] = {2, 1, 3}, places[3] = {1, 5, 8};
  MPI_Datatype pieces, types[3], kinds[2] = {MPI_INT, MPI_SHORT};
  OK(MPI_Type_indexed(3, lengths, places, MPI_SHORT, &pieces));
  OK(MPI_Type_create_resized(pieces, 0, 24, &types[0]));
  const int blocks[2] = {1, 2};
  const MPI_Aint displacements[2] = {4, 12};
  OK(MPI_Type_create_struct(2, blocks, displacements, kinds, &pieces));
  OK(MPI_Type_create_resized(pieces, 0, 20, &types[1]));
  OK(MPI_Type_vector(2, 2, 3, types[0], &types[2]));
  const int seen[3][2] = {{12, 24}, {8, 20}, {48, 120}};  // bytes and extent
  unsigned char bytes[240];
  for (int i = 0; i < 240; ++i) bytes[i] = (unsigned char)(i * 7 + 3);
  MPI_File file = opened(MPI_MODE_RDWR);
  if (rank == 0) OK(MPI_File_write_at(file, 0, bytes, 240, MPI_BYTE, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  for (int t = 0; t < 3; ++t) {
    unsigned char packed[96], found[96];
    int position = 0;
    OK(MPI_Type_commit(&types[t]));
    OK(MPI_Pack(bytes, 2, types[t], packed, 96, &position, MPI_COMM_WORLD));
    MPI_Aint lb, extent;
    OK(MPI_Type_get_extent(types[t], &lb, &extent));
    CHECK(position == 2 * seen[t][0] && extent <= seen[t][1]);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, types[t], "native", MPI_INFO_NULL));
    for (int begin = 0; begin < position; begin += 5) {
      for (int end = begin + 1; end <= position; end += 3) {
        memset(found, 0, sizeof found);
        OK(MPI_File_read_at(file, begin, found, end - begin, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, packed + begin, (size_t)(end - begin)) == 0);
      }
    }
  }
  OK(MPI_File_close(&file));
}

// Files in external32 are big-endian, and a long has 4 bytes in them. The first rank writes.
static void test_external32(void) {
  MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE);
  OK(MPI_File_set_size(file, 0));
  MPI_Datatype every_second, records, kinds[2] = {MPI_LONG, MPI_CHAR};
  const int blocks[2] = {1, 1};
  const MPI_Aint displacements[2] = {0, sizeof(long)};
  OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &every_second));
  OK(MPI_Type_create_resized(every_second, 0, 16, &every_second));
  OK(MPI_Type_commit(&every_second));
  OK(MPI_Type_create_struct(2, blocks, displacements, kinds, &records));
  OK(MPI_Type_commit(&records));
  OK(MPI_File_set_view(file, 2, MPI_LONG, every_second, "external32", MPI_INFO_NULL));
  MPI_Aint extent = 0;
  OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
  CHECK(extent == 4);
  OK(MPI_File_get_type_extent(file, every_second, &extent));
  CHECK(extent == 16);
  MPI_Offset place = 0;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING];
  OK(MPI_File_get_view(file, &place, &etype, &filetype, representation));
  CHECK(place == 2 && etype == MPI_LONG && strcmp(representation, "external32") == 0);
  MPI_Aint lb = 0;
  OK(MPI_Type_get_extent(filetype, &lb, &extent));
  CHECK(extent == 16);

  const long sent[3] = {1, -2, 0x01020304}, too_long = 1L << 40;
  MPI_Status status;
  if (rank == 0) {
    OK(MPI_File_write_at(file, 0, sent, 3, MPI_LONG, &status));
    CHECK(counted(&status, MPI_LONG) == 3);
    FAILS(MPI_File_write_at(file, 0, &too_long, 1, MPI_LONG, &status), MPI_ERR_CONVERSION);
  }
  OK(MPI_File_sync(file));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  long found[5] = {7, 7, 7, 7, 7};
  OK(MPI_File_read_at(file, 1, found, 5, MPI_LONG, &status));  // there are two
  CHECK(counted(&status, MPI_LONG) == 2);
  CHECK(found[0] == -2 && found[1] == 0x01020304 && found[2] == 7);
  OK(MPI_File_get_byte_offset(file, 2, &place));
  CHECK(place == 18);
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  const unsigned char expected[22] = {0,   0,   0,   0, 0, 1, 0, 0, 0, 0, 255,
                                      255, 255, 254, 0, 0, 0, 0, 1, 2, 3, 4};
  unsigned char bytes[30];
  OK(MPI_File_read_at(file, 0, bytes, 30, MPI_BYTE, &status));
  CHECK(counted(&status, MPI_BYTE) == 22 && memcmp(bytes, expected, 22) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));

  // Records of several kinds, of which the file ends within the last.
  struct {
    long number;
    char letter;
  } written[2] = {{258, 'a'}, {-1, 'b'}}, read[2] = {{0, 0}, {0, 'x'}};
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
  if (rank == 0) OK(MPI_File_write_at(file, 0, written, 2, records, &status));
  OK(MPI_File_set_size(file, 9));
  OK(MPI_File_read_at_all(file, 0, read, 2, records, &status));
  CHECK(counted(&status, MPI_BYTE) == 2 * (int)sizeof(long) + 1);
  CHECK(read[0].number == 258 && read[0].letter == 'a');
  CHECK(read[1].number == -1 && read[1].letter == 'x');
  OK(MPI_Type_free(&records));
  OK(MPI_Type_free(&every_second));
  OK(MPI_File_close(&file));
}

static void test_shared_position(void) {
  MPI_File file = opened(MPI_MODE_RDWR);
  OK(MPI_File_set_size(file, 0));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  // Each rank takes places of its own, in any order.
  for (int i = 0; i < 5; ++i) OK(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_File_sync(file));
  int times[8] = {0}, found = -1;
  for (int i = 0; i < 5 * size; ++i) {
    OK(MPI_File_read_at(file, i, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(found >= 0 && found < size);
    ++times[found];
  }
  for (int of = 0; of < size; ++of) CHECK(times[of] == 5);

  // Ordered calls follow the ranks: rank r writes r + 1 numbers.
  OK(MPI_File_seek_shared(file, 2, MPI_SEEK_SET));
  const int ours[8] = {rank, rank, rank, rank, rank, rank, rank, rank};
  OK(MPI_File_write_ordered_begin(file, ours, rank + 1, MPI_INT));
  OK(MPI_File_write_ordered_end(file, ours, MPI_STATUS_IGNORE));
  MPI_Offset place = -1;
  OK(MPI_File_get_position_shared(file, &place));
  CHECK(place == 2 + size * (size + 1) / 2);
  int i = 2;
  for (int of = 0; of < size; ++of) {
    for (int k = 0; k <= of; ++k, ++i) {
      OK(MPI_File_read_at(file, i, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
      CHECK(found == of);
    }
  }
  OK(MPI_File_close(&file));
}

// In atomic mode a reader finds all of a write or nothing of it.
static void test_atomicity(void) {
  enum { kNumbers = 20000 };
  static int numbers[kNumbers];
  MPI_File file = opened(MPI_MODE_RDWR);
  OK(MPI_File_set_atomicity(file, 1));
  if (rank == 0) OK(MPI_File_write_at(file, 0, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int turn = 1; turn <= 20; ++turn) {
    if (rank == 0) {
      for (int i = 0; i < kNumbers; ++i) numbers[i] = turn;
      OK(MPI_File_write_at(file, 0, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_File_read_at(file, 0, numbers, kNumbers, MPI_INT, MPI_STATUS_IGNORE));
      for (int i = 1; i < kNumbers; ++i) CHECK(numbers[i] == numbers[0]);
    }
  }
  OK(MPI_File_close(&file));
}

static int told;
static void tell(MPI_File* file, int* code, ...) {
  CHECK(*file != MPI_FILE_NULL);
  told = error_class(*code);
}

static void test_errors(void) {
  MPI_File file = MPI_FILE_NULL;
  const struct {
    int amode, expected;
    const char* path;
  } opens[] = {
      {MPI_MODE_RDONLY, MPI_ERR_NO_SUCH_FILE, "/nowhere/at/all"},
      {MPI_MODE_RDWR | MPI_MODE_WRONLY, MPI_ERR_AMODE, path},
      {0, MPI_ERR_AMODE, path},
      {MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_ERR_AMODE, path},
      {MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL, MPI_ERR_AMODE, path},
      {MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_ERR_FILE_EXISTS, path},
      {MPI_MODE_RDONLY, MPI_ERR_BAD_FILE, "/"},
  };
  for (size_t i = 0; i < sizeof opens / sizeof *opens; ++i) {
    FAILS(MPI_File_open(MPI_COMM_WORLD, opens[i].path, opens[i].amode, MPI_INFO_NULL, &file),
          opens[i].expected);
  }
  FAILS(MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);

  int number = 0;
  MPI_Offset place;
  file = opened(MPI_MODE_RDONLY);
  FAILS(MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_all(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_write_ordered(file, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_set_size(file, 0), MPI_ERR_READ_ONLY);
  FAILS(MPI_File_read_at(file, -1, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_ARG);
  FAILS(MPI_File_read_at(file, 0, &number, -1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_COUNT);
  FAILS(MPI_File_read_at(file, 0, &number, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  FAILS(MPI_File_read_at(file, 0, NULL, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
  FAILS(MPI_File_read_all_end(file, &number, MPI_STATUS_IGNORE), MPI_ERR_OTHER);
  FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  FAILS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
  FAILS(MPI_File_get_byte_offset(file, INT64_MAX, &place), MPI_ERR_ARG);
  FAILS(MPI_File_set_view(file, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
  FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
  FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external64", MPI_INFO_NULL),
        MPI_ERR_UNSUPPORTED_DATAREP);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  FAILS(MPI_File_read_at(file, 0, &number, 1, MPI_SHORT, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
  FAILS(MPI_File_read_at(MPI_FILE_NULL, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);

  MPI_Errhandler handler, kept;
  OK(MPI_File_create_errhandler(tell, &handler));
  OK(MPI_File_get_errhandler(file, &kept));
  CHECK(kept == MPI_ERRORS_RETURN);
  OK(MPI_File_set_errhandler(file, handler));
  FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
  CHECK(told == MPI_ERR_ARG);
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_File_close(&file));
}

// The last rank gives other arguments. All ranks hear which rank gave what.
static void test_other_arguments(void) {
  if (size == 1) return;
  const int last = size - 1, is_last = rank == last;
  char other[512], link[512], own[520], told[2000];
  snprintf(other, sizeof other, "%s.other", path);
  snprintf(link, sizeof link, "%s.link", path);
  if (rank == 0) {
    FILE* made = fopen(other, "w");
    CHECK(made != NULL && fclose(made) == 0);
    unlink(link);
    CHECK(symlink(path, link) == 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file = MPI_FILE_NULL;
  const int amode = MPI_MODE_RDWR;
#define OPEN(name, mode) \
  MPI_File_open(         \
      MPI_COMM_WORLD, is_last ? (name) : path, is_last ? (mode) : amode, MPI_INFO_NULL, &file)
#define LAST_GAVE(given, first) \
  (snprintf(told, sizeof told, "rank %d gave %s, and rank 0 %s", last, given, first), told)
  snprintf(own, sizeof own, "\"%s\"", path);
  char both[600];
  snprintf(both, sizeof both, "filename \"%s\"", other);
  TELLS(OPEN(other, amode), MPI_ERR_NOT_SAME, LAST_GAVE(both, own));
  snprintf(told, sizeof told, "rank %d refused the call: /nowhere/at/all", last);
  TELLS(OPEN("/nowhere/at/all", amode), MPI_ERR_NO_SUCH_FILE, is_last ? "/nowhere/at/all" : told);
  snprintf(told, sizeof told, "rank %d refused the call: filename", last);
  TELLS(OPEN(NULL, amode), MPI_ERR_ARG, is_last ? "filename or fh is null" : told);
  char modes[2][40];
  snprintf(modes[0], sizeof *modes, "amode %d", MPI_MODE_RDONLY);
  snprintf(modes[1], sizeof *modes, "%d", amode);
  TELLS(OPEN(path, MPI_MODE_RDONLY), MPI_ERR_NOT_SAME, LAST_GAVE(modes[0], modes[1]));
  OK(OPEN(link, amode));  // another name of the same file
  MPI_Offset size_before = 0, size_after = 0;
  OK(MPI_File_get_size(file, &size_before));
  TELLS(MPI_File_set_size(file, is_last ? 5 : 3), MPI_ERR_NOT_SAME, LAST_GAVE("size 5", "3"));
  TELLS(MPI_File_preallocate(file, is_last ? 5 : 3), MPI_ERR_NOT_SAME, LAST_GAVE("size 5", "3"));
  OK(MPI_File_get_size(file, &size_after));
  CHECK(size_before == size_after);
  TELLS(MPI_File_set_atomicity(file, is_last), MPI_ERR_NOT_SAME, LAST_GAVE("flag 1", "0"));
  TELLS(MPI_File_set_view(
            file, 0, MPI_INT, MPI_INT, is_last ? "external32" : "native", MPI_INFO_NULL),
        MPI_ERR_NOT_SAME,
        LAST_GAVE("datarep \"external32\"", "\"native\""));
  const MPI_Datatype type = is_last ? MPI_SHORT : MPI_INT;
  TELLS(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL),
        MPI_ERR_NOT_SAME,
        LAST_GAVE("an etype of the extent 2", "4"));
  TELLS(MPI_File_seek_shared(file, is_last ? 7 : 1, MPI_SEEK_SET),
        MPI_ERR_NOT_SAME,
        LAST_GAVE("offset 7", "1"));
  OK(MPI_File_seek_shared(file, 1, MPI_SEEK_SET));
  int number = 0;
  snprintf(told, sizeof told, "rank %d refused the call", last);
  TELLS(MPI_File_read_ordered(file, &number, is_last ? -1 : 1, MPI_INT, MPI_STATUS_IGNORE),
        is_last ? MPI_ERR_COUNT : MPI_ERR_IO,
        is_last ? "count" : told);
  OK(MPI_File_close(&file));
  if (rank == 0) CHECK(unlink(other) == 0 && unlink(link) == 0);
}

static int convert(
    void* user, MPI_Datatype type, int count, void* file, MPI_Offset place, void* extra) {
  (void)user, (void)type, (void)count, (void)file, (void)place, (void)extra;
  return MPI_SUCCESS;
}
static int extent_of(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  MPI_Aint lb = 0;
  (void)extra;
  return MPI_Type_get_extent(type, &lb, extent);
}

// A representation of the program that converts nothing is like the native one.
static void test_representations(void) {
  OK(MPI_Register_datarep(
      "plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, NULL));
  OK(MPI_Register_datarep("other", convert, convert, extent_of, NULL));
  const char* const taken[] = {"plain", "other", "native", "external32"};
  for (int i = 0; i < 4; ++i) {
    FAILS(MPI_Register_datarep(
              taken[i], MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, NULL),
          MPI_ERR_DUP_DATAREP);
  }
  MPI_File file = opened(MPI_MODE_RDWR);
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL));
  FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "other", MPI_INFO_NULL),
        MPI_ERR_UNSUPPORTED_DATAREP);
  OK(MPI_File_close(&file));
}

static void test_close(void) {
  MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_APPEND);
  MPI_Offset place = 0, bytes = 0;
  OK(MPI_File_get_position(file, &place));
  OK(MPI_File_get_size(file, &bytes));
  CHECK(place == bytes && bytes > 0);
  OK(MPI_File_close(&file));
  CHECK(access(path, F_OK) != 0);
}

static void test_death(void) {
  MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
  if (rank == 1) _exit(9);
  const int code = MPI_File_write_all(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  OK(MPI_Error_string(code, text, &length));
  CHECK(error_class(code) == MPIX_ERR_PROC_FAILED && strstr(text, "rank 1") != NULL);
  if (rank == 0) unlink(path);
  _exit(0);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc > 1);
  path = argv[1];
  if (argc > 2) test_death();
  test_views();
  test_irregular_views();
  test_external32();
  test_shared_position();
  test_atomicity();
  test_errors();
  test_other_arguments();
  test_representations();
  test_close();
  OK(MPI_Finalize());
  return 0;
}
