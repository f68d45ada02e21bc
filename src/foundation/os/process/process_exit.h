// Finds out how another process of this host ended, for processes that are not its parent.
//
// It uses two sources, because neither always has the answer. A descriptor of the process (pidfd,
// from Linux 6.15 on) has it after the parent has waited for the process. Until then /proc has it,
// as soon as the process is certain to end. That is long before its memory is freed, which takes
// the kernel 45 ms per GiB.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "foundation/os/fd.h"

namespace hocket::os {

// Returns when process `pid` (0: this one) began, in ticks since the host's start. Start and pid
// together identify a process uniquely. 0 if it is unknown.
std::uint64_t process_start(pid_t pid) noexcept;
// Returns whether none of its threads can run though it has not ended: it is stopped, or is writing
// a core dump. `start` is as above; a later process with the same pid is not meant.
bool is_halted(pid_t pid, std::uint64_t start) noexcept;
// Returns whether a signal has stopped every thread of the process, so that none is in the kernel
// or about to enter it. False if it is unknown, for a traced process too. It allocates nothing.
bool are_threads_stopped(pid_t pid, std::uint64_t start) noexcept;
// Returns how a process will end that is writing a core dump, as waitpid does. The dump may take
// minutes. 0 if the status is unknown. Absent if the process is not writing a dump. It never runs
// again.
std::optional<int> dumps_core_by(pid_t pid, std::uint64_t start) noexcept;
// Returns the number of this process's pid namespace. Pids are valid only within it. 0 if it is
// unknown.
std::uint64_t process_space() noexcept;

// A value in place of waitpid's status, which is never this for an end: the process lives on as
// another program (exec).
inline constexpr int kReplaced = 0xffff;

// A resource: holds a descriptor of the process if the kernel supports that. It can be moved. One
// thread.
class ProcessExit {
 public:
  // The state of an answer. In state kKnown, `status` is that of waitpid.
  enum class State : std::uint8_t { kNotYet, kKnown, kNeverKnown };
  struct Answer {
    State state = State::kNotYet;
    int status = 0;
  };

  // Refers to the process with this `pid` and `start`. There is never an answer for a later process
  // with the same pid, or for another pid namespace.
  ProcessExit(pid_t pid, std::uint64_t start) noexcept;

  // Returns the present answer. It never waits, and takes some ten microseconds.
  Answer ask() const noexcept;
  // Returns whether the process lives without a job's shared memory. It takes longer than `ask`. Do
  // not call it for a process that has begun to end: its reader may have to free its memory.
  bool was_replaced() const noexcept;

 private:
  std::optional<int> ask_descriptor() const noexcept;
  Answer ask_proc() const noexcept;

  pid_t pid_;
  std::uint64_t start_;
  Fd descriptor_;
};

// Returns the contents of a file that the kernel generates. Empty if it cannot be read, as when its
// process ends meanwhile.
std::string read_proc_file(const std::string& path);

}  // namespace hocket::os
