// The conversation between the command that a user starts, the head, and the commands that it
// starts on other hosts by `hocket as-host`. All of it goes through standard input and output of
// ssh, so that the key is neither on a command line nor in a file.
//
//   head ──── briefing, then orders, a line each ────▶ standard input of the host's command
//   head ◀─── output of the ranks, and between it notices ─── its standard output
//
//   orders   go ADDRESS    all hosts are ready, and this is where they meet
//            signal N      for the ranks; 20 and 18 also stop and resume the head's heartbeat
//            fail          a rank of another host has failed
//            input N       and N bytes of standard input for rank 0; 0: its end
//            deaf N        nobody reads standard output (1) or error (2) any more
//            alive         the heartbeat
//   notices  release R     the first, always
//            ready ADDRESS the host could start; the address is the first host's alone
//            failed LIKELIHOOD CODE TEXT   the failure of a rank
//            took N        rank 0 has taken so many bytes of input
//            ended CODE    the last
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/store.h"
#include "interfaces/cli/hosts/host_list.h"

namespace hocket::cli {

// A value: all that a command on another host is told at its start.
struct Briefing {
  std::string token;  // begins each notice, so that no output is taken for one
  Key key;
  std::string job;               // its name, no secret
  std::vector<HostSlots> hosts;  // of the job
  int host = 0;                  // the number of this one
  std::string folder;            // to work in; empty: as it comes
  bool colour = false;           // the head's standard output is a terminal that takes colours
  std::vector<std::string> environment;  // NAME=VALUE, for the command itself
  std::vector<std::string> arguments;    // of `hocket`

  const HostSlots& self() const { return hosts[static_cast<std::size_t>(host)]; }
};

// Bytes for the standard input of `hocket as-host`. The caller wipes them.
std::string encode(const Briefing& briefing);

// Reads a briefing from `in` and nothing behind it, and writes the first notice to `out`. Throws
// InvalidArgument for another release, and when no briefing comes.
Briefing receive_briefing(int in, int out);

// Applies the environment and the folder to this process, which has one thread.
void settle(const Briefing& briefing);

// A notice's text with the marks around it.
std::string notice(const std::string& token, std::string_view text);
// Writes one, whole.
void write_notice(int out, const std::string& token, std::string_view text);
inline constexpr char kNoticeMark = '\x1e';

// A random name of 12 hexadecimal digits.
std::string random_name();

// Most bytes of rank 0's input that are on their way.
inline constexpr std::size_t kMostInput = std::size_t{1} << 18;

// Time between two heartbeats, and the silence after which a head counts as gone.
inline constexpr std::chrono::seconds kHeartbeat{5};
inline constexpr std::chrono::seconds kHeadSilence{60};

}  // namespace hocket::cli
