// The head's connection to hocket on another host: a child process, such as ssh, and its streams.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interfaces/cli/fd.h"
#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// A resource: the destructor kills the child and reaps it. One thread, and the process has no other
// while one is made. The host's end sees the end of its standard input when this ends, whichever
// way.
class HostConnection {
 public:
  // Starts `words` and sends the briefing. Throws SystemError if no process can be started.
  HostConnection(std::vector<std::string> words, const Briefing& briefing);
  HostConnection(HostConnection&& other) noexcept;
  HostConnection& operator=(HostConnection&&) = delete;
  ~HostConnection();

  // Queues an order, and writes as much as fits.
  void send(std::string_view order);
  // Ends the standard input of the host's command, and drops what is queued.
  void hang_up();
  void signal(int number) const noexcept;

  // One turn of an event loop: three descriptors to poll, and handling of the result. Streams that
  // are not wanted are left alone, so that the host's ranks wait.
  static constexpr std::size_t kDescriptors = 3;
  void add_to(std::vector<pollfd>& wait, bool wants_output, bool wants_errors) const;
  void move(std::span<const pollfd> answer);
  // Looks whether the child has ended. Call it on SIGCHLD.
  void reap() noexcept;

  // The notices, standard output without them, and standard error that have come since the last
  // call.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }
  std::string take_output() { return std::exchange(output_, {}); }
  std::string take_errors() { return std::exchange(errors_, {}); }

  // True once the child has ended and all that it wrote has been read.
  bool has_ended() const noexcept { return status_ && !out_.valid() && !err_.valid(); }
  // How the child ended, as waitpid says, once it has.
  std::optional<int> status() const noexcept { return status_; }
  const std::string& program() const noexcept { return program_; }

 private:
  void start(std::vector<std::string>& words);
  void write_some();
  void read_output();
  void sort(std::string_view bytes);

  std::string program_;
  std::string mark_;  // begins a notice
  pid_t pid_ = -1;
  Fd in_, out_, err_;
  std::string queue_;
  std::string unsorted_;  // may be the beginning of a notice
  std::vector<std::string> notices_;
  std::string output_;
  std::string errors_;
  std::optional<int> status_;
};

}  // namespace hocket::cli
