// `hocket demo`: runs the demos of the Python package.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "interfaces/cli/commands.h"

namespace hocket::cli {
namespace {

// Reports the missing package instead of a traceback.
constexpr const char* kStart =
    "import sys\n"
    "try:\n"
    "    from hocket._jobs.demo import main\n"
    "except ImportError as error:\n"
    "    sys.exit(f'hocket: the demo needs the Python package hocket, and {sys.executable} says: "
    "'\n"
    "             f'{error}; install it (pip install hocket), or set PYTHONPATH to a build of "
    "it')\n"
    "sys.exit(main(sys.argv[1:]))\n";

// Replaces this process by Python's demo. Returns only if Python cannot be started.
int become_demo(const std::vector<std::string>& arguments) {
  std::vector<const char*> all{"python3", "-c", kStart};
  for (const auto& argument : arguments) all.push_back(argument.c_str());
  all.push_back(nullptr);
  ::execvp(all[0], const_cast<char* const*>(all.data()));
  std::fprintf(stderr, "hocket: the demo needs python3: %s\n", std::strerror(errno));
  return kExitFailure;
}

}  // namespace

void add_demo(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "demo", "Train a small network on four ranks and draw a benchmark (needs Python)");
  command->set_help_flag();  // the package has its own
  command->prefix_command();
  command->callback([&chosen, command] {
    chosen = [arguments = command->remaining()] { return become_demo(arguments); };
  });
}

}  // namespace hocket::cli
