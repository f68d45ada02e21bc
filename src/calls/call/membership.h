// The members of a group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/call.h"

namespace hocket::call {

// A value.
struct Membership {
  std::string name;
  int epoch = 0;                 // number of rebuilds
  int rank = -1;                 // of this process; -1: not a member
  std::vector<int> world_ranks;  // of each member
  std::vector<int> hosts;        // number of each member's host
  std::vector<int> host_ranks;   // of each member: its place on this host, see HostControl
  // True if a rebuild has excluded a rank of this group or its parents. For MPI such a group is the
  // rest of a broken job.
  bool has_lost_ranks = false;

  int size() const noexcept { return static_cast<int>(world_ranks.size()); }
  // True if they are on several hosts.
  bool spans() const noexcept {
    return std::any_of(hosts.begin(), hosts.end(), [this](int host) { return host != hosts[0]; });
  }
  // A number by which all members know the group; no other group of the job has it.
  std::uint64_t id() const noexcept;
};

// A view of the membership, which outlives it.
engine::GroupFacts facts_of(const Membership& membership);
// Throws InvalidArgument, with the argument's name, unless `rank` is one of a group of `size`.
void require_rank(const char* name, int rank, int size);

}  // namespace hocket::call
