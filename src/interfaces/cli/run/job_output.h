// All output streams of a job, and the two sinks that they go to.
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "interfaces/cli/run/output.h"

namespace hocket::cli {

struct JobOutputOptions {
  bool prefix = true;
  bool quiet = false;          // standard output of rank 0 alone
  bool colour_allowed = true;  // if the sink is a terminal
  bool colour_forced = false;  // even if it is not
  std::string log_dir;
};

// A resource: the launcher's ends of the ranks' pipes. Movable; one thread.
class JobOutput {
 public:
  explicit JobOutput(JobOutputOptions options);

  // Makes a stream of `rank`: its standard output or error. Returns the end that the rank writes.
  enum class Kind { kOut, kErr };
  Fd add(int rank, Kind kind);

  // Makes a stream for a host. `feed` passes its bytes, instead of a pipe.
  void add_fed(int host, Kind kind);
  void feed(int host, Kind kind, std::string_view bytes);
  void end_fed();
  // False while the sink is full.
  bool takes(Kind kind) const { return !(kind == Kind::kOut ? out_ : err_)->is_full(); }

  // True if nobody reads the sink any more.
  bool is_gone(Kind kind) const { return (kind == Kind::kOut ? out_ : err_)->is_broken(); }
  // Makes the ranks' next writes fail, because their reader is gone. Notices are still written.
  void deafen(Kind kind) { (kind == Kind::kOut ? out_ : err_)->deafen(); }

  // Appends a notice for the head to standard output.
  void put_notice(std::string_view notice) { out_->put_bytes(notice); }
  // Prints a line of the launcher to standard error.
  void say(std::string_view line);

  // For an event loop: the descriptors to poll, and handling of the result.
  void add_to(std::vector<pollfd>& wait) const;
  void move(std::span<const pollfd> answer);
  // Reads all that a rank has written so far.
  void drain(int rank);
  // Writes unfinished lines of streams that have been silent for a while.
  void flush_idle(Stream::Clock::time_point now);
  std::optional<Stream::Clock::time_point> next_flush() const;

  // Notes that all writers have ended: a stream without data is now at its end.
  void writers_are_gone() { writers_are_gone_ = true; }
  // True while there is something to read or to write.
  bool is_open() const;
  // Describes output that could not be written, and why, for people. Empty: no known loss.
  std::string lost() const;
  // Drops unwritten output. A forked child calls it on its copy.
  void abandon();

 private:
  struct Entry {
    int rank;
    Stream stream;
    Kind kind;
  };
  bool is_shared() const { return out_ == err_; }
  std::string prefix(int rank, const Sink& sink) const;
  void read(Stream& stream);

  JobOutputOptions options_;
  std::shared_ptr<Sink> out_;
  std::shared_ptr<Sink> err_;  // equal to `out_` if both are the same terminal or file
  std::vector<Entry> entries_;
  bool writers_are_gone_ = false;
};

}  // namespace hocket::cli
