// The reason why hocket did not start on another host, with advice.
#pragma once

#include <string>

namespace hocket::cli {

// A value: how hocket's command on another host ended before it was ready.
struct FailedStart {
  std::string host;
  std::string program;  // the launcher's program: "ssh"
  std::string hocket;   // the path of hocket there
  std::string release;  // the release that answered; empty: none did
  std::string errors;   // standard error
  int status = 0;       // as waitpid gives it
};

// Returns the reason and advice as sentences, without "hocket: ".
std::string explain(const FailedStart& failure);

// Returns the exit code of `hocket run` for this failure.
int exit_code_of(const FailedStart& failure);

// Returns how a process ended: "exited with code 1".
std::string text_of_end(int status);

// Returns the last line that has more than blanks.
std::string last_line(const std::string& text);

}  // namespace hocket::cli
