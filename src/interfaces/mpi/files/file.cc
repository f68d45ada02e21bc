#include "interfaces/mpi/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/files/choice.h"
#include "mpi_calls.h"

namespace hocket::mpi {

Handles<File, MPI_File>& files() {
  static auto& made = *new Handles<File, MPI_File>();  // NOLINT: it outlives the program's objects
  return made;
}
std::shared_ptr<File> file_of(MPI_File handle) {
  auto found = files().share(handle);
  require(found != nullptr, MPI_ERR_FILE, "fh is no file");
  return found;
}
std::shared_ptr<Errhandler>& errhandler_of(MPI_File handle) {
  static auto& of_new = *new auto(process().errhandlers.share(MPI_ERRORS_RETURN));  // NOLINT
  const auto found = files().share(handle);
  return found != nullptr ? found->errhandler : of_new;
}

void fail_with_errno(int error, const std::string& what) {
  const std::string text = what + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
      fail(MPI_ERR_NO_SUCH_FILE, text);
    case EEXIST:
      fail(MPI_ERR_FILE_EXISTS, text);
    case EACCES:
    case EPERM:
      fail(MPI_ERR_ACCESS, text);
    case EROFS:
      fail(MPI_ERR_READ_ONLY, text);
    case ENOSPC:
      fail(MPI_ERR_NO_SPACE, text);
    case EDQUOT:
      fail(MPI_ERR_QUOTA, text);
    case EBUSY:
    case ETXTBSY:
      fail(MPI_ERR_FILE_IN_USE, text);
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
      fail(MPI_ERR_BAD_FILE, text);
    default:
      fail(MPI_ERR_IO, text);
  }
}

std::atomic_ref<std::int64_t> File::shared_position() const {
  require(shared.has_value(),
          MPI_ERR_UNSUPPORTED_OPERATION,
          "a position that ranks share needs all of them on one host");
  return std::atomic_ref(*static_cast<std::int64_t*>(shared->peer(0).data()));
}

std::int64_t size_of(const File& file) {
  struct stat found{};
  if (::fstat(file.descriptor.get(), &found) != 0) fail_with_errno(errno, file.path);
  return found.st_size;
}

std::int64_t move_run(
    const File& file, bool is_write, std::int64_t place, std::byte* data, std::int64_t length) {
  const int fd = file.descriptor.get();
  std::int64_t moved = 0;
  while (moved < length) {
    const auto left = static_cast<std::size_t>(length - moved);
    const ssize_t now = is_write ? ::pwrite(fd, data + moved, left, place + moved)
                                 : ::pread(fd, data + moved, left, place + moved);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) fail_with_errno(errno, file.path);
    if (now == 0) break;
    moved += now;
  }
  return moved;
}

