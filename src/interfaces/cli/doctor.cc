// `hocket doctor`: the features of this machine, the engines that will be used, problems, and ways
// to mend them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "interfaces/cli/commands.h"
#include "interfaces/cli/mpi_libraries.h"
#include "interfaces/cli/report.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

struct DoctorArguments {
  bool brief = false;
  bool json = false;
  bool environment = false;
};

Colours colours_for_stdout() {
  const bool wanted =
      ::isatty(STDOUT_FILENO) != 0 && EnvironmentBlock::inherited().get("NO_COLOR").empty();
  return wanted ? Colours::for_terminal() : Colours();
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

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

void add_doctor(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine can do, what will be used, what is wrong and its mend");
  const auto arguments = std::make_shared<DoctorArguments>();
  auto* brief = command->add_flag("--short", arguments->brief, "At most 12 lines");
  command->add_flag("--json", arguments->json, "For programs")->excludes(brief);
  command->add_flag(
      "--env", arguments->environment, "The HOCKET_* variables: their values and what they mean");
  command->footer(R"(
What the kernel can do is tried, not looked up. Libraries are loaded in processes of their own to ask
their version; no CUDA context is made.

Exit code: 0 when hocket can work here, 1 when a problem stops it.

Examples:
  hocket doctor
  hocket doctor --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["problems"])'
)");
  command->callback([arguments, &chosen] { chosen = [arguments] { return examine(*arguments); }; });
}

}  // namespace hocket::cli
