// The members of a group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/call.h"

namespace hocket::call {

// The members of a group, and this rank's number among them. A value.
struct Membership {
  std::string name;
  int epoch = 0;                 // number of rebuilds
  int rank = -1;                 // rank of this process; -1: not a member
  std::vector<int> world_ranks;  // world rank of each member
  std::vector<int> hosts;        // number of each member's host
  std::vector<int> host_ranks;   // place of each member on this host, see HostView
  // True if a rebuild has excluded a rank of this group or of its parents. MPI treats such a group
  // as the rest of a broken job.
  bool has_lost_ranks = false;

  int size() const noexcept { return static_cast<int>(world_ranks.size()); }
  // True if the members are on several hosts.
  bool spans() const noexcept {
    return std::any_of(hosts.begin(), hosts.end(), [this](int host) { return host != hosts[0]; });
  }
  // A number that is equal on all members, and that no other group of the job has.
  std::uint64_t id() const noexcept;
};

// Returns a view of `membership`, which must outlive the view.
engine::GroupFacts facts_of(const Membership& membership);
// Throws InvalidArgument, with the argument's name, unless `rank` is one of a group of `size`.
void require_rank(const char* name, int rank, int size);

}  // namespace hocket::call
