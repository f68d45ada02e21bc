// `hocket store`: serves a store without a job, until a signal ends it.
#include "hocket/store.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "hocket/error.h"
#include "interfaces/cli/address.h"
#include "interfaces/cli/commands.h"

namespace hocket::cli {
namespace {

struct StoreArguments {
  std::string address = "127.0.0.1:0";
  std::string key;
  std::string job;
  int size = 0;
};

StoreServer::Options server_options(const StoreArguments& arguments) {
  StoreServer::Options options;
  options.job = arguments.job;
  options.size = arguments.size;
  if (!arguments.key.empty()) options.key = Key::from_file(arguments.key);
  if (arguments.address.starts_with("unix:")) {
    options.address = arguments.address;
    return options;
  }
  const Address address = parse_address(arguments.address, "--address");
  options.address = address.host;
  options.port = address.port;
  return options;
}

int serve(const StoreArguments& arguments) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);  // the server's thread inherits this mask
  StoreServer server(server_options(arguments));
  fmt::print("{}\n", server.address());
  if (std::fflush(stdout) != 0) throw SystemError("the store's address cannot be printed", errno);
  int number = 0;
  ::sigwait(&signals, &number);
  server.close();
  return 0;
}

}  // namespace

void add_store(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand("store", "Serve the store where ranks meet, by itself");
  const auto arguments = std::make_shared<StoreArguments>();
  command
      ->add_option("--address",
                   arguments->address,
                   "Where to listen; port 0: any free one (default 127.0.0.1:0)")
      ->type_name("HOST:PORT");
  command->add_option("--key", arguments->key, "The job's key, made by `hocket key`")
      ->type_name("FILE")
      ->required();
  command->add_option("--size", arguments->size, "Number of ranks; others are refused")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  command->add_option("--job", arguments->job, "The job's name, as the ranks' HOCKET_JOB")
      ->type_name("NAME");
  command->footer(R"(
Prints its address and serves until Ctrl-C, SIGTERM, SIGHUP or SIGQUIT. `hocket run` has a store of
its own, and without any launcher rank 0 serves one: this is for jobs whose rank 0 may move. It
serves one start of one job; the next start, also after one that failed, needs a new one.

Exit code: 0 when it was told to end, 1 when it could not serve, 2 for wrong options.

Example:
  hocket key job.key
  hocket store --address 10.0.0.1:29400 --key job.key --size 16
)");
  command->callback([arguments, &chosen] { chosen = [arguments] { return serve(*arguments); }; });
}

}  // namespace hocket::cli
