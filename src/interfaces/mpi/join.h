// Communicators whose members alone make them, while others of the job do something else.
#pragma once

#include <memory>
#include <vector>

#include "interfaces/mpi/process.h"

namespace hocket::mpi {

// The meeting point of the processes that make one: the same on all of them.
int meeting(std::uint32_t context, int tag, const std::vector<int>& members);
// One of these processes, in this order.
std::shared_ptr<Comm> join(const std::vector<int>& members, int meeting);
// Leaders tell each other their groups.
std::vector<int> swap_members(const std::vector<int>& own, int leader, int meeting);
// The local group, and `theirs`, which its leader knows.
std::shared_ptr<Comm> join_sides(Comm& local, int leader, std::vector<int> theirs, int tag);
std::shared_ptr<Comm> merge(Comm& sides, bool high);

}  // namespace hocket::mpi
