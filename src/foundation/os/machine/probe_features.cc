#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "foundation/os/machine/probe.h"
#include "foundation/os/memfd.h"
#include "foundation/os/process/process_memory.h"
#include "foundation/os/segment.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

// A probe returns 0, or the error number of the failed call.
using Probe = int (*)();

int error_of(long result) { return result < 0 ? errno : 0; }

int probe_sealed_memfd() {
  const Fd fd = make_memfd("hocket-probe");
  if (!fd) return errno;
  int error = error_of(::ftruncate(fd.get(), static_cast<off_t>(page_bytes())));
  if (error == 0) error = error_of(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
  if (error == 0 && ::ftruncate(fd.get(), 0) == 0) error = EOPNOTSUPP;  // a seal without effect
  return error;
}

// Tries to reserve as much address space as a job's segment may need. It touches no memory.
int probe_large_segment() {
  const std::size_t bytes = memory_bytes();
  std::signal(SIGXFSZ, SIG_IGN);
  const Fd fd = make_memfd("hocket-probe");
  if (!fd) return errno;
  int error = error_of(::ftruncate(fd.get(), static_cast<off_t>(bytes)));
  if (error == 0) {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
    if (memory == MAP_FAILED) {
      error = errno;
    } else {
      ::munmap(memory, bytes);
    }
  }
  return error;
}

int probe_descriptor_passing() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  const Fd sender(ends[0]);
  const Fd receiver(ends[1]);
  const std::byte payload{};
  try {
    send_fd(sender, receiver, {&payload, 1}, base::Deadline::in(std::chrono::seconds(1)));
  } catch (const SystemError& error) {
    return error.error_number();
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  return error_of(::getsockopt(sender.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length));
}

int probe_futex_waitv() {
  std::uint32_t word = 1;
  futex_waitv wait{};
  wait.val = 0;  // differs from `word`, so that the call returns at once
  wait.uaddr = reinterpret_cast<std::uintptr_t>(&word);
  wait.flags = FUTEX_32;
  const long result = ::syscall(SYS_futex_waitv, &wait, 1, 0, nullptr, CLOCK_MONOTONIC);
  return result >= 0 || errno == EAGAIN ? 0 : errno;
}

// Returns memory that this process and its forked children share. Null: errno has the reason.
template <typename T>
T* shared_memory() {
  void* memory =
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

int probe_robust_mutex() {
  auto* mutex = shared_memory<pthread_mutex_t>();
  if (mutex == nullptr) return errno;
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(mutex, &attributes);
  const pid_t child = ::fork();
  if (child == 0) {
    ::pthread_mutex_lock(mutex);
    ::_exit(0);  // while it holds the mutex
  }
  if (child < 0) return errno;
  ::waitpid(child, nullptr, 0);
  const int result = ::pthread_mutex_trylock(mutex);
  ::munmap(mutex, sizeof *mutex);
  return result == EOWNERDEAD ? 0 : EOPNOTSUPP;
}

int probe_pidfd() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  if (child < 0) return errno;
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  int error = error_of(fd);
  if (fd >= 0) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, 1000) != 1) error = ETIMEDOUT;
    ::close(fd);
  }
  ::waitpid(child, nullptr, 0);
  return error;
}

int probe_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0) return errno;
  return (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 ? 0 : EOPNOTSUPP;
}

// Lets one child process copy a word from or to the memory of another child. This is the usual
// relation of ranks: they are children of one process. `copy` runs in the second child. It gets the
// pid of the first child, and the address of the word there.
template <typename Copy>
int probe_copy(const Copy& copy) {
  std::uint64_t word = 0;
  std::array<int, 2> ready{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0) return errno;
  const pid_t owner = fork_bound_child();
  if (owner == 0) {
    let_siblings_access();
    word = 1;
    if (::write(ready[1], "", 1) == 1) ::pause();
    ::_exit(0);
  }
  if (owner < 0) return errno;
  char byte = 0;
  if (::read(ready[0], &byte, 1) != 1) return errno;
  const pid_t peer = fork_bound_child();
  if (peer == 0) ::_exit(copy(owner, &word));
  int status = -1;
  if (peer > 0) ::waitpid(peer, &status, 0);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EOPNOTSUPP;
}

int probe_single_copy() {
  return probe_copy([](pid_t owner, std::uint64_t* word) {
    std::uint64_t found = 0;
    const int error = read_process_memory(owner, &found, word, sizeof found);
    return error != 0 || found == 1 ? error : EOPNOTSUPP;
  });
}

int probe_copy_by_both_ends() {
  return probe_copy([](pid_t owner, std::uint64_t* word) {
    const std::uint64_t sent = 2;
    const std::uint64_t ticket = 1;
    const std::uint32_t alive = 0;
    return write_process_memory(
        owner, word, &sent, sizeof sent, {.ticket = &ticket, .valid = ticket, .owner = &alive});
  });
}

int probe_wipe_on_fork() {
  const auto page = page_bytes();
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  const int error = error_of(::madvise(memory, page, MADV_WIPEONFORK));
  ::munmap(memory, page);
  return error;
}

struct Row {
  const char* name;
  Probe probe;
  bool required;
  const char* purpose;
};

constexpr std::array kRows{
    Row{"sealed memfd", probe_sealed_memfd, true, "shared memory without a name"},
    Row{"large segment", probe_large_segment, true, "address space for the job's shared memory"},
    Row{"descriptor passing", probe_descriptor_passing, true, "handing shared memory to peers"},
    Row{"futex_waitv", probe_futex_waitv, false, "one watcher for all peers; else a slower watch"},
    Row{"robust mutex", probe_robust_mutex, true, "seeing a peer's death in 0.1 ms"},
    Row{"pidfd", probe_pidfd, false, "saying by which signal a peer ended"},
    Row{"membarrier", probe_membarrier, false, "waking sleepers at once; else they sleep for 1 ms"},
    Row{"single copy",
        probe_single_copy,
        false,
        "long arrays in one copy between ranks; else in two"},
    Row{"copy by both ends",
        probe_copy_by_both_ends,
        false,
        "both ranks copy parts of a long array; else its reader alone"},
    Row{"wipe on fork", probe_wipe_on_fork, true, "finding forked children"},
};

}  // namespace

std::vector<Feature> probe_features() {
  std::vector<Feature> result;
  for (const Row& row : kRows) {
    // Each probe runs in its own child process, because some probes change signal handlers or fork.
    // Also, seccomp may kill the process that makes a forbidden call.
    const auto answer = run_in_child([&row] { return std::to_string(row.probe()); }, 3000);
    const int error = answer ? std::stoi(*answer) : -1;
    result.push_back({.name = row.name,
                      .works = error == 0,
                      .required = row.required,
                      .purpose = row.purpose,
                      .error = error == 0  ? ""
                               : error < 0 ? "the process that tried was killed"
                                           : std::strerror(error)});
  }
  return result;
}

}  // namespace hocket::os
