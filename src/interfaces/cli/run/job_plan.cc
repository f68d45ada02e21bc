#include "interfaces/cli/run/job_plan.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "interfaces/cli/address.h"
#include "interfaces/cli/hosts/briefing.h"
#include "interfaces/cli/mpi_libraries.h"
#include "interfaces/cli/run/meeting.h"
#include "interfaces/cli/run/program.h"

namespace hocket::cli {
namespace {

void check_nodes(const RunOptions& options) {
  if (options.briefing != nullptr) return;  // the head has checked it
  if (options.nodes < 1 || options.nodes > kMaxRanks) {
    throw InvalidArgument(fmt::format(
        "--nnodes {}: the number of hosts must be from 1 to {}", options.nodes, kMaxRanks));
  }
  if (options.node_rank < 0 || options.node_rank >= options.nodes) {
    throw InvalidArgument(fmt::format(
        "--node-rank {}: hosts are numbered from 0 to {}", options.node_rank, options.nodes - 1));
  }
  if (options.nodes == 1) return;
  if (options.rendezvous.empty()) {
    throw InvalidArgument(
        "--nnodes needs --rendezvous HOST:PORT, an address of host 0 and a free port there");
  }
  if (parse_address(options.rendezvous, "--rendezvous").port == 0) {
    throw InvalidArgument("--rendezvous: all hosts must be given one port, and 0 is none");
  }
}

// Returns the job's key: a new one for a job of one host, else that in the key file of each host.
Key find_key(const RunOptions& options, const EnvironmentBlock& environment) {
  if (options.briefing != nullptr) return options.briefing->key;
  if (options.nodes == 1 && options.key_file.empty()) return Key::generate();
  const std::string file =
      options.key_file.empty() ? std::string(environment.get("HOCKET_KEY_FILE")) : options.key_file;
  if (!file.empty()) return Key::from_file(file);
  throw InvalidArgument(
      "--nnodes needs the job's key: `hocket key FILE` makes one; copy it to every host and give "
      "--key FILE, or set HOCKET_KEY_FILE");
}

constexpr std::array<std::string_view, 8> kOwnVariables{"HOCKET_RANK",
                                                        "HOCKET_SIZE",
                                                        "HOCKET_LOCAL_RANK",
                                                        "HOCKET_LOCAL_SIZE",
                                                        "HOCKET_STORE",
                                                        "HOCKET_JOB",
                                                        "HOCKET_KEY_FD",
                                                        "HOCKET_WITHIN"};

void check(const RunOptions& options) {
  if (options.ranks < 1 || options.ranks > kMaxRanks) {
    throw InvalidArgument(
        fmt::format("-n {}: the number of ranks must be from 1 to {}", options.ranks, kMaxRanks));
  }
  for (const std::string& setting : options.environment) {
    if (setting.find('=') == std::string::npos || setting.front() == '=') {
      throw InvalidArgument(fmt::format("--env {}: expected NAME=VALUE", setting));
    }
    const std::string_view name(setting.data(), setting.find('='));
    if (is_own_variable(name)) {
      throw InvalidArgument(
          fmt::format("--env {}: {} is set by hocket run itself, of each rank", setting, name));
    }
  }
}

// Makes a path absolute, because ranks may change their working folder.
std::string absolute(std::string_view option, const std::string& folder) {
  std::error_code error;
  const auto path = std::filesystem::absolute(folder, error);
  if (!error) return path.string();
  throw InvalidArgument(
      fmt::format("{} {}: the folder that this runs in cannot be found: {}; go to another one",
                  option,
                  folder,
                  error.message()));
}

// Raises the limit of open files. Each rank needs two pipes: two descriptors here, and four until
// the guardian has been forked.
rlim_t allow_open_files(int ranks) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = limit.rlim_cur;
  const auto needed = static_cast<rlim_t>(ranks) * 8 + 64;
  if (before < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  return before;
}

std::string name_job(const RunOptions& options) {
  if (options.briefing != nullptr) return options.briefing->job;
  return options.nodes == 1 ? "run-" + random_name() : "run at " + options.rendezvous;
}

// Returns this host's ranks among all, if that needs no answer from other launchers.
Layout layout_of_this_host(const RunOptions& options, const Key& key, const std::string& job) {
  if (options.briefing == nullptr) {
    if (options.node_rank != 0) return ask_for_layout(options, key, job);
    return {.first_rank = 0, .size = options.ranks};
  }
  const auto& hosts = options.briefing->hosts;
  return {.first_rank = total_slots({hosts.begin(), hosts.begin() + options.node_rank}),
          .size = total_slots(hosts)};
}

// Lists variables of other launchers in this environment. They do not describe this job's ranks.
std::string outer_launchers(const EnvironmentBlock& environment) {
  std::string names;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID"}) {
    if (environment.has(name)) names += (names.empty() ? "" : ",") + std::string(name);
  }
  return names;
}

// Makes programs find hocket's MPI: by the system's loader, by mpi4py's wheel, which has a module
// for each MPI, and by JAX's copy of MPItrampoline.
void set_mpi(EnvironmentBlock& environment) {
  const auto found = mpi_folder();
  if (!found) {
    throw InvalidArgument(
        "--mpi: this hocket was built without its MPI: no lib/hocket-mpi is beside its command");
  }
  const std::string& folder = *found;
  const std::string others(environment.get("LD_LIBRARY_PATH"));
  environment.set("LD_LIBRARY_PATH", others.empty() ? folder : folder + ":" + others);
  environment.set("MPI4PY_MPIABI", "mpich");
  environment.set("MPI4PY_LIBMPI", folder + "/libmpi.so.12");
  environment.set("MPITRAMPOLINE_LIB", folder + "/libhocket_mpiwrapper.so");
}

EnvironmentBlock common_environment(const RunOptions& options, const std::string& job) {
  EnvironmentBlock environment = EnvironmentBlock::inherited();
  if (options.join.empty()) {
    environment.erase("HOCKET_KEY_FILE");
  } else {
    environment.set("HOCKET_JOIN", options.join);
    if (!options.key_file.empty()) {
      environment.set("HOCKET_KEY_FILE", absolute("--key", options.key_file));
    }
  }
  environment.set("HOCKET_LOCAL_SIZE", std::to_string(options.ranks));
  environment.set("HOCKET_JOB", job);
  environment.set("HOCKET_KEY_FD", std::to_string(kKeyFd));
  environment.erase("HOCKET_CHILD_OF");  // the ranks belong to this job, not to an outer one
  environment.erase("HOCKET_WITHIN");
  const std::string outer = outer_launchers(environment);
  if (!outer.empty()) environment.set("HOCKET_WITHIN", outer);
  if (!options.trace_dir.empty()) {
    environment.set("HOCKET_TRACE", absolute("--trace", options.trace_dir));
  }
  if (!options.audit_dir.empty()) {
    environment.set("HOCKET_AUDIT", absolute("--audit", options.audit_dir));
  }
  if (!options.metrics.empty()) environment.set("HOCKET_METRICS", "count");
  if (options.mpi) set_mpi(environment);
  // Python buffers output to a pipe, so it would show nothing for long.
  if (!environment.has("PYTHONUNBUFFERED")) environment.set("PYTHONUNBUFFERED", "1");
  return environment;
}

void apply_user_settings(EnvironmentBlock& environment, const RunOptions& options) {
  for (const std::string& setting : options.environment) {
    const std::size_t equals = setting.find('=');
    environment.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
}

Fd open_null(int flags) { return checked_fd(::open("/dev/null", flags | O_CLOEXEC), "/dev/null"); }

// Makes the standard input of rank 0: the input that the head passes on, or the launcher's own.
Fd first_input(std::optional<HeadLink>& head) {
  if (head) return head->make_input();
  return checked_fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "cannot share standard input");
}

JobOutput make_output(const RunOptions& options, const EnvironmentBlock& environment) {
  if (!options.log_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.log_dir, error);
    if (error) {
      throw InvalidArgument(fmt::format(
          "--log-dir {}: cannot make the folder: {}", options.log_dir, error.message()));
    }
  }
  return JobOutput({.prefix = options.prefix && (options.ranks > 1 || options.nodes > 1),
                    .quiet = options.quiet,
                    .colour_allowed = environment.get("NO_COLOR").empty(),
                    .colour_forced = options.briefing != nullptr && options.briefing->colour,
                    .log_dir = options.log_dir});
}

}  // namespace

