// Finds out how another process of this host ended, if this process is not its parent.
//
// There are two sources, because neither always has the answer:
//
//   process:   runs ... | certain to end, still has its memory | zombie | reaped by its parent
//   /proc                |<-------------- knows the status -------------->|
//   pidfd (Linux 6.15)                                                    |<-- knows the status
//
// Freeing the memory takes the kernel 45 ms per GiB, so /proc knows the status long before the
// process has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "foundation/os/fd.h"

namespace hocket::os {

// Returns when process `pid` (0: this process) began, in clock ticks since the host's start. Start
// and pid together identify a process uniquely. 0 if the start is unknown.
std::uint64_t process_start(pid_t pid) noexcept;
// Returns whether a process has not ended, but none of its threads can run: it is stopped, or the
// kernel is writing its core dump. `start` is the result of process_start. False if a later process
// has the same pid.
bool is_halted(pid_t pid, std::uint64_t start) noexcept;
// Returns whether a signal has stopped every thread of the process. Then no thread is in the kernel
// or about to enter it. False if this is unknown, and also for a traced process. It allocates no
// memory.
bool are_threads_stopped(pid_t pid, std::uint64_t start) noexcept;
// Returns the status, as of waitpid, with which a process will end whose core dump the kernel is
// writing. This process never runs again, but the dump may take minutes. 0 if the status is
// unknown. Absent if there is no dump in progress.
std::optional<int> dumps_core_by(pid_t pid, std::uint64_t start) noexcept;
// Returns the number of a process's pid namespace (0: of this process); pids are valid only within
// it. 0 if it is unknown.
std::uint64_t process_space(pid_t pid = 0) noexcept;

// A status for a process that lives on as another program (exec). waitpid never returns this value.
inline constexpr int kReplaced = 0xffff;

// Asks how one process has ended. A resource: holds a descriptor of the process (pidfd) if the
// kernel supports it. It can be moved. One thread uses it.
class ProcessExit {
 public:
  // kNotYet: the process has not ended. kKnown: `status` is that of waitpid. kNeverKnown: there
  // will be no answer.
  enum class State : std::uint8_t { kNotYet, kKnown, kNeverKnown };
  struct Answer {
    State state = State::kNotYet;
    int status = 0;
  };

  // Refers to the process with this `pid` and `start`. A later process with the same pid, and a
  // process of another pid namespace, get no answer.
  ProcessExit(pid_t pid, std::uint64_t start) noexcept;

  // Returns what is known now. It never waits, and takes about ten microseconds.
  Answer ask() const noexcept;
  // Returns whether the process lives, but has no job's shared memory any more: it has called exec.
  // It takes longer than `ask`. It must not be called for a process that has begun to end, because
  // the reader may then have to free that process's memory.
  bool was_replaced() const noexcept;

 private:
  std::optional<int> ask_descriptor() const noexcept;
  Answer ask_proc() const noexcept;

  pid_t pid_;
  std::uint64_t start_;
  Fd descriptor_;
};

// Returns the contents of a file under /proc. Empty if the file cannot be read, for example because
// its process has ended.
std::string read_proc_file(const std::string& path);

}  // namespace hocket::os
