#include "interfaces/mpi/windows/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace hocket::mpi {
namespace {

// The kernel takes this many runs in one call, and copies at most 2 GiB.
constexpr std::size_t kRuns = 256;
constexpr std::size_t kBytes = std::size_t{1} << 30;

template <typename Copy>
int copy_all(const std::vector<RemoteRun>& runs, std::byte* here, Copy copy) noexcept {
  std::size_t next = 0, done = 0;  // the run, and how much of it has been copied
  while (next < runs.size()) {
    std::array<iovec, kRuns> remote;
    std::size_t count = 0, bytes = 0, first = next, skipped = done;
    while (count < kRuns && first + count < runs.size() && bytes < kBytes) {
      const RemoteRun& run = runs[first + count];
      const std::size_t length = std::min(run.length - skipped, kBytes - bytes);
      remote[count++] = {reinterpret_cast<void*>(run.place + skipped), length};
      bytes += length;
      skipped = 0;
    }
    const iovec local{here, bytes};
    const ssize_t copied = bytes == 0 ? 0 : copy(local, remote.data(), count);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno;
    if (copied == 0 && bytes > 0) return EFAULT;
    here += copied;
    std::size_t left = static_cast<std::size_t>(copied);
    while (next < runs.size() && left >= runs[next].length - done) {
      left -= runs[next++].length - done;
      done = 0;
    }
    done += left;
  }
  return 0;
}

}  // namespace

int read_process(int pid, const std::vector<RemoteRun>& runs, std::byte* to) noexcept {
  return copy_all(runs, to, [pid](const iovec& local, const iovec* remote, std::size_t count) {
    return ::process_vm_readv(pid, &local, 1, remote, count, 0);
  });
}
int write_process(int pid, const std::vector<RemoteRun>& runs, const std::byte* from) noexcept {
  return copy_all(runs,
                  const_cast<std::byte*>(from),  // NOLINT: it is only read
                  [pid](const iovec& local, const iovec* remote, std::size_t count) {
                    return ::process_vm_writev(pid, &local, 1, remote, count, 0);
                  });
}

}  // namespace hocket::mpi
