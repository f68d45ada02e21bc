// An owned file descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "hocket/error.h"

namespace hocket::cli {

// A resource: closes its descriptor. Movable; any thread; the destructor ignores errors.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  // Returns the descriptor, which the caller then owns.
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// Owns the result of a system call, or throws SystemError that names the action.
inline Fd checked_fd(int fd, const std::string& what) {
  if (fd < 0) throw SystemError(what, errno);
  return Fd(fd);
}

struct Pipe {
  Fd read;
  Fd write;
};

// Makes a pipe whose ends are closed by exec.
inline Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw SystemError("cannot make a pipe for a rank's output", errno);
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace hocket::cli
