// Groups: sets of processes in an order.
#include <algorithm>
#include <numeric>
#include <set>

#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {

int Group::find(int member) const noexcept {
  const auto found = std::find(members.begin(), members.end(), member);
  return found == members.end() ? MPI_UNDEFINED : static_cast<int>(found - members.begin());
}

Group& group_of(MPI_Group handle) {
  Group* found = process().groups.find(handle);
  require(found != nullptr, MPI_ERR_GROUP, "group is no group");
  return *found;
}

namespace {

void hand_out(std::vector<int> members, MPI_Group* handle) {
  *handle = members.empty() ? MPI_GROUP_EMPTY
                            : process().groups.add(std::make_shared<Group>(Group{members}));
}

int compared(const Group& a, const Group& b) {
  if (a.members == b.members) return MPI_IDENT;
  const std::set<int> first(a.members.begin(), a.members.end());
  const std::set<int> second(b.members.begin(), b.members.end());
  return first == second ? MPI_SIMILAR : MPI_UNEQUAL;
}

// Returns the ranks that triplets (first, last, stride) name.
std::vector<int> ranks_in(int n, int ranges[][3]) {
  require(n >= 0, MPI_ERR_ARG, "n is negative");
  std::vector<int> ranks;
  for (int i = 0; i < n; ++i) {
    const auto [first, last, stride] = std::tuple(ranges[i][0], ranges[i][1], ranges[i][2]);
    require(stride != 0, MPI_ERR_ARG, "ranges has a stride of 0");
    for (int rank = first; stride > 0 ? rank <= last : rank >= last; rank += stride) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

void check_ranks(const Group& group, const std::vector<int>& ranks) {
  std::set<int> seen;
  for (const int rank : ranks) {
    require(rank >= 0 && rank < static_cast<int>(group.members.size()),
            MPI_ERR_RANK,
            "ranks has one that is not in the group");
    require(seen.insert(rank).second, MPI_ERR_RANK, "ranks has one twice");
  }
}

std::vector<int> included(const Group& group, const std::vector<int>& ranks) {
  check_ranks(group, ranks);
  std::vector<int> made;
  for (const int rank : ranks) made.push_back(group.members[static_cast<std::size_t>(rank)]);
  return made;
}
std::vector<int> excluded(const Group& group, const std::vector<int>& ranks) {
  check_ranks(group, ranks);
  std::vector<int> made;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    if (std::find(ranks.begin(), ranks.end(), static_cast<int>(i)) == ranks.end()) {
      made.push_back(group.members[i]);
    }
  }
  return made;
}

std::vector<int> listed(int n, const int* ranks) {
  require(n >= 0, MPI_ERR_ARG, "n is negative");
  return n == 0 ? std::vector<int>{} : std::vector<int>(ranks, ranks + n);
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Comm_group(MPI_Comm comm, MPI_Group* group) { hand_out(comm_of(comm).local->members, group); }
void Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  require(comm_of(comm).is_inter(), MPI_ERR_COMM, "comm has one group");
  hand_out(comm_of(comm).remote->members, group);
}
void Group_size(MPI_Group group, int* size) {
  *size = static_cast<int>(group_of(group).members.size());
}
void Group_rank(MPI_Group group, int* rank) {
  *rank = group_of(group).find(process().world->rank());
}
void Group_translate_ranks(
    MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]) {
  const Group& from = group_of(group1);
  const Group& to = group_of(group2);
  require(n >= 0, MPI_ERR_ARG, "n is negative");
  for (int i = 0; i < n; ++i) {
    if (ranks1[i] == MPI_PROC_NULL) {
      ranks2[i] = MPI_PROC_NULL;
      continue;
    }
    require(ranks1[i] >= 0 && ranks1[i] < static_cast<int>(from.members.size()),
            MPI_ERR_RANK,
            "ranks1 has one that is not in group1");
    ranks2[i] = to.find(from.members[static_cast<std::size_t>(ranks1[i])]);
  }
}
void Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
  *result = compared(group_of(group1), group_of(group2));
}
void Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  std::vector<int> made = group_of(group1).members;
  for (const int member : group_of(group2).members) {
    if (group_of(group1).find(member) == MPI_UNDEFINED) made.push_back(member);
  }
  hand_out(std::move(made), newgroup);
}
namespace {
void hand_out_common(MPI_Group group1, MPI_Group group2, bool common, MPI_Group* newgroup) {
  const Group& other = group_of(group2);
  std::vector<int> made;
  for (const int member : group_of(group1).members) {
    if ((other.find(member) != MPI_UNDEFINED) == common) made.push_back(member);
  }
  hand_out(std::move(made), newgroup);
}
}  // namespace
void Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  hand_out_common(group1, group2, true, newgroup);
}
void Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  hand_out_common(group1, group2, false, newgroup);
}
void Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  hand_out(included(group_of(group), listed(n, ranks)), newgroup);
}
void Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  hand_out(excluded(group_of(group), listed(n, ranks)), newgroup);
}
void Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  hand_out(included(group_of(group), ranks_in(n, ranges)), newgroup);
}
void Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  hand_out(excluded(group_of(group), ranks_in(n, ranges)), newgroup);
}
void Group_free(MPI_Group* group) {
  group_of(*group);
  process().groups.remove(*group);
  *group = MPI_GROUP_NULL;
}

}  // namespace hocket::mpi::call
