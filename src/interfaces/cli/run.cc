// `hocket run`: its options and help. run/launcher.cc chooses the exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/run/job_plan.h"
#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/meeting.h"
#include "interfaces/cli/run/over_hosts/options.h"

namespace hocket::cli {
namespace {

constexpr const char* kFooter = R"(
Each rank finds the others by hocket::init() / hocket.init(); nothing else has to be said.
Lines of output begin with "[rank] ", unless there is one rank only. Rank 0 reads standard input.

The ranks get HOCKET_RANK, HOCKET_SIZE, HOCKET_LOCAL_RANK, HOCKET_LOCAL_SIZE, HOCKET_STORE,
HOCKET_JOB and HOCKET_KEY_FD; and, where they are not set already, PYTHONUNBUFFERED=1 and
OMP_NUM_THREADS = cores / ranks (at least 1).

When a rank fails, it is named on standard error. The others, which learn of it by their calls, have
--grace seconds to end by themselves; then they are ended: SIGTERM, and SIGKILL one second later.
SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT are passed on to all ranks, which have five seconds, or
--grace seconds if these are more; a second one kills them. When the job is over, whichever way, everything that the ranks have started
ends too.

Exit code: 0 when all ranks exited with 0; else that of the rank that failed first, 128 + the signal
that killed it (or that hocket itself was sent: 130 after Ctrl-C), 124 when --timeout or
--join-timeout ran out, 126 and 127 when the program cannot be executed or found, 2 for wrong options,
1 when output was lost, a host could not be reached or was lost, or the first host's launcher has
ended before all ranks had joined.

Over hosts that ssh reaches without a question, one command starts all; each host has this hocket at
the same path, and the job's key goes through ssh. Ranks get HOCKET_* variables of here and those
that --env names, and work in a folder of the same path. When one host or rank fails, all end:
  hocket run --hosts a:4,b:4 -- python train.py
  hocket run --hostfile hosts.txt -n 6 --env PATH --env OMP_NUM_THREADS=2 -- python train.py
  hocket run --hosts a:4,b:4 --launcher 'ssh -p 2222' -- ./a.out
  hocket run --hosts a:4,b:4 --launcher 'srun -N1 -n1 -w {host}' -- ./a.out
Lines of a hostfile: a, a:4, a 4, a slots=4; # begins a comment. `hocket doctor --hosts a,b` tries
the network between them.

Examples:
  hocket run -n 4 -- python train.py --epochs 3
  hocket run -n 2 ./a.out
  hocket run -n 4 --log-dir logs --quiet -- python train.py   # rank 0 on screen, all in logs/
  hocket run -n 4 --trace slow -- python train.py && hocket trace slow
  hocket run -n 4 --metrics 127.0.0.1:9464 -- python train.py
  hocket run -n 8 --bind none --env HOCKET_LOG=debug -- ./a.out

Processes join a running job when its ranks call admit. HOCKET_DOOR names the place where they wait:
  HOCKET_DOOR=mine hocket run --keep-going -n 4 -- python train.py
  hocket run --join mine -n 1 -- python train.py

Or start one on each host by other means, with the same --nnodes and --rendezvous, an address of host 0,
and a copy of one key; -n is each host's own, and ranks are numbered host by host:
  hocket key job.key
  hocket run -n 4 --nnodes 2 --node-rank 0 --rendezvous 10.0.0.1:29400 --key job.key -- ./a.out
  hocket run -n 2 --nnodes 2 --node-rank 1 --rendezvous 10.0.0.1:29400 --key job.key -- ./a.out
)";

struct RunArguments {
  RunOptions options;
  HostsArguments hosts;
  bool no_prefix = false;
  double timeout = 0;  // seconds; 0: none
  double join_timeout = 300;
  bool has_join_timeout = false;
  std::optional<double> grace;  // seconds
};

Binding binding_from(const std::string& word) {
  if (word == "none") return Binding::kNone;
  if (word == "core") return Binding::kCore;
  if (word == "auto") return Binding::kAuto;
  throw CLI::ValidationError("--bind", "expected none, core or auto, not '" + word + "'");
}

double timeout_from(const char* option, double seconds) {
  constexpr double kLongest = 1e9;
  if (seconds > 0 && seconds <= kLongest) return seconds;
  throw CLI::ValidationError(option, "expected a number of seconds above 0, at most 1e9");
}

// Throws for options that need others, or exclude each other.
void check_together(const RunArguments& arguments,
                    const CLI::Option& ranks,
                    const CLI::Option& nodes,
                    bool is_of_a_head) {
  const bool over_hosts = arguments.hosts.are_given();
  if (ranks.count() == 0 && !over_hosts && !is_of_a_head) throw CLI::RequiredError("--ranks");
  if (over_hosts && (nodes.count() > 0 || !arguments.options.join.empty())) {
    throw CLI::ExcludesError(arguments.hosts.option(), nodes.count() > 0 ? "--nnodes" : "--join");
  }
  if (over_hosts || is_of_a_head || nodes.count() > 0) return;
  if (!arguments.options.rendezvous.empty()) throw CLI::RequiresError("--rendezvous", "--nnodes");
  if (arguments.has_join_timeout) throw CLI::RequiresError("--join-timeout", "--nnodes");
}

// Programs of MPI expect that all ranks end at once if one fails or calls MPI_Abort. So the other
// ranks only get the time to raise an error that names this rank.
constexpr double kUsualGrace = 1;  // seconds
constexpr double kGraceOfMpi = 0.1;

double grace_from(double seconds) {
  constexpr double kLongest = 1e6;
  if (seconds >= 0 && seconds <= kLongest) return seconds;
  throw CLI::ValidationError("--grace", "expected a number of seconds from 0 to 1e6");
}

// Sets the options of a launcher that a head has started on its host, from the briefing.
void take_place(RunOptions& options, const Briefing& briefing) {
  options.briefing = &briefing;
  options.ranks = briefing.self().slots;
  options.nodes = static_cast<int>(briefing.hosts.size());
  options.node_rank = briefing.host;
}

int run(RunArguments& arguments, const CLI::App& command, const Briefing* briefing) {
  RunOptions& options = arguments.options;
  if (briefing != nullptr) take_place(options, *briefing);
  options.prefix = !arguments.no_prefix;
  if (arguments.timeout > 0) {
    options.timeout = std::chrono::milliseconds(static_cast<long long>(arguments.timeout * 1e3));
  }
  options.join_timeout =
      std::chrono::milliseconds(static_cast<long long>(arguments.join_timeout * 1e3));
  const double grace = arguments.grace.value_or(options.mpi ? kGraceOfMpi : kUsualGrace);
  options.grace = std::chrono::milliseconds(static_cast<long long>(grace * 1e3));
  try {
    if (arguments.hosts.are_given()) {
      return launch_on_hosts(hosts_options(arguments.hosts, options, command));
    }
    return launch(options);
  } catch (const HostsMissing& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return kExitTimeout;
  } catch (const ProgramError& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return error.exit_code();
  }
}

using Arguments = std::shared_ptr<RunArguments>;

CLI::Option* add_ranks(CLI::App* command, RunOptions& options) {
  CLI::Option* const ranks = command->add_option(
      "-n,--ranks",
      options.ranks,
      "Number of ranks, on this host; with --hosts of all, default their places");
  command
      ->add_option_function<std::string>(
          "--bind",
          [&options](const std::string& word) { options.binding = binding_from(word); },
          "Processors of each rank: core: each its own; auto (default): each its own,\n"
          "if there are enough and OMP_* ask for nothing else")
      ->type_name("none|core|auto");
  command
      ->add_option("--env",
                   options.environment,
                   "Set a variable for the ranks; may be repeated. With --hosts, NAME alone\n"
                   "has the value that it has here")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->allow_extra_args(false)  // otherwise it would take the program as a second value
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return ranks;
}

void add_times(CLI::App* command, const Arguments& arguments) {
  command
      ->add_option_function<double>(
          "--timeout",
          [arguments](double seconds) { arguments->timeout = timeout_from("--timeout", seconds); },
          "End the job that long after its ranks were started")
      ->type_name("SECONDS");
  command
      ->add_option_function<double>(
          "--grace",
          [arguments](double seconds) { arguments->grace = grace_from(seconds); },
          "How long ranks may go on once one has failed, default 1, or 0.1 with --mpi; or\n"
          "once a signal ends the job")
      ->type_name("SECONDS");
}

// Adds the options of a job with a launcher on each host, and of a job that joins a running one.
CLI::Option* add_nodes(CLI::App* command, const Arguments& arguments) {
  RunOptions& options = arguments->options;
  CLI::Option* const nodes =
      command
          ->add_option(
              "--nnodes", options.nodes, "Number of hosts, with a launcher on each; default 1")
          ->type_name("N");
  command
      ->add_option_function<double>(
          "--join-timeout",
          [arguments](double seconds) {
            arguments->join_timeout = timeout_from("--join-timeout", seconds);
            arguments->has_join_timeout = true;
          },
          "How long the launchers of all hosts may take to come; default 300")
      ->type_name("SECONDS");
  command->add_option("--node-rank", options.node_rank, "Number of this host, from 0")
      ->type_name("R")
      ->needs(nodes);
  command
      ->add_option("--rendezvous",
                   options.rendezvous,
                   "Where the ranks of all hosts meet: at host 0. With --hosts the default is\n"
                   "the first one's own address and a free port, and the port may be left out")
      ->type_name("HOST:PORT");
  command
      ->add_option("--join",
                   options.join,
                   "Join a running job, whose ranks call admit: the job's name, as in `hocket\n"
                   "top`, or the address of its door (HOCKET_DOOR)")
      ->type_name("JOB");
  command
      ->add_option("--key",
                   options.key_file,
                   "The job's key, made by `hocket key`; needed on several hosts, where the\n"
                   "default is HOCKET_KEY_FILE; on one, the default is a fresh one")
      ->type_name("FILE");
  return nodes;
}

void add_records(CLI::App* command, RunOptions& options) {
  command
      ->add_option(
          "--log-dir", options.log_dir, "Also write each rank's output to DIR/rank-N.out and .err")
      ->type_name("DIR");
  command
      ->add_option("--trace",
                   options.trace_dir,
                   "Write all calls of each rank into DIR, for `hocket trace DIR`")
      ->type_name("DIR");
  command
      ->add_option("--audit",
                   options.audit_dir,
                   "Keep digests of what goes into each call and comes out of it in DIR, for "
                   "`hocket trace --diff DIR OTHER`")
      ->type_name("DIR");
  command
      ->add_option("--metrics",
                   options.metrics,
                   "Serve the job's metrics at http://HOST:PORT/metrics, for Prometheus")
      ->type_name("HOST:PORT");
}

void add_flags(CLI::App* command, RunArguments& arguments) {
  command->add_flag("-q,--quiet",
                    arguments.options.quiet,
                    "Standard output of rank 0 only; standard error of all");
  command->add_flag("--mpi",
                    arguments.options.mpi,
                    "MPI programs, mpi4py's too, find hocket in the place of their MPI");
  command->add_flag(
      "--keep-going",
      arguments.options.keep_going,
      "A rank that fails ends no other, for programs that rebuild; the job has ended\n"
      "well if any rank has");
  command->add_flag("--no-prefix", arguments.no_prefix, "No \"[rank] \" before lines of output");
  command->add_flag("-v,--verbose", arguments.options.verbose, "Say what the launcher does");
}

}  // namespace

void add_run(CLI::App& app, Action& chosen, const Briefing* briefing) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a program as the ranks of a job, on this host or over several");
  const auto arguments = std::make_shared<RunArguments>();
  RunOptions& options = arguments->options;
  CLI::Option* const ranks = add_ranks(command, options);
  add_times(command, arguments);
  add_hosts_options(*command, arguments->hosts);
  CLI::Option* const nodes = add_nodes(command, arguments);
  add_records(command, options);
  add_flags(command, *arguments);
  command
      ->add_option("program", options.command, "The program and its arguments; -- may precede it")
      ->type_name("PROGRAM ARGS...")
      ->required();
  // Arguments behind the program's name belong to the program, even options.
  command->positionals_at_end();
  command->footer(kFooter);
  command->callback([arguments, &chosen, command, ranks, nodes, briefing] {
    check_together(*arguments, *ranks, *nodes, briefing != nullptr);
    require_hosts(arguments->hosts, *command);
    chosen = [arguments, command, briefing] { return run(*arguments, *command, briefing); };
  });
}

}  // namespace hocket::cli
