#include "hocket/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string_view>

#include "foundation/base/config.h"
#include "foundation/base/hash.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/admission.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/launchers/launchers.h"
#include "membership/rendezvous/store/request.h"

namespace hocket {
namespace {

using rendezvous::kMostRanks;
using rendezvous::LaunchPlace;

LaunchPlace place_from_options(const InitOptions& options) {
  if (!options.rank || !options.size) {
    throw InvalidArgument(fmt::format("init was given a {} and no {}; give both or none",
                                      options.rank ? "rank" : "size",
                                      options.rank ? "size" : "rank"));
  }
  if (*options.size < 1 || *options.rank < 0 || *options.rank >= *options.size) {
    throw InvalidArgument(fmt::format(
        "init was given rank {} of {}; ranks go from 0 to size - 1", *options.rank, *options.size));
  }
  if (*options.size > kMostRanks) {
    throw InvalidArgument(fmt::format("init was given rank {} of {}, and at most {} ranks can meet",
                                      *options.rank,
                                      *options.size,
                                      kMostRanks));
  }
  return {.launcher = "explicit",
          .rank_variable = "rank",
          .size_variable = "size",
          .rank = *options.rank,
          .size = *options.size};
}

LaunchPlace find_place(const InitOptions& options) {
  if (options.rank || options.size) return place_from_options(options);
  return rendezvous::place_from_launcher().value_or(LaunchPlace{.launcher = "single process"});
}

// Returns the abstract AF_UNIX name under which ranks of one host and user meet. Any user could
// take the name, so both ends check the user of the other.
std::string unix_meeting(std::string_view what) {
  constexpr std::size_t kLong = 64;
  return what.size() <= kLong
             ? fmt::format("unix:hocket-{}-{}", ::geteuid(), what)
             : fmt::format("unix:hocket-{}-{:016x}", ::geteuid(), base::hash_of(what));
}

// Returns the address at which ranks meet, from the text that the user or the launcher gave.
// Without a key, ranks at a loopback address meet on AF_UNIX instead.
std::string meeting_at(const std::string& text, std::string_view what, const LaunchInfo& launch) {
  const auto address = rendezvous::parse_address(text, what);
  const auto* tcp = std::get_if<os::HostPort>(&address);
  if (tcp == nullptr) return text;
  if (tcp->port == 0) {
    throw InvalidArgument(
        fmt::format("{} \"{}\" has port 0; all ranks must be given one port", what, text));
  }
  const bool has_no_key = !launch.key && !launch.trust_network;
  return has_no_key && os::is_loopback(tcp->host) ? unix_meeting(std::to_string(tcp->port)) : text;
}

// Returns the address at which ranks meet if none was given. If ranks may be on several hosts, and
// there is a key, it is the address of rank 0 that the launcher names. If all ranks are on this
// host, it is an AF_UNIX name.
std::string default_meeting(const LaunchPlace& place, const LaunchInfo& launch) {
  const bool is_trusted = launch.key || launch.trust_network;
  const bool may_span = place.local_rank < 0 || place.local_size < place.size;
  if (is_trusted && may_span && !place.address.empty()) return place.address;
  if (!place.meeting.empty() && place.local_size == place.size) return unix_meeting(place.meeting);
  const std::string why =
      place.local_size > 0 && place.local_size < place.size
          ? fmt::format("only {} of its {} ranks are on this host", place.local_size, place.size)
          : fmt::format("{}={} and nothing says that all ranks are on one host",
                        place.size_variable,
                        place.size);
  throw InvalidArgument(fmt::format(
      "this job ({}) has no address to meet at: {}. Set HOCKET_STORE=HOST:PORT, rank 0's host and "
      "a "
      "free port there, or give init an address; on one host HOCKET_STORE=127.0.0.1:PORT will do, "
      "between hosts also set HOCKET_KEY_FILE (`hocket key FILE` makes one)",
      place.launcher,
      why));
}

std::optional<Key> find_key(const InitOptions& options, const LaunchPlace& place) {
  if (options.key) return options.key;
  if (place.launcher == "hocket run") {
    const auto fd = base::environment_integer("HOCKET_KEY_FD", 0, 1 << 20);
    if (fd) return Key::from_fd(static_cast<int>(*fd));
  }
  if (const auto path = base::environment("HOCKET_KEY_FILE")) return Key::from_file(*path);
  return std::nullopt;
}

}  // namespace

std::string door_address(const std::string& job) {
  return job.find(':') == std::string::npos ? unix_meeting("door-" + job) : job;
}

LaunchInfo rendezvous::newcomer(const InitOptions& options, const std::string& door) {
  LaunchInfo launch{.key = find_key(options, {}),
                    .trust_network = base::environment_switch("HOCKET_TRUST_NETWORK")};
  launch.door = meeting_at(door_address(door), "the door's address", launch);
  return launch;
}

std::string rendezvous::door_of(const LaunchInfo& launch) {
  if (const auto door = base::environment("HOCKET_DOOR")) {
    return meeting_at(door_address(*door), "HOCKET_DOOR", launch);
  }
  if (!launch.job.empty()) return door_address(launch.job);
  if (launch.store_address.empty()) return door_address(fmt::format("pid-{}", ::getpid()));
  return door_address(fmt::format("{:016x}", base::hash_of(launch.store_address)));
}

std::optional<LaunchPlace> rendezvous::place_from_launcher() {
  for (auto* find : {place_from_hocket,
                     place_from_torchrun,
                     place_from_open_mpi,
                     place_from_mpich,
                     place_from_slurm}) {
    if (auto place = find()) return place;
  }
  return std::nullopt;
}

LaunchInfo detect_launch(const InitOptions& options) {
  const LaunchPlace place = find_place(options);
  LaunchInfo launch{.rank = place.rank,
                    .size = place.size,
                    .local_rank = place.local_rank,
                    .local_size = place.local_size,
                    .launcher = place.launcher,
                    .job = base::environment("HOCKET_JOB").value_or(place.job),
                    .epoch = place.epoch,
                    .trust_network = base::environment_switch("HOCKET_TRUST_NETWORK")};
  if (launch.size == 1) {
    launch.local_rank = 0;
    launch.local_size = 1;
    return launch;
  }
  // If all ranks are on this host, the launcher's name for the job distinguishes the job from
  // others at the same address. Two launchers have no such name. Ranks of Hydra may not find it.
  // That of torchrun is the number of a port, which another job may have been given too.
  const bool all_are_here =
      place.local_size == place.size && place.launcher != "MPICH" && place.launcher != "torchrun";
  if (launch.job.empty() && all_are_here) launch.job = place.meeting;
  launch.key = find_key(options, place);
  const auto store = base::environment("HOCKET_STORE");
  if (!options.address.empty()) {
    launch.store_address = meeting_at(options.address, "init's address", launch);
  } else if (store) {
    launch.store_address = meeting_at(*store, "HOCKET_STORE", launch);
  } else {
    launch.store_address = default_meeting(place, launch);
  }
  const bool launcher_serves = place.launcher == "hocket run" && options.address.empty();
  launch.rank_zero_serves = !launcher_serves;
  if (launcher_serves && !store) {
    throw InvalidArgument(
        "HOCKET_RANK and HOCKET_KEY_FD are set and HOCKET_STORE is not; start "
        "this process by `hocket run`, or unset HOCKET_KEY_FD");
  }
  return launch;
}

}  // namespace hocket
