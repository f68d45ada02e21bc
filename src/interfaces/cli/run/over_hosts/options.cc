#include "interfaces/cli/run/over_hosts/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "hocket/error.h"
#include "interfaces/cli/address.h"
#include "interfaces/cli/hosts/briefing.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

// Options that only the head uses, and options that are passed to hosts in another form.
constexpr std::array<std::string_view, 13> kOfTheHead{"--help",
                                                      "--ranks",
                                                      "--hosts",
                                                      "--hostfile",
                                                      "--launcher",
                                                      "--remote-hocket",
                                                      "--wdir",
                                                      "--env",
                                                      "--rendezvous",
                                                      "--key",
                                                      "--join-timeout",
                                                      "program",
                                                      "--join"};

// Returns the working folder as the user's shell names it. It keeps links, which may lead to other
// places on other hosts.
std::string current_folder() {
  const std::string named(EnvironmentBlock::inherited().get("PWD"));
  std::error_code error;
  const auto real = std::filesystem::current_path(error);
  if (error) throw InvalidArgument("the folder that this runs in is gone; go to another one");
  return std::filesystem::equivalent(named, real, error) && !error ? named : real.string();
}

// Returns NAME=VALUE. For NAME alone, the value comes from this environment.
std::string with_value(const std::string& setting) {
  if (setting.find('=') != std::string::npos) return setting;
  const EnvironmentBlock here = EnvironmentBlock::inherited();
  if (here.has(setting)) return setting + "=" + std::string(here.get(setting));
  throw InvalidArgument(fmt::format(
      "--env {}: it is not set here; set it, or give --env {}=VALUE", setting, setting));
}

std::vector<std::string> arguments_of_hosts(const RunOptions& options, const CLI::App& command) {
  std::vector<std::string> words{"run"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0) continue;
    if (std::ranges::find(kOfTheHead, name) != kOfTheHead.end()) continue;
    words.push_back(name);
    if (option->get_items_expected_max() > 0) words.push_back(option->results().back());
  }
  for (const std::string& setting : options.environment) {
    words.insert(words.end(), {"--env", with_value(setting)});
  }
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

// Returns "HOST:PORT". A missing port becomes 0, which means any free one.
std::string with_port(const std::string& rendezvous) {
  if (rendezvous.empty()) return rendezvous;
  const std::size_t colon = rendezvous.find(':', rendezvous.find(']') + 1);
  const bool is_bare_v6 = std::ranges::count(rendezvous, ':') > 1 && rendezvous.front() != '[';
  const std::string text = is_bare_v6                   ? "[" + rendezvous + "]:0"
                           : colon == std::string::npos ? rendezvous + ":0"
                                                        : rendezvous;
  parse_address(text, "--rendezvous");
  return text;
}

}  // namespace

void add_hosts_options(CLI::App& command, HostsArguments& arguments) {
  CLI::Option* const hosts =
      command
          .add_option("--hosts",
                      arguments.hosts,
                      "Start the job on these hosts, by ssh, with so many ranks each")
          ->type_name("HOST:N,...");
  command
      .add_option("--hostfile", arguments.hostfile, "Likewise; a line for each host: HOST slots=N")
      ->type_name("FILE")
      ->excludes(hosts);
  command
      .add_option("--launcher",
                  arguments.command.launcher,
                  "The command that runs another on a host, instead of ssh. {host} is the\n"
                  "host's name, which else becomes the last word")
      ->type_name("COMMAND");
  command
      .add_option("--remote-hocket",
                  arguments.command.hocket,
                  "The path of hocket on the hosts; default as here")
      ->type_name("PATH");
  if (command.get_name() != "run") return;
  command.add_option("--wdir", arguments.folder, "The ranks' folder on the hosts; default as here")
      ->type_name("DIR");
}

void require_hosts(const HostsArguments& arguments, const CLI::App& command) {
  if (arguments.are_given()) return;
  for (const char* name : {"--launcher", "--remote-hocket", "--wdir"}) {
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr && option->count() > 0) throw CLI::RequiresError(name, "--hosts");
  }
}

HostsOptions hosts_options(const HostsArguments& arguments,
                           const RunOptions& options,
                           const CLI::App& command) {
  HostsOptions result{.hosts = arguments.read(), .command = arguments.command};
  const bool has_ranks = command.get_option("--ranks")->count() > 0;
  if (has_ranks) result.hosts = take_places(std::move(result.hosts), options.ranks);
  result.folder = arguments.folder.empty() ? current_folder() : arguments.folder;
  result.arguments = arguments_of_hosts(options, command);
  result.rendezvous = with_port(options.rendezvous);
  result.key = options.key_file.empty() ? Key::generate() : Key::from_file(options.key_file);
  result.verbose = options.verbose;
  result.keep_going = options.keep_going;
  result.join_timeout = options.join_timeout;
  result.grace = options.grace;
  return result;
}

}  // namespace hocket::cli
