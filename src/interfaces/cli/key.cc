// `hocket key`: makes a job's key for processes that get none from a launcher.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "hocket/store.h"
#include "interfaces/cli/commands.h"

namespace hocket::cli {

void add_key(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand("key", "Make a job's key");
  const auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "Where to write it: a new file, readable by its owner alone")
      ->type_name("FILE")
      ->required();
  command->footer(R"(
Ranks that are not started by `hocket run` prove to each other that they know the job's key. Give it
to them with HOCKET_KEY_FILE=FILE, on every host. A file that exists is never overwritten.

Exit code: 0 when the file was made, 1 when not.

Example:
  hocket key ~/.job.key
  HOCKET_KEY_FILE=~/.job.key HOCKET_STORE=10.0.0.1:29400 HOCKET_RANK=0 HOCKET_SIZE=2 ./a.out
)");
  command->callback([path, &chosen] {
    chosen = [path] {
      Key::generate().write_file(*path);
      return 0;
    };
  });
}

}  // namespace hocket::cli
