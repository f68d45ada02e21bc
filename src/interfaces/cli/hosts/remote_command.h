// The command that starts hocket on another host: ssh, or a template of the user's.
#pragma once

#include <string>
#include <vector>

namespace hocket::cli {

// A value.
struct RemoteCommand {
  std::string launcher;  // words as in a shell, with {host}; empty: ssh
  std::string hocket;    // the path of hocket on that host; empty: the path of this program
};

// Splits text into words as a shell does, with quotes and backslashes, and expands nothing. Throws
// InvalidArgument, naming the option, for a quote that does not end.
std::vector<std::string> split_words(const std::string& text, const char* option);

// Returns the words that start `hocket as-host` on a host. {host} in the launcher is replaced by
// the host's name. Without {host}, the name becomes the launcher's last word. A launcher whose
// program is ssh gets the command as one word, quoted for a shell.
std::vector<std::string> words_for(const RemoteCommand& command, const std::string& host);

// Returns the path of this program.
std::string own_path();

}  // namespace hocket::cli
