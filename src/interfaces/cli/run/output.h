// The ranks' output: many streams into one terminal, file or pipe, whole lines at a time.
//
// A line ends with '\n' or '\r' (progress bars). Text without an end of line is held back until the
// end comes. It is written earlier in two cases. The rank is silent for kIdle (so that a prompt
// shows), or the text exceeds kLongestLine. A longer line is written in pieces. It reserves its
// sink until it ends, its rank is silent, or it exceeds kLongestKept. So lines of two ranks never
// mix. Buffers are bounded. While a sink is not read, or is reserved for another rank, the launcher
// does not read the ranks that write to it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "hocket/run_clock.h"
#include "interfaces/cli/fd.h"

namespace hocket::cli {

inline constexpr std::chrono::milliseconds kIdle{200};
inline constexpr std::size_t kLongestLine = std::size_t{1} << 16;
// A line of more than this length no longer keeps other ranks' lines waiting.
inline constexpr std::size_t kLongestKept = std::size_t{1} << 24;

// A resource: the destination of lines; the descriptor is not owned. One thread. Never blocks,
// except on a terminal or pipe that takes less than a page although it said it was ready.
class Sink {
 public:
  explicit Sink(int fd) noexcept : fd_(fd) {}

  int fd() const noexcept { return fd_; }
  bool wants_to_write() const noexcept { return !pending_.empty() && !broken_; }
  bool is_full() const noexcept { return pending_.size() >= kFull; }
  // True if the reader is gone.
  bool is_broken() const noexcept { return broken_ || deaf_; }
  // Accepts no more lines, as if the reader were gone.
  void deafen() noexcept { deaf_ = true; }
  // The error (errno) of a failed write, except for a reader that went away; 0: none.
  int error() const noexcept { return error_; }

  // Adds a line, or a piece of one, of `owner`, a stream's number. `prefix` goes before the start
  // of a line.
  void put(int owner, std::string_view prefix, std::string_view text);
  // Ends a line that `owner` has left unfinished, if it is the last.
  void end_line(int owner);
  // Reserves the sink for a long line of `owner`. Others wait until the line ends or is released.
  void keep_for(int owner) noexcept { kept_for_ = owner; }
  void let_go(int owner) noexcept {
    if (kept_for_ == owner) kept_for_ = kNobody;
  }
  bool is_for(int owner) const noexcept { return kept_for_ == kNobody || kept_for_ == owner; }
  // Adds a line of the launcher.
  void put_line(std::string_view text);
  // Adds bytes that are part of no line.
  void put_bytes(std::string_view bytes) {
    if (!broken_) pending_ += bytes;
  }
  // Drops pending and all future output.
  void abandon() noexcept;
  // Writes as much as the descriptor, known to be ready, takes at once.
  void write_some();

 private:
  static constexpr std::size_t kFull = std::size_t{1} << 18;
  static constexpr int kNobody = -1;

  int fd_;
  std::string pending_;
  std::size_t written_ = 0;    // bytes of pending_ that are out
  int line_owner_ = kNobody;   // the stream that wrote the last, unfinished line
  int kept_for_ = kNobody;     // the only stream that may write
  bool at_line_start_ = true;  // false: within a line. True with an owner: after '\r'
  bool broken_ = false;
  bool deaf_ = false;
  int error_ = 0;
};

// A resource: one stream of one rank. One thread.
class Stream {
 public:
  struct Options {
    int owner = 0;
    std::string prefix;
    Sink* sink = nullptr;  // absent: not shown
    Fd log;                // absent: not logged
  };
  using Clock = RunClock;

  Stream(Fd source, Options options) : source_(std::move(source)), options_(std::move(options)) {}

  int fd() const noexcept { return source_.get(); }
  bool is_open() const noexcept { return source_.valid(); }
  bool can_read() const noexcept {
    return is_open() && !(options_.sink && (options_.sink->is_full() || !is_its_turn()));
  }
  // Reads available bytes, at most one buffer; closes itself at the end of the stream. True while
  // there may be more.
  bool read_some();
  // True while text without an end of line is held back, or the sink is reserved for a long line.
  bool holds_back() const noexcept { return !partial_.empty() || keeps_sink_; }
  Clock::time_point last_read() const noexcept { return last_read_; }
  void last_read(Clock::time_point time) noexcept { last_read_ = time; }
  // Handles bytes as if it had read them.
  void take(std::string_view text);
  void flush_partial();
  void close();
  // The error (errno) that ended the log; 0: none.
  int log_error() const noexcept { return log_error_; }

 private:
  void log(std::string_view text);
  void show(std::string_view text);
  bool is_its_turn() const noexcept { return options_.sink->is_for(options_.owner); }

  Fd source_;
  Options options_;
  std::string partial_;
  std::size_t long_bytes_ = 0;  // length so far of a long line
  bool keeps_sink_ = false;     // for the rest of the long line
  Clock::time_point last_read_{};
  int log_error_ = 0;
};

}  // namespace hocket::cli
