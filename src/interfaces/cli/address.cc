#include "interfaces/cli/address.h"

#include <fmt/format.h>

#include "hocket/error.h"

namespace hocket::cli {

Address parse_address(const std::string& text, const char* option) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    throw InvalidArgument(fmt::format(
        "{} {}: expected HOST:PORT, such as 127.0.0.1:29400 (port 0: any free one)", option, text));
  }
  Address address{.host = text.substr(0, colon), .port = std::stoi(port)};
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

}  // namespace hocket::cli
