#include "membership/rendezvous/launchers/launchers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "foundation/base/config.h"
#include "foundation/os/sockets/peer_credentials.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/rendezvous/store/request.h"

namespace hocket::rendezvous {
namespace {

std::optional<int> integer(const char* name, int low = 0, int high = kMostRanks) {
  const auto value = base::environment_integer(name, low, high);
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

// The names of a launcher's variables. Null: the launcher has no such variable.
struct Names {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank = nullptr;
  const char* local_size = nullptr;
};

void require_below(const char* what, int value, const char* limit_name, int limit) {
  if (value < limit) return;
  throw InvalidArgument(fmt::format(
      "{}={} must be below {}={}; they contradict each other", what, value, limit_name, limit));
}

std::optional<LaunchPlace> read_place(const Names& names) {
  const auto rank = integer(names.rank);
  const auto size = integer(names.size, 1);
  if (!rank && !size) return std::nullopt;
  if (!rank || !size) {
    throw InvalidArgument(fmt::format("{} is set and {} is not; set both or none",
                                      rank ? names.rank : names.size,
                                      rank ? names.size : names.rank));
  }
  require_below(names.rank, *rank, names.size, *size);
  LaunchPlace place{.launcher = names.launcher,
                    .rank_variable = names.rank,
                    .size_variable = names.size,
                    .rank = *rank,
                    .size = *size};
  if (names.local_rank != nullptr) place.local_rank = integer(names.local_rank).value_or(-1);
  if (names.local_size != nullptr) place.local_size = integer(names.local_size, 1).value_or(-1);
  if (place.local_size >= 0) {
    require_below(names.local_rank, place.local_rank, names.local_size, place.local_size);
    if (place.local_size > place.size) {
      throw InvalidArgument(fmt::format("{}={} must be at most {}={}; they contradict each other",
                                        names.local_size,
                                        place.local_size,
                                        names.size,
                                        place.size));
    }
  }
  return place;
}

// Returns whether a host name is certainly that of this host. It asks no name server.
bool is_this_host(const std::string& host) {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && host == name) return true;
  return os::is_loopback(host);
}

// Returns the pid of Hydra's proxy, which starts all ranks of a job on one host. The proxy has the
// other end of the ranks' PMI_FD, even if shells are in between. Without PMI_FD, returns the
// parent's pid.
pid_t hydra_proxy() {
  if (const auto fd = integer("PMI_FD")) {
    try {
      const pid_t pid = os::peer_credentials(*fd).pid;
      if (pid > 0) return pid;
    } catch (const SystemError&) {
      // PMI_FD is closed, or is not a socket.
    }
  }
  return ::getppid();
}

// Throws if another launcher has started this process within a rank of `hocket run`. The process
// inherits the variables of that rank, but is no rank itself. The other launcher's variables show
// this. They are no sign if `hocket run` itself was started with them, which HOCKET_WITHIN tells.
void refuse_child_of(const LaunchPlace& rank) {
  struct Other {
    const char* rank;
    const char* size;
    const char* launcher;
  };
  constexpr Other kOthers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI"},
                               {"PMI_RANK", "PMI_SIZE", "MPICH"},
                               {"RANK", "WORLD_SIZE", "torchrun"},
                               {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "Slurm"}};
  const std::string within = base::environment("HOCKET_WITHIN").value_or("");
  for (const Other& other : kOthers) {
    const auto its_rank = base::environment(other.rank);
    const auto its_size = base::environment(other.size);
    if (!its_rank || !its_size || *its_size == "1") continue;
    if (fmt::format(",{},", within).find(fmt::format(",{},", other.rank)) != std::string::npos) {
      continue;
    }
    throw InvalidArgument(fmt::format(
        "this process is a child of rank {} of `hocket run`, not a rank: {} started it ({}={}, "
        "{}={}) within that rank; use one launcher: leave away `hocket run`, or start the program "
        "by it alone",
        rank.rank,
        other.launcher,
        other.rank,
        *its_rank,
        other.size,
        *its_size));
  }
}

}  // namespace

std::optional<LaunchPlace> place_from_hocket() {
  auto place = read_place({.launcher = "hocket run",
                           .rank = "HOCKET_RANK",
                           .size = "HOCKET_SIZE",
                           .local_rank = "HOCKET_LOCAL_RANK",
                           .local_size = "HOCKET_LOCAL_SIZE"});
  if (!place) return place;
  if (base::environment("HOCKET_KEY_FD")) {
    refuse_child_of(*place);
  } else {
    place->launcher = "explicit";
  }
  return place;
}

