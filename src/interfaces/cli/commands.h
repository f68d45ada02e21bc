// The subcommands of `hocket`, one function each. Each adds its options to the app. If its
// subcommand is on the command line, it sets `chosen` to its work.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace hocket::cli {

struct Briefing;

// Runs a subcommand after its arguments were parsed. Returns the command's exit code; an exception
// that leaves it is printed as "hocket: ..." and makes the exit code 1 (2 for InvalidArgument).
using Action = std::function<int()>;

// `briefing` comes from the head that started this process. Null: a user started it.
void add_run(CLI::App& app, Action& chosen, const Briefing* briefing);
void add_bench(CLI::App& app, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);
void add_doctor(CLI::App& app, Action& chosen, const Briefing* briefing);
void add_trace(CLI::App& app, Action& chosen);
void add_top(CLI::App& app, Action& chosen);
void add_key(CLI::App& app, Action& chosen);
void add_store(CLI::App& app, Action& chosen);
void add_version(CLI::App& app, Action& chosen);

// Exit codes that are hocket's own.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

}  // namespace hocket::cli
