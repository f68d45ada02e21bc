// How another process of this host ended, for those who are not its parent.
//
// Two sources, as neither always has it. A descriptor of the process (pidfd, Linux 6.15 on) tells
// once its parent has taken note. Until then, /proc tells, from the moment on that the process is
// doomed: long before its memory is freed, which takes the kernel 45 ms a GiB.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "foundation/os/fd.h"

namespace hocket::os {

// When process `pid` (0: this one) began, in ticks since the host's start: with the pid it names a
// process for good. 0 where it cannot be known.
std::uint64_t process_start(pid_t pid) noexcept;
// Whether none of its threads runs though it has not ended: it was stopped, or its memory is being
// written to a file (core dump). `start`: as above; another process by now is not.
bool is_halted(pid_t pid, std::uint64_t start) noexcept;
// Where its memory is being written to a file (core dump), which may take minutes: how the process
// ends when that is done, as waitpid says, 0 where that is not known. It never runs again.
std::optional<int> dumps_core_by(pid_t pid, std::uint64_t start) noexcept;
// Within which numbers of processes mean what they mean to this one (its namespace of them). 0
// where it cannot be known.
std::uint64_t process_space() noexcept;

// In the place of waitpid's status (which never is that for an end): the process lives on, as
// another program (exec).
inline constexpr int kReplaced = 0xffff;

// A resource: holds a descriptor of the process where the kernel has such. Movable; one thread.
class ProcessExit {
 public:
  // What an answer is. `status` is waitpid's, where the state is kKnown.
  enum class State : std::uint8_t { kNotYet, kKnown, kNeverKnown };
  struct Answer {
    State state = State::kNotYet;
    int status = 0;
  };

  // The process that bore number `pid` and began at `start`. One that is another by now, or of
  // another namespace of processes, never has an answer.
  ProcessExit(pid_t pid, std::uint64_t start) noexcept;

  // Never waits; takes some ten microseconds.
  Answer ask() const noexcept;
  // Whether it lives, and has no job's shared memory any more. Takes longer, and is not to be asked
  // of a process that has only begun to end: whoever looks at its memory may be the one to free it.
  bool was_replaced() const noexcept;

 private:
  std::optional<int> ask_descriptor() const noexcept;
  Answer ask_proc() const noexcept;

  pid_t pid_;
  std::uint64_t start_;
  Fd descriptor_;
};

// All of a file that the kernel makes up when it is read; empty where it cannot be, as when its
// process ends meanwhile.
std::string read_proc_file(const std::string& path);

}  // namespace hocket::os
