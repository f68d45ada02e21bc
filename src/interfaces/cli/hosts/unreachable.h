// The reason why hocket did not start on another host, and its mend.
#pragma once

#include <string>

namespace hocket::cli {

// A value: the end of a command on another host that never got ready.
struct FailedStart {
  std::string host;
  std::string program;  // that was to start it: "ssh"
  std::string hocket;   // the path of hocket there
  std::string release;  // the release that answered; empty: none did
  std::string errors;   // standard error
  int status = 0;       // as waitpid gives it
};

// Returns a sentence or more for people, without "hocket: ".
std::string explain(const FailedStart& failure);

// Returns the exit code of `hocket run` for it.
int exit_code_of(const FailedStart& failure);

// Returns how a process ended: "exited with code 1".
std::string text_of_end(int status);

// Returns the last line that has more than blanks.
std::string last_line(const std::string& text);

}  // namespace hocket::cli
