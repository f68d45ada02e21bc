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

// A resource: the destructor kills the child and reaps it. One thread; the process must have no
// other when this is made. However this ends, the host's command sees the end of its standard
// input.
class HostConnection {
 public:
  // Starts `words` and sends the briefing. Throws SystemError if no process can be started.
  HostConnection(std::vector<std::string> words, const Briefing& briefing);
  HostConnection(HostConnection&& other) noexcept;
  HostConnection& operator=(HostConnection&&) = delete;
  ~HostConnection();

  // Queues an order, and writes as much as fits.
  void send(std::string_view order);
  // Closes the standard input of the host's command, and drops queued orders.
  void hang_up();
  void signal(int number) const noexcept;

  // For an event loop: adds three descriptors to poll, and handles the result. Streams that the
  // caller does not want are not read, so that the host's ranks wait.
  static constexpr std::size_t kDescriptors = 3;
  void add_to(std::vector<pollfd>& wait, bool wants_output, bool wants_errors) const;
  void move(std::span<const pollfd> answer);
  // Checks whether the child has ended. Call it on SIGCHLD.
  void reap() noexcept;

  // Each returns what has arrived since its last call: notices, standard output without them, and
  // standard error.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }
  std::string take_output() { return std::exchange(output_, {}); }
  std::string take_errors() { return std::exchange(errors_, {}); }

  // True once the child has ended and all that it wrote has been read.
  bool has_ended() const noexcept { return status_ && !out_.valid() && !err_.valid(); }
  // The child's end, as from waitpid. Absent: it has not ended.
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
