#include "interfaces/cli/hosts/meeting_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "hocket/error.h"
#include "interfaces/cli/hosts/socket_address.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

std::optional<std::string> address_by_name(const std::string& name) {
  for (const SocketAddress& address : resolve(name)) {
    if (address.is_usable() && is_of_this_host(address)) return address.text();
  }
  return std::nullopt;
}

std::optional<std::string> address_by_route(const Briefing& briefing) {
  for (const HostSlots& other : briefing.hosts) {
    if (&other == &briefing.self()) continue;
    for (const SocketAddress& target : resolve(other.address())) {
      const auto source = source_toward(target);
      if (target.is_usable() && source && source->is_usable()) return source->text();
    }
  }
  return std::nullopt;
}

// Returns this host's address from SSH_CONNECTION, which holds the address and port of both ends.
std::optional<std::string> address_by_ssh() {
  std::istringstream words{std::string(EnvironmentBlock::inherited().get("SSH_CONNECTION"))};
  std::string client;
  std::string port;
  std::string here;
  words >> client >> port >> here;
  return here.empty() ? std::nullopt : address_by_name(here);
}

bool are_all_loopback(const Briefing& briefing) {
  return std::ranges::all_of(briefing.hosts, [](const HostSlots& host) {
    const auto addresses = resolve(host.address());
    return !addresses.empty() && std::ranges::all_of(addresses, &SocketAddress::is_loopback);
  });
}

}  // namespace

std::string meeting_address(const Briefing& briefing) {
  const std::string name = briefing.self().address();
  if (const auto found = address_by_name(name)) return *found;
  if (const auto found = address_by_route(briefing)) return *found;
  if (const auto found = address_by_ssh()) return *found;
  if (are_all_loopback(briefing)) return resolve(name).front().text();
  std::string means;
  for (const SocketAddress& each : resolve(name))
    means += (means.empty() ? "" : ", ") + each.text();
  throw InvalidArgument(fmt::format(
      "no address is known by which the other hosts reach this one, the first: '{}' means {} here; "
      "name one by --rendezvous ADDRESS",
      name,
      means.empty() ? "nothing" : means));
}

}  // namespace hocket::cli
