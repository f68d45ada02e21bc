// The command `hocket`: composes its subcommands and turns errors into messages and exit codes.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/error.h"
#include "interfaces/cli/commands.h"
#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {
namespace {

// Rewrites `-np 4` of `hocket run`, which mpirun takes, to `-n 4`. CLI11 would read it as -n with
// the value "p". Arguments behind the program's name belong to the program.
std::vector<std::string> arguments_of(int argc, char** argv, const CLI::App& app) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments.front() != "run") return arguments;
  const CLI::App* run = app.get_subcommand("run");
  for (std::size_t i = 1; i < arguments.size() && arguments[i].starts_with('-'); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--") break;
    if (argument == "-np") argument = "-n";
    const CLI::Option* option = run->get_option_no_throw(argument);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;  // its value
  }
  return arguments;
}

int refuse_unknown(const char* word) {
  std::fprintf(stderr,
               "hocket: there is no %s '%s'\nTry: hocket --help\n",
               word[0] == '-' ? "option" : "command",
               word);
  return kExitUsage;
}

int parse_and_run(int argc, char** argv, const Briefing* briefing = nullptr) {
  CLI::App app("Collective communication for arrays.", "hocket");
  app.require_subcommand(1);
  app.footer("`hocket COMMAND --help` says more about each.");
  app.get_formatter()->column_width(34);
  Action chosen;
  add_run(app, chosen, briefing);
  add_bench(app, chosen);
  add_demo(app, chosen);
  add_doctor(app, chosen, briefing);
  add_top(app, chosen);
  add_trace(app, chosen);
  add_key(app, chosen);
  add_store(app, chosen);
  add_version(app, chosen);
  // Checked first, because a --help that follows would otherwise be answered.
  const auto is_named = [argv](const CLI::App* command) { return command->get_name() == argv[1]; };
  const bool names_one = argc > 1 && argv[1][0] != '-';
  if (names_one && app.get_subcommands(is_named).empty()) return refuse_unknown(argv[1]);
  try {
    std::vector<std::string> arguments =
        briefing != nullptr ? briefing->arguments : arguments_of(argc, argv, app);
    std::ranges::reverse(arguments);  // CLI11 takes them in reverse order
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto named = app.get_subcommands();
    if (named.empty() && argc > 1) {
      return refuse_unknown(argv[1]);
    }
    const std::string command = named.empty() ? "hocket" : "hocket " + named.front()->get_name();
    std::fprintf(stderr, "hocket: %s\nTry: %s --help\n", error.what(), command.c_str());
    return kExitUsage;
  }
  return chosen();
}

// Runs this host's part of a job, as the head on another host orders it.
int be_host(char** argv) {
  std::string name;
  try {
    const Briefing briefing = receive_briefing(STDIN_FILENO, STDOUT_FILENO);
    name = briefing.self().name + ": ";
    apply_briefing(briefing);
    return parse_and_run(1, argv, &briefing);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: %s%s\n", name.c_str(), error.what());
    return dynamic_cast<const InvalidArgument*>(&error) != nullptr ? kExitUsage : kExitFailure;
  }
}

// Flushes output before the exit code is decided: a full disk must not look like success.
int after_output(int code) {
  std::cout.flush();                               // --help
  const bool was_lost = std::ferror(stdout) != 0;  // an earlier write failed; errno is lost
  errno = 0;
  if (std::fflush(stdout) == 0 && !was_lost) return code;
  std::fprintf(stderr,
               "hocket: not all output could be written to standard output%s%s\n",
               errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return code != 0 ? code : kExitFailure;
}

// Returns whether the stack is large enough, and prints an error if it is not. Needs hardly any
// stack itself.
bool has_stack() {
  constexpr rlim_t kLeast = rlim_t{128} << 10;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return true;
  constexpr std::string_view kWhy =
      "hocket: the stack is limited to less than 128 KiB, which is too little for this command and "
      "for most programs; raise the limit: ulimit -s 8192\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kWhy.data(), kWhy.size());
  return false;
}

}  // namespace
}  // namespace hocket::cli

int main(int argc, char** argv) {
  if (!hocket::cli::has_stack()) return hocket::cli::kExitFailure;
  try {
    if (argc == 2 && argv[1] == std::string_view("as-host")) return hocket::cli::be_host(argv);
    return hocket::cli::after_output(hocket::cli::parse_and_run(argc, argv));
  } catch (const hocket::InvalidArgument& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return hocket::cli::kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return hocket::cli::kExitFailure;
  }
}
