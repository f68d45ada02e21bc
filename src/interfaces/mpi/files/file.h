// A file that the ranks of a communicator have opened together.
#pragma once

#include <atomic>
#include <optional>

#include "hocket/symmetric.h"
#include "interfaces/mpi/files/descriptor.h"
#include "interfaces/mpi/files/view.h"
#include "interfaces/mpi/handles.h"
#include "interfaces/mpi/objects.h"

namespace hocket::mpi {

// Split collective calls, such as MPI_File_read_all_begin and its end.
enum class Split { kReadAll, kReadAtAll, kReadOrdered, kWriteAll, kWriteAtAll, kWriteOrdered };

// A resource. Threads may read and write at the same time. Only one thread at a time makes
// collective calls.
struct File {
  MPI_File handle = MPI_FILE_NULL;
  std::shared_ptr<Comm> comm;  // the file's own duplicate
  std::string path;
  int amode = 0;
  Descriptor descriptor;
  std::shared_ptr<Info> info = std::make_shared<Info>();  // the hints in use
  std::shared_ptr<Errhandler> errhandler;

  std::mutex mutex;  // guards view, position and begun
  View view;
  std::int64_t position = 0;  // in etypes
  std::optional<std::pair<Split, Outcome>> begun;

  std::atomic<bool> is_atomic{false};
  mutable std::mutex atomic_access;  // the system's lock does not exclude threads
  // The shared file pointer, in memory of rank 0. Absent if there are several hosts.
  std::optional<SymmetricArray> shared;

  bool may_read() const noexcept { return (amode & MPI_MODE_WRONLY) == 0; }
  bool may_write() const noexcept { return (amode & MPI_MODE_RDONLY) == 0; }
  bool is_first() const noexcept { return comm->rank == 0; }
  // Throws MPI_ERR_UNSUPPORTED_OPERATION if there are several hosts.
  std::atomic_ref<std::int64_t> shared_position() const;
};

Handles<File, MPI_File>& files();
std::shared_ptr<File> file_of(MPI_File handle);  // throws MPI_ERR_FILE
// Returns the handler of the file, or the one for new files and for MPI_FILE_NULL.
std::shared_ptr<Errhandler>& errhandler_of(MPI_File handle);

[[noreturn]] void fail_with_errno(int error, const std::string& what);

// The file's size in bytes.
std::int64_t size_of(const File& file);

// The part of a file that a rank moves in a call: the bytes from `begin` to `end` of its view. A
// value.
struct Portion {
  View view;
  bool is_write = false;
  std::int64_t begin = 0, end = 0;
  std::byte* data = nullptr;  // packed, in the file's representation
};

// Reads or writes one run of bytes. Returns the number of bytes moved, which is smaller at the end
// of the file.
std::int64_t move_run(
    const File& file, bool is_write, std::int64_t place, std::byte* data, std::int64_t length);

}  // namespace hocket::mpi
