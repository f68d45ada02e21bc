#include "interfaces/cli/doctor/host_part.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "hocket/error.h"
#include "hocket/machine.h"
#include "hocket/store.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/doctor/probe.h"
#include "interfaces/cli/hosts/meeting_address.h"
#include "interfaces/cli/hosts/socket_address.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

using Facts = nlohmann::json;
constexpr std::chrono::seconds kForTheStoreToAnswer{5};

// A value: an interface of this host and one of its addresses.
struct UsedInterface {
  std::string name;
  std::string address;
  int mtu = 0;
};

int mtu_of_interface(const std::string& name) {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return fd.valid() && ::ioctl(fd.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

std::vector<UsedInterface> all_interfaces() {
  ifaddrs* first = nullptr;
  std::vector<UsedInterface> result;
  if (::getifaddrs(&first) != 0) return result;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, each->ifa_addr, address.length);
    result.push_back({each->ifa_name, address.text(), mtu_of_interface(each->ifa_name)});
  }
  return result;
}

// Returns the interface that ranks use: HOCKET_INTERFACE, or the interface of the route to their
// meeting point.
UsedInterface find_used(const std::string& meeting) {
  const std::string chosen(EnvironmentBlock::inherited().get("HOCKET_INTERFACE"));
  std::string address;
  const auto target = resolve(meeting);
  if (!target.empty()) {
    if (const auto source = source_toward(target.front())) address = source->text();
  }
  for (const UsedInterface& each : all_interfaces()) {
    if (chosen.empty() ? each.address == address : each.name == chosen || each.address == chosen) {
      return each;
    }
  }
  throw InvalidArgument(
      chosen.empty()
          ? fmt::format("no interface leads to {}, where the hosts meet", meeting)
          : fmt::format("HOCKET_INTERFACE={} is neither an interface that is up nor its address",
                        chosen));
}

// Reads the head's lines. A head that sends nothing for a long time counts as gone.
class HeadLines {
 public:
  std::optional<std::string> next() {
    std::size_t end = 0;
    while ((end = unread_.find('\n')) == std::string::npos) {
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      const auto limit = std::chrono::milliseconds(kHeadSilence);
      if (::poll(&ready, 1, static_cast<int>(limit.count())) <= 0) return std::nullopt;
      std::array<char, 4096> buffer;
      const ssize_t length = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (length <= 0) return std::nullopt;
      unread_.append(buffer.data(), static_cast<std::size_t>(length));
    }
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
  }

 private:
  std::string unread_;
};

// Carries out the head's orders, in one thread. The servers have other threads.
class HostPart {
 public:
  HostPart(const Briefing& briefing, const std::string& key_file)
      : briefing_(briefing), key_(briefing.key) {
    if (key_file.empty()) return;
    try {
      key_ = Key::from_file(key_file);
      facts_["key"] = key_ == briefing.key ? "same" : "differs";
    } catch (const Error& error) {
      facts_["key"] = error.what();
    }
  }

  int run() {
    tell_facts();
    HeadLines lines;
    while (const auto line = lines.next()) {
      std::istringstream words(*line);
      std::string word;
      words >> word;
      if (word == "go") listen(words);
      if (word == "clock") tell("clock", now());
      if (word == "probe") try_way(words);
      if (word == "end") {
        tell("heard", server_ ? Facts(server_->end()) : Facts::array());
        return 0;
      }
    }
    return kExitFailure;
  }

 private:
  static std::int64_t now() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  }

  void tell(std::string_view name, const Facts& facts) const {
    const auto replace = Facts::error_handler_t::replace;
    write_notice(STDOUT_FILENO,
                 briefing_.token,
                 fmt::format("{} {}", name, facts.dump(-1, ' ', false, replace)));
  }

  void tell_facts() {
    const Machine machine = inspect_machine(false);
    facts_["ucx"] = "";
    for (const Software& library : machine.libraries) {
      if (library.name == "UCX") facts_["ucx"] = library.version;
    }
    facts_["problems"] = Facts::array();
    for (const Problem& problem : find_problems(machine)) {
      if (!problem.stops_hocket) continue;
      facts_["problems"].push_back({{"what", problem.what}, {"mend", problem.mend}});
    }
    facts_["interfaces"] = Facts::array();
    for (const UsedInterface& each : all_interfaces()) {
      facts_["interfaces"].push_back(
          {{"name", each.name}, {"address", each.address}, {"mtu", each.mtu}});
    }
    facts_["name_means"] = Facts::array();
    for (const SocketAddress& each : resolve(briefing_.self().address())) {
      facts_["name_means"].push_back(each.text());
    }
    facts_["ports"] = EnvironmentBlock::inherited().get("HOCKET_PORTS");
    if (briefing_.host == 0) serve_store();
    tell("facts", facts_);
  }

  // Serves a store on the first host, as a job does.
  void serve_store() {
    try {
      meeting_ = meeting_address(briefing_);
      store_.emplace(StoreServer::Options{
          .address = meeting_, .key = key_, .job = briefing_.job, .max_clients = 1024});
      facts_["meet"] = meeting_;
      facts_["store"] = store_->address();
    } catch (const Error& error) {
      facts_["meet_error"] = error.what();
    }
  }

  void listen(std::istringstream& words) {
    std::string store;
    words >> meeting_ >> store;
    Facts facts;
    try {
      const UsedInterface used = find_used(meeting_);
      server_.emplace(used.address, briefing_.token, briefing_.host);
      facts = {{"interface", used.name},
               {"address", used.address},
               {"mtu", used.mtu},
               {"port", server_->port()}};
    } catch (const Error& error) {
      facts["error"] = error.what();
    }
    facts["store"] = try_store(store);
    tell("listens", facts);
  }

  // Tries to reach the store as the ranks of a job do: its port, TLS, key and release. Returns the
  // error, if any.
  std::string try_store(const std::string& address) const {
    try {
      connect_store({.address = address,
                     .key = key_,
                     .job = briefing_.job,
                     .role = StoreRole::kObserver,
                     .timeout = kForTheStoreToAnswer})
          ->close();
      return "yes";
    } catch (const Error& error) {
      return error.what();
    }
  }

  void try_way(std::istringstream& words) const {
    int peer = 0;
    std::string address;
    int port = 0;
    words >> peer >> address >> port;
    const ProbeResult result = probe(address, port, briefing_.token, briefing_.host, peer);
    tell("probed",
         {{"to", peer},
          {"error", result.error},
          {"is_other", result.is_other},
          {"stalls", result.stalls},
          {"latency", result.latency},
          {"bandwidth", result.bandwidth},
          {"mtu", result.mtu}});
  }

  const Briefing& briefing_;
  Key key_;
  Facts facts_;
  std::string meeting_;
  std::optional<StoreServer> store_;
  std::optional<ProbeServer> server_;
};

}  // namespace

int examine_as_host(const Briefing& briefing, const std::string& key_file) {
  return HostPart(briefing, key_file).run();
}

}  // namespace hocket::cli
