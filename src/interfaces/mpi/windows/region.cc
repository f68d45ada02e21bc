#include "interfaces/mpi/windows/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "interfaces/mpi/collectives/agreement.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/failure.h"
#include "interfaces/mpi/files/descriptor.h"

namespace hocket::mpi {
namespace {

// Tells the other ranks how to open rank 0's memory: by a descriptor of rank 0's process. Numbers
// of processes and descriptors may be reused for another file, so device and inode are compared,
// too.
struct Place {
  std::int64_t error = 0;
  std::int64_t pid = 0, fd = -1;
  std::uint64_t device = 0, inode = 0;
};

[[noreturn]] void fail_to_share(int error) {
  fail(MPI_ERR_NO_MEM,
       "cannot share the memory of a window: " + std::generic_category().message(error));
}

// Some systems require MFD_NOEXEC_SEAL (sysctl vm.memfd_noexec). Kernels before 6.3 refuse it.
int make_memfd() {
  constexpr unsigned kNoExecSeal = 8;
  const int made = ::memfd_create("hocket-window", MFD_CLOEXEC | kNoExecSeal);
  return made < 0 && errno == EINVAL ? ::memfd_create("hocket-window", MFD_CLOEXEC) : made;
}

Descriptor create(std::int64_t bytes, Place& place) {
  Descriptor made(make_memfd());
  struct stat found{};
  if (made.get() < 0 || ::ftruncate(made.get(), bytes) != 0 || ::fstat(made.get(), &found) != 0) {
    place.error = errno;
    return made;
  }
  place = {.pid = ::getpid(), .fd = made.get(), .device = found.st_dev, .inode = found.st_ino};
  return made;
}

Descriptor open_of(const Place& place) {
  const std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" + std::to_string(place.fd);
  Descriptor opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat found{};
  if (opened.get() < 0 || ::fstat(opened.get(), &found) != 0) fail_to_share(errno);
  if (found.st_dev != place.device || found.st_ino != place.inode) fail_to_share(ESRCH);
  return opened;
}

}  // namespace

Region::Region(Comm& comm, std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
  Place place;
  Descriptor memory;
  if (comm.rank == 0) memory = create(bytes, place);
  comm.net->broadcast(ArrayView(&place, sizeof place, DType::kUInt8));
  agree(comm, [&] {
    if (place.error != 0) fail_to_share(static_cast<int>(place.error));
    if (comm.rank != 0) memory = open_of(place);
    void* const mapped =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) fail_to_share(errno);
    data_ = static_cast<std::byte*>(mapped);
  });
}

Region::~Region() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace hocket::mpi
