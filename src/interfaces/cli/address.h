// HOST:PORT, as options give it.
#pragma once

#include <string>

namespace hocket::cli {

// A value.
struct Address {
  std::string host;
  int port = 0;
};
// Parses "host:port" or "[v6]:port". Throws InvalidArgument, which names the option, for anything
// else.
Address parse_address(const std::string& text, const char* option);

}  // namespace hocket::cli
