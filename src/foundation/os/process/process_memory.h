// Reads and writes the memory of other processes. See process_vm_readv(2), ptrace(2), prctl(2).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace hocket::os {

// Copies `bytes` bytes from address `from` of process `pid` to `to`, once. Returns 0 or an error
// number. EPERM or ENOSYS: the kernel refuses. ESRCH: the process has ended. EFAULT: the memory is
// not readable. After an error some bytes may have been copied.
int read_process_memory(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept;

// Returns whether another process's read_process_memory could read both ends of this memory. It
// cannot read a driver's memory, such as pinned memory of a GPU.
bool others_may_read(const void* memory, std::size_t bytes) noexcept;

// Words that allow a write. They lie in memory that other processes change. A view.
struct WritePermit {
  const volatile std::uint64_t* ticket = nullptr;
  std::uint64_t valid = 0;                        // the value of `ticket` that allows the write
  const volatile std::uint32_t* owner = nullptr;  // the target's robust word; see robust_word.h
};

// Copies `bytes` bytes from `from` to address `to` of process `pid`, once, if the permit is valid.
//
// A writer that is suspended between its look at the permit and its write could write much later,
// when the memory serves another purpose. So the look and the entry into the kernel are one
// restartable sequence (see rseq(2)): if this thread loses its processor or gets a signal between
// them, the kernel makes it look again. A write that has begun is completed by the kernel, even if
// this process is stopped or killed meanwhile. Give a MiB at most, because the target may have to
// wait for it.
// @return 0; ECANCELED: the permit is not valid, and nothing was copied; else as
//   read_process_memory. ENOSYS if this thread has no restartable sequences.
int write_process_memory(
    pid_t pid, void* to, const void* from, std::size_t bytes, const WritePermit& permit) noexcept;

// Returns whether another process's write_process_memory could write both ends of this memory. It
// writes the bytes that are there.
bool others_may_write(void* memory, std::size_t bytes) noexcept;

// Returns whether all threads of a process have ended. Returns true if the number is not in use.
bool has_process_ended(pid_t pid) noexcept;

// Allows this process's parent and its other descendants to read and write its memory, if Yama
// restricts that to ancestors.
void let_siblings_access() noexcept;

}  // namespace hocket::os
