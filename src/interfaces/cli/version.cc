// `hocket version`.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "interfaces/cli/commands.h"

namespace hocket::cli {

void add_version(CLI::App& app, Action& chosen) {
  app.set_version_flag("--version", "hocket " HOCKET_VERSION);
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen = [] {
      std::puts("hocket " HOCKET_VERSION);
      return 0;
    };
  });
}

}  // namespace hocket::cli
