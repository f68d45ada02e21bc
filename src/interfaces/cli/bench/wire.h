// The protocol between `hocket bench` and the ranks of each library: each message is one line of
// text on an AF_UNIX stream. The command asks, and every rank answers once. An idle rank blocks in
// `read_line`, so that a library that is not being measured uses no processor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interfaces/cli/bench/case.h"

namespace hocket::cli::bench {

// A resource: one end of a connected stream socket. One thread. Throws std::system_error.
class Channel {
 public:
  explicit Channel(int fd) noexcept : fd_(fd) {}
  Channel(Channel&& other) noexcept;
  Channel& operator=(Channel&& other) noexcept;
  ~Channel();

  int fd() const noexcept { return fd_; }
  void write_line(std::string_view line);
  // Waits for the next line; absent when the other end has closed.
  std::optional<std::string> read_line();
  // Reads available data, without waiting. False when the other end has closed.
  bool receive();
  // Returns the next complete line, if there is one.
  std::optional<std::string> take_line();

 private:
  int fd_ = -1;
  std::string received_;
};

// Connects to the command that started this process, by variables that the command has set.
inline constexpr const char* kSocketVariable = "HOCKET_BENCH_SOCKET";
inline constexpr const char* kTokenVariable = "HOCKET_BENCH_TOKEN";
Channel connect_to_command(const std::string& socket_name);

// The first line of a rank. A value.
struct Hello {
  std::string token;
  std::string library;
  int rank = 0;
  int ranks = 0;
  std::string processors;  // the processors that it may run on: "0", "0-3,8"
  std::string version;     // the rest of the line
};

// A question to every rank of a library. `slot` names an open case.
enum class Verb : std::uint8_t {
  kOpen,   // make the arrays of `subject`
  kCheck,  // make one call with new numbers from `seed`, and check the results
  kRun,    // `warmup` calls, a barrier, then `calls` calls, timed
  kClose,  // free the arrays
};
struct Request {
  Verb verb = Verb::kOpen;
  int slot = 0;
  Case subject = {};
  std::uint32_t seed = 0;
  long warmup = 0;
  long calls = 0;
  bool dirty = false;  // rewrite inputs before each call, then synchronize; neither is timed
};

enum class Outcome : std::uint8_t {
  kDone,     // `nanoseconds` is the time of a run, 0 of anything else
  kWrong,    // results are wrong; `text` gives the place
  kRefused,  // the library cannot do this case; `text` says why
  kFailed,   // the library failed, and answers no further requests
};
struct Answer {
  Outcome outcome = Outcome::kDone;
  std::int64_t nanoseconds = 0;
  std::string text;
};

// Conversion to and from a line without its end. Parsing throws std::runtime_error with the line.
std::string to_line(const Hello& hello);
std::string to_line(const Request& request);
std::string to_line(const Answer& answer);
Hello parse_hello(const std::string& line);
Request parse_request(const std::string& line);
Answer parse_answer(const std::string& line);

}  // namespace hocket::cli::bench
