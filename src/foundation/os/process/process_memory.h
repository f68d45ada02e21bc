// Reads and writes the memory of other processes. See process_vm_readv(2), ptrace(2), prctl(2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hocket::os {

// Copies `bytes` bytes from address `from` of process `pid` to `to`, in one copy by the kernel.
// Returns 0 or an error number. EPERM or ENOSYS: the kernel refuses. ESRCH: the process has ended.
// EFAULT: the memory is not readable. After an error some bytes may have been copied.
int read_process_memory(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept;

// Returns whether read_process_memory of another process could read both ends of this memory. It
// cannot read a driver's memory, such as pinned memory of a GPU.
bool others_may_read(const void* memory, std::size_t bytes) noexcept;

// Words that allow or forbid a write. They lie in memory that other processes may change at any
// time. A view.
struct WritePermit {
  const volatile std::uint64_t* ticket = nullptr;
  std::uint64_t valid = 0;                        // the value of `ticket` that allows the write
  const volatile std::uint32_t* owner = nullptr;  // the target's robust word; see os::RobustWord
};

// Copies `bytes` bytes from `from` to address `to` of process `pid`, in one copy by the kernel, if
// the permit is valid.
//
// A writer could be suspended between its check of the permit and its write. It would then write
// much later, when the memory may serve another purpose. So the check and the entry into the kernel
// are one restartable sequence (see rseq(2)): if this thread loses its processor or gets a signal
// between them, the kernel makes it check again. The kernel completes a write that has begun, even
// if this process is stopped or killed meanwhile. `bytes` should be at most 1 MiB, because the
// target may have to wait for the write.
// @return 0; ECANCELED: the permit is not valid, and nothing was copied; else as
//   read_process_memory. ENOSYS if this thread has no restartable sequences.
int write_process_memory(
    pid_t pid, void* to, const void* from, std::size_t bytes, const WritePermit& permit) noexcept;

// Returns whether write_process_memory of another process could write both ends of this memory. To
// find out, it overwrites the first and the last byte with their present values.
bool others_may_write(void* memory, std::size_t bytes) noexcept;

// Returns whether all threads of a process have ended. True if no process has this number.
bool has_process_ended(pid_t pid) noexcept;

// Allows this process's parent, and all descendants of the parent, to read and write this process's
// memory. Without it, Yama may allow this to ancestors only.
void let_siblings_access() noexcept;

}  // namespace hocket::os
