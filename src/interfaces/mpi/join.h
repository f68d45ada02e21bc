// Communicators that only their members make. The other ranks of the job do not take part.
#pragma once

#include <memory>
#include <vector>

#include "interfaces/mpi/process.h"

namespace hocket::mpi {

// The tags of meetings begin here. Partitioned messages have smaller tags.
inline constexpr int kFirstMeeting = 1 << 30;
// Returns the tag by which the members find each other. It is the same on all of them.
int meeting(std::uint32_t context, int tag, const std::vector<int>& members);
// Makes a communicator of these processes, in this order.
std::shared_ptr<Comm> join(const std::vector<int>& members, int meeting);
// Exchanges the members of two groups between their leaders. Returns the members of the other
// group.
std::vector<int> swap_members(const std::vector<int>& own, int leader, int meeting);
// Makes an intercommunicator of the local group and `theirs`, which only the leader needs to pass.
std::shared_ptr<Comm> join_sides(Comm& local, int leader, std::vector<int> theirs, int tag);
std::shared_ptr<Comm> merge(Comm& sides, bool high);

}  // namespace hocket::mpi
