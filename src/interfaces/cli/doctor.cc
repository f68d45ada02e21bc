// `hocket doctor`: the features of this machine, the engines that will be used, problems, and ways
// to mend them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/doctor/host_part.h"
#include "interfaces/cli/doctor/hosts_examination.h"
#include "interfaces/cli/mpi_libraries.h"
#include "interfaces/cli/report.h"
#include "interfaces/cli/run/environment_block.h"
#include "interfaces/cli/run/over_hosts/options.h"

namespace hocket::cli {
namespace {

struct DoctorArguments {
  bool brief = false;
  bool json = false;
  bool environment = false;
  HostsArguments hosts;
  std::string key_file;
};

Colours colours_for_stdout() {
  const bool wanted =
      ::isatty(STDOUT_FILENO) != 0 && EnvironmentBlock::inherited().get("NO_COLOR").empty();
  return wanted ? Colours::for_terminal() : Colours();
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int examine_network(const DoctorArguments& arguments) {
  const HostsFindings findings = examine_hosts({.hosts = arguments.hosts.read(),
                                                .command = arguments.hosts.command,
                                                .key_file = arguments.key_file});
  print(arguments.json ? json_of(findings) : text_of(findings, colours_for_stdout()));
  const auto problems = find_problems(findings);
  return std::ranges::any_of(problems, &Problem::stops_hocket) ? kExitFailure : 0;
}

int examine(const DoctorArguments& arguments) {
  const Colours colours = colours_for_stdout();
  if (arguments.environment && !arguments.json) {
    print(settings_report(colours));
    return 0;
  }
  Machine machine = inspect_machine();
  machine.libraries.push_back(mpi_software());
  if (arguments.json) {
    print(json_report(machine));
  } else {
    print(arguments.brief ? short_report(machine, colours) : full_report(machine, colours));
  }
  const auto problems = find_problems(machine);
  return std::ranges::any_of(problems, &Problem::stops_hocket) ? kExitFailure : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& chosen, const Briefing* briefing) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine can do, what will be used, what is wrong and its mend");
  const auto arguments = std::make_shared<DoctorArguments>();
  auto* brief = command->add_flag("--short", arguments->brief, "At most 12 lines");
  command->add_flag("--json", arguments->json, "For programs")->excludes(brief);
  command->add_flag(
      "--env", arguments->environment, "The HOCKET_* variables: their values and what they mean");
  add_hosts_options(*command, arguments->hosts);
  CLI::Option* const key =
      command
          ->add_option("--key",
                       arguments->key_file,
                       "With --hosts: a file that all hosts should have with one key in it")
          ->type_name("FILE");
  command->footer(R"(
What the kernel can do is tried, not looked up. Libraries are loaded in processes of their own to ask
their version; no CUDA context is made.

With --hosts or --hostfile it starts itself on each host, as `hocket run` does, and tries each pair
of them in both directions by TCP: whether connections are made, latency, bandwidth, MTU. It says which
interface, address and ports each host uses, compares release, key and clock, and joins them once
as a job would. It takes some seconds, and nothing stays there.

Exit code: 0 when hocket can work here, 1 when a problem stops it.

Examples:
  hocket doctor
  hocket doctor --hosts a,b,c
  HOCKET_PORTS=29500-29699 hocket doctor --hostfile hosts.txt
  hocket doctor --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["problems"])'
)");
  command->callback([arguments, &chosen, briefing, command, key] {
    require_hosts(arguments->hosts, *command);
    if (key->count() > 0 && !arguments->hosts.are_given() && briefing == nullptr) {
      throw CLI::RequiresError("--key", "--hosts");
    }
    chosen = [arguments, briefing] {
      if (briefing != nullptr) return examine_as_host(*briefing, arguments->key_file);
      return arguments->hosts.are_given() ? examine_network(*arguments) : examine(*arguments);
    };
  });
}

}  // namespace hocket::cli