std::optional<LaunchPlace> place_from_torchrun() {
  auto place = read_place({.launcher = "torchrun",
                           .rank = "RANK",
                           .size = "WORLD_SIZE",
                           .local_rank = "LOCAL_RANK",
                           .local_size = "LOCAL_WORLD_SIZE"});
  if (!place) return std::nullopt;
  place->job = base::environment("TORCHELASTIC_RUN_ID").value_or("");
  if (place->job == "none") place->job.clear();  // torchrun's id of a job without a name
  place->epoch = integer("TORCHELASTIC_RESTART_COUNT").value_or(0);
  const auto host = base::environment("MASTER_ADDR");
  const auto port = integer("MASTER_PORT", 1, 65535);
  if (place->local_size < 0 && host && is_this_host(*host)) place->local_size = place->size;
  // The store of torch uses this port on TCP. Ranks of hocket meet on AF_UNIX under the port's
  // number.
  if (port) place->meeting = std::to_string(*port);
  // Between hosts, hocket uses the next port, because the store of torch uses this one.
  if (host && port && *port < 65535 && !os::is_loopback(*host)) {
    place->address = os::to_string({.host = *host, .port = *port + 1});
  }
  return place;
}

std::optional<LaunchPlace> place_from_open_mpi() {
  auto place = read_place({.launcher = "Open MPI",
                           .rank = "OMPI_COMM_WORLD_RANK",
                           .size = "OMPI_COMM_WORLD_SIZE",
                           .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                           .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE"});
  if (!place) return std::nullopt;
  if (const auto space = base::environment("PMIX_NAMESPACE")) place->meeting = "ompi-" + *space;
  return place;
}

std::optional<LaunchPlace> place_from_mpich() {
  auto place = read_place({.launcher = "MPICH",
                           .rank = "PMI_RANK",
                           .size = "PMI_SIZE",
                           .local_rank = "MPI_LOCALRANKID",
                           .local_size = "MPI_LOCALNRANKS"});
  if (!place) return std::nullopt;
  // Slurm also sets the variables of PMI, but its own variables tell more.
  if (place->local_size < 0 && base::environment("SLURM_STEP_ID")) return std::nullopt;
  place->meeting = fmt::format("pmi-{}", hydra_proxy());
  return place;
}

std::optional<LaunchPlace> place_from_slurm() {
  // A batch script has the variables of the job, but not those of a step. It is no rank.
  const auto job = base::environment("SLURM_JOB_ID");
  const auto step = base::environment("SLURM_STEP_ID");
  if (!job || !step || !base::environment("SLURM_PROCID")) return std::nullopt;
  const bool has_step_size = base::environment("SLURM_STEP_NUM_TASKS").has_value();
  auto place = read_place({.launcher = "Slurm",
                           .rank = "SLURM_PROCID",
                           .size = has_step_size ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                           .local_rank = "SLURM_LOCALID"});
  if (!place) return std::nullopt;
  const auto layout =
      base::environment(base::environment("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE"
                                                                       : "SLURM_TASKS_PER_NODE");
  const auto node = integer("SLURM_NODEID");
  if (layout && node) place->local_size = slurm_tasks_on_node(*layout, *node).value_or(-1);
  place->meeting = fmt::format("slurm-{}.{}", *job, *step);
  place->epoch = integer("SLURM_RESTART_COUNT").value_or(0);
  return place;
}

std::optional<int> slurm_tasks_on_node(const std::string& tasks_per_node, int node) {
  std::string_view rest = tasks_per_node;
  const auto take_number = [&rest]() -> std::optional<int> {
    int number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 1) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return number;
  };
  while (!rest.empty()) {
    const auto tasks = take_number();
    if (!tasks) return std::nullopt;
    int nodes = 1;
    if (rest.starts_with("(x")) {
      rest.remove_prefix(2);
      const auto repeated = take_number();
      if (!repeated || !rest.starts_with(")")) return std::nullopt;
      rest.remove_prefix(1);
      nodes = *repeated;
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (rest.starts_with(",")) rest.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace hocket::rendezvous
