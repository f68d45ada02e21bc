// The command `hocket`: composes its subcommands and turns errors into messages and exit codes.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "cli/commands.h"
#include "hocket/error.h"

namespace hocket::cli {
namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App app("Collective communication for arrays.", "hocket");
  app.require_subcommand(1);
  app.footer("`hocket COMMAND --help` says more about each.");
  app.get_formatter()->column_width(34);
  Action chosen;
  add_run(app, chosen);
  add_bench(app, chosen);
  add_doctor(app, chosen);
  add_trace(app, chosen);
  add_key(app, chosen);
  add_store(app, chosen);
  add_version(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const auto named = app.get_subcommands();
    if (named.empty() && argc > 1) {
      std::fprintf(stderr,
                   "hocket: there is no %s '%s'\nTry: hocket --help\n",
                   argv[1][0] == '-' ? "option" : "command",
                   argv[1]);
      return kExitUsage;
    }
    const std::string command = named.empty() ? "hocket" : "hocket " + named.front()->get_name();
    std::fprintf(stderr, "hocket: %s\nTry: %s --help\n", error.what(), command.c_str());
    return kExitUsage;
  }
  return chosen();
}

// What a command has printed may still be on its way: a full disk must not look like success.
int after_output(int code) {
  std::cout.flush();                               // --help
  const bool was_lost = std::ferror(stdout) != 0;  // earlier, and why is forgotten
  errno = 0;
  if (std::fflush(stdout) == 0 && !was_lost) return code;
  std::fprintf(stderr,
               "hocket: not all output could be written to standard output%s%s\n",
               errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return code != 0 ? code : kExitFailure;
}

}  // namespace
}  // namespace hocket::cli

int main(int argc, char** argv) {
  try {
    return hocket::cli::after_output(hocket::cli::parse_and_run(argc, argv));
  } catch (const hocket::InvalidArgument& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return hocket::cli::kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
    return hocket::cli::kExitFailure;
  }
}
