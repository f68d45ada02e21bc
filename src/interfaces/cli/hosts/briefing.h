// The protocol between the head and the commands that it starts on other hosts by `hocket as-host`.
// The head is the command that a user starts. All data pass through ssh's standard input and
// output, so the key is neither on a command line nor in a file.
//
//   head ──── briefing, then orders, a line each ────▶ standard input of the host's command
//   head ◀─── output of the ranks, with notices in between ── its standard output
//
//   orders   go ADDRESS    all hosts are ready, and meet at this address
//            signal N      send it to the ranks; 20 and 18 also stop and resume the heartbeat
//            fail          a rank of another host has failed
//            input N       N bytes of standard input for rank 0 follow; 0: its end
//            deaf N        nobody reads standard output (1) or error (2) any more
//            alive         the heartbeat
//   notices  release R     hocket's release; always the first notice
//            ready ADDRESS the host could start; the address is the first host's alone
//            failed LIKELIHOOD CODE TEXT   the failure of a rank
//            took N        rank 0 has taken N bytes of input
//            ended CODE    the exit code of the host's command; the last notice
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/store.h"
#include "interfaces/cli/hosts/host_list.h"

namespace hocket::cli {

// A value: all data that a command on another host needs at its start.
struct Briefing {
  std::string token;  // begins each notice, to tell it from the ranks' output
  Key key;
  std::string job;               // its name, no secret
  std::vector<HostSlots> hosts;  // of the job
  int host = 0;                  // the number of this host
  std::string folder;            // the working folder; empty: the one that ssh gives
  bool colour = false;           // the head's standard output is a terminal that takes colours
  std::vector<std::string> environment;  // NAME=VALUE, for the command itself
  std::vector<std::string> arguments;    // arguments of `hocket`

  const HostSlots& self() const { return hosts[static_cast<std::size_t>(host)]; }
};

// Bytes for the standard input of `hocket as-host`. The caller wipes them.
std::string encode(const Briefing& briefing);

// Reads a briefing from `in`, but nothing that follows it, and writes the first notice to `out`.
// Throws InvalidArgument if the head has another release, or if no briefing comes.
Briefing receive_briefing(int in, int out);

// Applies the environment and the working folder to this process. Call it while the process has one
// thread.
void apply_briefing(const Briefing& briefing);

// Returns a notice's text with the token and marks around it.
std::string notice(const std::string& token, std::string_view text);
// Writes a whole notice.
void write_notice(int out, const std::string& token, std::string_view text);
inline constexpr char kNoticeMark = '\x1e';

// A random name of 12 hexadecimal digits.
std::string random_name();

// The most bytes of rank 0's input that may be in transfer.
inline constexpr std::size_t kMostInput = std::size_t{1} << 18;

// Time between two heartbeats, and the silence after which a head counts as gone.
inline constexpr std::chrono::seconds kHeartbeat{5};
inline constexpr std::chrono::seconds kHeadSilence{60};

}  // namespace hocket::cli
