// What another process of this host is doing, for people.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace hocket::os {

// A value. As /proc tells of the process's first thread; a text is empty where nobody may know it.
struct ProcessState {
  enum class Doing : std::uint8_t {
    kUnknown,  // ended, another process by now, or not to be seen from here
    kRunning,
    kSleeping,
    kOnDevice,  // sleeps where no signal wakes it: a disk, a network's file system, a driver
    kStopped,   // by a signal
    kTraced,    // held by a debugger
    kDumping,   // its memory is being written to a file
  };
  Doing doing = Doing::kUnknown;
  std::string system_call;  // that the first thread is in
  std::string tracer;       // "gdb (pid 17)", of whoever traces it, held or not
  int running_threads = 0;  // others of its threads that run
  int processor = -1;       // that the first thread last ran on
};

// `start`: as os::process_start, so that another process of the same number is none of it.
ProcessState process_state(pid_t pid, std::uint64_t start);
// The same of one thread of it, and of no other.
ProcessState thread_state(pid_t pid, std::uint64_t start, pid_t thread);
// "stopped by a signal (kill -CONT 17 lets it go on)"; empty where it is unknown.
std::string describe(const ProcessState& state, pid_t pid);

}  // namespace hocket::os
