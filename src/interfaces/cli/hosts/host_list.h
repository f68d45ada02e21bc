// The hosts of a job, as `--hosts` and `--hostfile` name them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hocket::cli {

// A value: a host's name, as ssh takes it, and its number of ranks.
struct HostSlots {
  std::string name;
  int slots = 1;

  // The name without "user@".
  std::string address() const;
};

// Reads "a:4,b,user@c:2". A host without a number has one rank. The numbers of a repeated host are
// added. Throws InvalidArgument, which names the column.
std::vector<HostSlots> parse_hosts(const std::string& text);

// Reads a file of lines such as "a slots=4", "a:4", "a 4" and "a". '#' begins a comment. The
// numbers of a repeated host are added, as in the files of batch systems. Throws InvalidArgument,
// which names the line and the column.
std::vector<HostSlots> read_hostfile(const std::string& path);

// Keeps the first `ranks` slots, and drops hosts without any. Throws InvalidArgument if there are
// fewer.
std::vector<HostSlots> take_places(std::vector<HostSlots> hosts, int ranks);

int total_slots(const std::vector<HostSlots>& hosts);

}  // namespace hocket::cli