bool is_own_variable(std::string_view name) {
  return std::ranges::find(kOwnVariables, name) != kOwnVariables.end();
}

void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) checked_fd(::open("/dev/null", O_RDWR), "/dev/null").release();
  }
}

Fd take_signals(sigset_t& mask_before) {
  ::signal(SIGPIPE, SIG_IGN);  // writing without a reader then returns an error
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2}) {
    struct sigaction action{};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, number);
  }
  ::sigprocmask(SIG_BLOCK, &set, &mask_before);
  return checked_fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "cannot make a signalfd");
}

JobPlan plan_job(const RunOptions& options) {
  check(options);
  ::signal(SIGXFSZ, SIG_IGN);  // writing too large a file then returns an error
  open_standard_descriptors();
  check_nodes(options);
  if (!options.join.empty() && options.nodes != 1) {
    throw InvalidArgument("--join and --nnodes exclude each other: run one launcher on each host");
  }
  const Key secret = find_key(options, EnvironmentBlock::inherited());
  const std::string job = name_job(options);
  EnvironmentBlock environment = common_environment(options, job);
  apply_user_settings(environment, options);
  const Program program =
      find_program(options.command.front(), std::string(environment.get("PATH")));
  if (program.path.empty()) throw ProgramError(program.problem, program.exit_code);

  const auto processors = allowed_processors();
  const auto sets = bind_ranks(options.binding, processors, options.ranks, environment);
  if (!environment.has("OMP_NUM_THREADS")) {
    const int share = std::max(1, count_cores(processors) / options.ranks);
    environment.set("OMP_NUM_THREADS", std::to_string(share));
  }

  // This may wait. Nothing has to be undone if a signal ends it here.
  const Layout layout = layout_of_this_host(options, secret, job);

  JobPlan plan{.launch = {},
               .output = make_output(options, environment),
               .secret = secret,
               .job = job,
               .first_rank = layout.first_rank,
               .signals = {},
               .head = {}};
  if (options.briefing != nullptr) plan.head.emplace(*options.briefing);
  plan.launch.program = program.path;
  plan.launch.size = layout.size;
  plan.launch.arguments = options.command;
  plan.launch.key = Fd(plan.secret.to_fd());
  plan.launch.foreground_group = ::getpgrp();
  plan.launch.open_files = allow_open_files(options.ranks);
  for (int local = 0; local < options.ranks; ++local) {
    const int rank = layout.first_rank + local;
    RankPlan part;
    part.rank = rank;
    part.environment = environment;
    part.environment.set("HOCKET_RANK", std::to_string(rank));
    part.environment.set("HOCKET_LOCAL_RANK", std::to_string(local));
    part.in = rank == 0 ? first_input(plan.head) : open_null(O_RDONLY);
    part.out = plan.output.add(rank, JobOutput::Kind::kOut);
    part.err = plan.output.add(rank, JobOutput::Kind::kErr);
    if (!sets.empty()) part.cpus = sets[static_cast<std::size_t>(local)];
    part.own_process_group = rank != 0 || ::isatty(STDIN_FILENO) == 0;
    plan.launch.ranks.push_back(std::move(part));
  }
  plan.signals = take_signals(plan.launch.signal_mask);
  return plan;
}

}  // namespace hocket::cli
