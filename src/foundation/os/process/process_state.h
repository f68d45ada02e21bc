// Describes what another process of this host is doing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hocket::os {

// The state of a process's first thread, according to /proc. A value. A text is empty if it is
// unknown.
struct ProcessState {
  enum class Doing : std::uint8_t {
    kUnknown,  // it has ended, or another process has its pid, or it is not visible
    kRunning,
    kSleeping,
    kOnDevice,  // sleeps uninterruptibly: a disk, a network file system, a driver
    kStopped,   // stopped by a signal
    kTraced,    // held by a debugger
    kDumping,   // the kernel is writing its core dump
  };
  Doing doing = Doing::kUnknown;
  std::string system_call;  // current system call of the first thread
  std::string tracer;       // "gdb (pid 17)": the process that traces it
  int running_threads = 0;  // number of its other threads that run
  int processor = -1;       // the processor on which the first thread last ran
};

// Returns the state of process `pid`. `start` is the result of os::process_start: if a later
// process has the same pid, the state is kUnknown.
ProcessState process_state(pid_t pid, std::uint64_t start);
// Returns the state of one thread of the process.
ProcessState thread_state(pid_t pid, std::uint64_t start, pid_t thread);
// Formats a state for people, such as "stopped by a signal (kill -CONT 17 lets it go on)". Empty if
// it is unknown.
std::string describe(const ProcessState& state, pid_t pid);

}  // namespace hocket::os