namespace {

void check_amode(int amode) {
  const int ways = ((amode & MPI_MODE_RDONLY) != 0) + ((amode & MPI_MODE_WRONLY) != 0) +
                   ((amode & MPI_MODE_RDWR) != 0);
  require(ways == 1, MPI_ERR_AMODE, "amode must have one of RDONLY, WRONLY and RDWR");
  require((amode & MPI_MODE_RDONLY) == 0 || (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) == 0,
          MPI_ERR_AMODE,
          "amode has RDONLY, with which no file is created");
  require((amode & MPI_MODE_RDWR) == 0 || (amode & MPI_MODE_SEQUENTIAL) == 0,
          MPI_ERR_AMODE,
          "amode has both RDWR and SEQUENTIAL");
}

// Opens the file in this process. Only rank 0, which opens first, creates it.
void open_here(File& file, bool creates) {
  int flags = O_CLOEXEC;
  flags |= (file.amode & MPI_MODE_RDWR) != 0     ? O_RDWR
           : (file.amode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                                 : O_RDONLY;
  if (creates && (file.amode & MPI_MODE_CREATE) != 0) flags |= O_CREAT;
  if (creates && (file.amode & MPI_MODE_EXCL) != 0) flags |= O_EXCL;
  file.descriptor = Descriptor(::open(file.path.c_str(), flags, 0666));
  if (file.descriptor.get() < 0) fail_with_errno(errno, file.path);
  struct stat found{};
  if (::fstat(file.descriptor.get(), &found) == 0 && S_ISDIR(found.st_mode)) {
    fail_with_errno(EISDIR, file.path);
  }
}

// The file that a rank has opened.
struct Opened {
  std::uint64_t device = 0, inode = 0;
};

// Compares the files that the ranks of each host have opened, by device and inode. Names may
// differ, for example because of links. Hosts are not compared, because the same file may have
// other numbers there.
void require_same_file(const File& file) {
  struct stat found{};
  static_cast<void>(::fstat(file.descriptor.get(), &found));
  const Opened own{.device = found.st_dev, .inode = found.st_ino};
  std::vector<Opened> all(static_cast<std::size_t>(file.comm->size()));
  file.comm->net->all_gather(ConstArrayView(&own, sizeof own, DType::kUInt8),
                             ArrayView(all.data(), all.size() * sizeof own, DType::kUInt8));
  const auto hosts = file.comm->net->hosts();
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const bool is_same = all[rank].device == all[0].device && all[rank].inode == all[0].inode;
    if (is_same || hosts[rank] != hosts[0]) continue;
    fail_with_texts(*file.comm, static_cast<int>(rank), file.path, "filename");
  }
}

void share_position(File& file) {
  Communicator& net = *file.comm->net;
  if (!is_on_one_host(*file.comm)) return;
  file.shared = net.symmetric().empty<std::int64_t>(1);
  if (file.is_first()) file.shared_position() = 0;
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  Comm& of = comm_of(comm);
  require(!of.is_inter(), MPI_ERR_COMM, "comm is an intercommunicator");
  auto made = std::make_shared<File>();
  File& file = *made;
  file.comm = duplicate(of);
  file.amode = amode;
  file.errhandler = errhandler_of(MPI_FILE_NULL);
  agree(*file.comm, [&] {
    require(filename != nullptr && fh != nullptr, MPI_ERR_ARG, "filename or fh is null");
    file.path = filename;
    const Info* const hints = hints_of(info);
    take_hints(file, hints != nullptr ? *hints : Info());
    check_amode(amode);
  });
  require_same(*file.comm, amode, "amode");
  agree(*file.comm, [&] {
    if (file.is_first()) open_here(file, true);
  });
  agree(*file.comm, [&] {
    if (!file.is_first()) open_here(file, false);
  });
  require_same_file(file);
  if ((amode & MPI_MODE_APPEND) != 0) file.position = size_of(file);
  share_position(file);
  if (file.is_first() && file.shared) file.shared_position() = file.position;
  file.comm->net->barrier();
  file.handle = files().add(std::move(made));
  *fh = file.handle;
}

void File_close(MPI_File* fh) {
  const auto file = file_of(*fh);
  require(!file->begun, MPI_ERR_OTHER, "a call that has begun is not ended");
  file->comm->net->barrier();
  if (file->is_first() && (file->amode & MPI_MODE_DELETE_ON_CLOSE) != 0) {
    ::unlink(file->path.c_str());
  }
  file->comm->net->barrier();
  files().remove(*fh);
  *fh = MPI_FILE_NULL;
}
void File_delete(const char* filename, MPI_Info) {
  require(filename != nullptr, MPI_ERR_ARG, "filename is null");
  if (::unlink(filename) != 0) fail_with_errno(errno, filename);
}

// --- The size of a file --------------------------------------------------------------------------

void File_get_size(MPI_File fh, MPI_Offset* size) { *size = size_of(*file_of(fh)); }
void File_set_size(MPI_File fh, MPI_Offset size) {
  const auto file = file_of(fh);
  agree(*file->comm, [&] {
    require(size >= 0, MPI_ERR_ARG, "size is negative");
    require(file->may_write(), MPI_ERR_READ_ONLY, "fh was opened to be read");
  });
  require_same(*file->comm, size, "size");
  agree(*file->comm, [&] {
    if (!file->is_first()) return;
    if (::ftruncate(file->descriptor.get(), size) != 0) fail_with_errno(errno, file->path);
  });
}
void File_preallocate(MPI_File fh, MPI_Offset size) {
  const auto file = file_of(fh);
  agree(*file->comm, [&] {
    require(size >= 0, MPI_ERR_ARG, "size is negative");
    require(file->may_write(), MPI_ERR_READ_ONLY, "fh was opened to be read");
  });
  require_same(*file->comm, size, "size");
  agree(*file->comm, [&] {
    if (!file->is_first() || size == 0) return;
    const int error = ::posix_fallocate(file->descriptor.get(), 0, size);
    if (error != 0) fail_with_errno(error, file->path);
  });
}
void File_sync(MPI_File fh) {
  const auto file = file_of(fh);
  agree(*file->comm, [&] {
    if (file->may_write() && ::fsync(file->descriptor.get()) != 0) {
      fail_with_errno(errno, file->path);
    }
  });
}

// --- Other properties of a file ------------------------------------------------------------------

void File_get_amode(MPI_File fh, int* amode) { *amode = file_of(fh)->amode; }
void File_get_group(MPI_File fh, MPI_Group* group) {
  *group = process().groups.add(std::make_shared<Group>(*file_of(fh)->comm->local));
}
void File_get_info(MPI_File fh, MPI_Info* info_used) {
  *info_used = process().infos.add(std::make_shared<Info>(*file_of(fh)->info));
}
void File_set_info(MPI_File fh, MPI_Info info) {
  const auto file = file_of(fh);
  if (const Info* const hints = hints_of(info)) take_hints(*file, *hints);
}
void File_get_atomicity(MPI_File fh, int* flag) { *flag = file_of(fh)->is_atomic; }
void File_set_atomicity(MPI_File fh, int flag) {
  const auto file = file_of(fh);
  require_same(*file->comm, flag != 0 ? 1 : 0, "flag");
  file->is_atomic = flag != 0;
}

void File_create_errhandler(MPI_File_errhandler_function* function, MPI_Errhandler* errhandler) {
  *errhandler = process().errhandlers.add(std::make_shared<Errhandler>(
      Errhandler{.kind = Errhandler::Kind::kUser, .of_file = function}));
}
void File_set_errhandler(MPI_File file, MPI_Errhandler errhandler) {
  if (file != MPI_FILE_NULL) file_of(file);
  auto handler = process().errhandlers.share(errhandler);
  require(handler != nullptr, MPI_ERR_ERRHANDLER, "errhandler is no error handler");
  require(handler->kind != Errhandler::Kind::kUser || handler->of_file != nullptr,
          MPI_ERR_ERRHANDLER,
          "errhandler is not one of files");
  errhandler_of(file) = std::move(handler);
}
void File_get_errhandler(MPI_File file, MPI_Errhandler* errhandler) {
  if (file != MPI_FILE_NULL) file_of(file);
  *errhandler = handle_of_errhandler(errhandler_of(file));
}
void File_call_errhandler(MPI_File fh, int errorcode) {
  file_of(fh);
  tell_handler("MPI_File_call_errhandler", Scope::of(fh), errorcode);
}

}  // namespace hocket::mpi::call
