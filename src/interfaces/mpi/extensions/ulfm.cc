// Continuing after a failure: the calls of ULFM, which MPICH and Open MPI have as extensions.
//
// When a rank of a communicator has died, the communicator has failed for all its ranks.
// MPIX_Comm_shrink makes a new communicator of the ranks that are left. MPIX_Comm_agree also makes
// one, for its own messages.
#include <algorithm>
#include <vector>

#include "hocket/error.h"
#include "interfaces/mpi/communicators.h"
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

Comm& of_one_group(MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  require(!comm.is_inter(), MPI_ERR_COMM, "comm has two groups");
  return comm;
}

bool is_among(const Communicator& net, int member) {
  const auto ranks = net.world_ranks();
  return std::ranges::find(ranks, member) != ranks.end();
}

// Returns the processes that are known to have died, in the order of their ranks.
std::vector<int> failed_of(const Comm& comm) {
  std::vector<int> failed;
  const auto all = comm.net->world_ranks();
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool is_left_out = comm.survivors != nullptr &&
                             !is_among(*comm.survivors, all[static_cast<std::size_t>(rank)]);
    if (is_left_out) failed.push_back(comm.local->members[static_cast<std::size_t>(rank)]);
  }
  const auto status = comm.net->status();
  if (!status || status->code != ErrorCode::kPeerDied || status->peer < 0) return failed;
  const int named = comm.local->members[static_cast<std::size_t>(status->peer)];
  if (std::ranges::find(failed, named) == failed.end()) failed.push_back(named);
  return failed;
}

MPI_Group hand_out(std::vector<int> members) {
  if (members.empty()) return MPI_GROUP_EMPTY;
  return process().groups.add(std::make_shared<Group>(Group{std::move(members)}));
}

// Returns whether the call failed because a rank died, or rebuilds after a death.
bool is_of_lost_rank(const Error& error) {
  return error.code() == ErrorCode::kPeerDied || error.code() == ErrorCode::kAborted;
}

// Makes the next communicator of the ranks that are left. All of these ranks call this function.
Communicator& go_on(Comm& comm) {
  Communicator& last = comm.survivors != nullptr ? *comm.survivors : *comm.net;
  comm.survivors = std::make_shared<Communicator>(last.rebuild());
  return *comm.survivors;
}

// A rank's part in an agreement. If a rank dies, one survivor may have the result while another
// does not. The survivor that has the result sends it in its next vote.
struct Vote {
  std::int64_t agreed;  // number of agreements before this one
  std::int32_t flag;
  std::int32_t last;  // result of the previous agreement
};

std::vector<Vote> all_votes(Comm& comm, Communicator& net, const Vote& own) {
  std::vector<Vote> votes(static_cast<std::size_t>(net.size()));
  const ConstArrayView in(&own, sizeof own, DType::kUInt8);
  const ArrayView out(votes.data(), votes.size() * sizeof own, DType::kUInt8);
  Work work;
  {
    const std::lock_guard lock(comm.starting);
    work = net.all_gather_async(in, out);
  }
  work.wait();
  return votes;
}

// Returns the result if this vote has one. Absent: some ranks only learn the result of their
// previous agreement by this vote.
std::optional<int> result_of(const Vote& own, const std::vector<Vote>& votes) {
  int together = own.flag;
  bool are_equal = true;
  for (const Vote& vote : votes) {
    if (vote.agreed > own.agreed) return vote.last;
    are_equal = are_equal && vote.agreed == own.agreed;
    together &= vote.flag;
  }
  return are_equal ? std::optional(together) : std::nullopt;
}

