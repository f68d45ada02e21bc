// The memory of other processes of the host, copied by the kernel. See process_vm_readv(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket::mpi {

// A run of bytes in another process.
struct RemoteRun {
  std::uintptr_t place = 0;
  std::size_t length = 0;
};

// Copy the runs, one after the other, to or from memory of this process. They return 0 or an error
// number: ESRCH if the process has ended, EFAULT if it has no such memory, EPERM or ENOSYS if the
// system does not allow it. After an error some bytes may have been copied.
int read_process(int pid, const std::vector<RemoteRun>& runs, std::byte* to) noexcept;
int write_process(int pid, const std::vector<RemoteRun>& runs, const std::byte* from) noexcept;

}  // namespace hocket::mpi