int agree_on(Comm& comm, int flag) {
  const Vote own{comm.agreed, flag, comm.last_agreed};
  Communicator* net = comm.survivors != nullptr ? comm.survivors.get() : comm.net.get();
  std::optional<int> result;
  while (!result) {
    try {
      if (net->status()) net = &go_on(comm);
      result = result_of(own, all_votes(comm, *net, own));
    } catch (const Error& error) {
      if (!is_of_lost_rank(error)) throw;
    }
  }
  ++comm.agreed;
  return comm.last_agreed = *result;
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Comm_revoke(MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  comm.net->abort(kRevoked);
  if (comm.inner != nullptr) comm.inner->abort(kRevoked);
}
void Comm_is_revoked(MPI_Comm comm, int* flag) {
  const auto status = comm_of(comm).net->status();
  *flag = status && status->message.find(kRevoked) != std::string::npos;
}
void Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp) {
  *failedgrp = hand_out(failed_of(of_one_group(comm)));
}
void Comm_ack_failed(MPI_Comm handle, int num_to_ack, int* num_acked) {
  Comm& comm = of_one_group(handle);
  std::vector<int> failed = failed_of(comm);
  require(num_to_ack >= 0, MPI_ERR_ARG, "num_to_ack is negative");
  failed.resize(std::min(failed.size(), static_cast<std::size_t>(num_to_ack)));
  if (failed.size() > comm.acknowledged.size()) comm.acknowledged = std::move(failed);
  *num_acked = static_cast<int>(comm.acknowledged.size());
}
void Comm_failure_ack(MPI_Comm comm) {
  int acknowledged = 0;
  Comm_ack_failed(comm, of_one_group(comm).size(), &acknowledged);
}
void Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp) {
  *failedgrp = hand_out(of_one_group(comm).acknowledged);
}

void Comm_agree(MPI_Comm handle, int* flag) {
  Comm& comm = of_one_group(handle);
  *flag = agree_on(comm, *flag);
  const auto& known = comm.acknowledged;
  for (const int member : failed_of(comm)) {
    if (std::ranges::find(known, member) != known.end()) continue;
    fail(MPIX_ERR_PROC_FAILED,
         "rank " + std::to_string(comm.local->find(member)) +
             " has died, and MPIX_Comm_failure_ack has not been called since");
  }
}

// If the communicator has not failed, the program may continue to use it. But go_on has rebuilt the
// hocket communicator behind it, and rebuilding ends the old one. So `comm` gets the rebuilt one.
//
// A rank may die while the ranks make the new communicator, and then only some of them have it. So
// the ranks rebuild once more after each attempt. If the rebuilt communicator has fewer ranks than
// the attempt, all ranks see this, and make the new communicator again.
void Comm_shrink(MPI_Comm handle, MPI_Comm* newcomm) {
  Comm& comm = of_one_group(handle);
  *newcomm = MPI_COMM_NULL;
  const std::lock_guard lock(comm.starting);
  std::int32_t was_whole = comm.survivors == nullptr && !comm.net->status();
  auto made = std::make_shared<Comm>();
  int tried = -1;
  for (Communicator* left = &go_on(comm); tried != left->size(); left = &go_on(comm)) {
    tried = left->size();
    made->net = nullptr;
    try {
      left->all_reduce(ArrayView(&was_whole, 1, DType::kInt32), {.op = ReduceOp::kMin});
      made->net = std::make_shared<Communicator>(left->duplicate());
    } catch (const Error& error) {
      if (!is_of_lost_rank(error)) throw;
    }
  }
  require(made->net != nullptr, MPIX_ERR_PROC_FAILED, "the ranks that are left were interrupted");
  made->world = comm.world;
  made->errhandler = comm.errhandler;
  made->session = comm.session;
  made->context = comm.context * 37 + ++comm.made;
  made->rank = made->net->rank();
  Group members;
  const auto all = comm.net->world_ranks();
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool stays = is_among(*made->net, all[static_cast<std::size_t>(rank)]);
    if (stays) members.members.push_back(comm.local->members[static_cast<std::size_t>(rank)]);
  }
  made->local = std::make_shared<Group>(std::move(members));
  if (was_whole != 0 && tried == comm.size()) comm.net = std::exchange(comm.survivors, nullptr);
  *newcomm = publish(std::move(made));
}

}  // namespace hocket::mpi::call
