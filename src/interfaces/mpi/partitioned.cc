// Partitioned messages. A message leaves when its last partition is ready, and its partitions have
// arrived when all of it has.
#include "interfaces/mpi/entry.h"
#include "interfaces/mpi/process.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

Request& partitioned(MPI_Request handle) {
  Request* found = process().requests.find(handle);
  require(found != nullptr && found->partitions != nullptr,
          MPI_ERR_REQUEST,
          "request is none of a partitioned message");
  require(found->active, MPI_ERR_REQUEST, "request has not been started");
  return *found;
}

void make_ready(Request& request, int first, int last) {
  Partitions& all = *request.partitions;
  require(all.sends, MPI_ERR_REQUEST, "request receives");
  const std::lock_guard lock(all.mutex);
  require(first >= 0 && last < static_cast<int>(all.is_ready.size()),
          MPI_ERR_ARG,
          "partition is none of request's");
  for (int i = first; i <= last; ++i) {
    require(!all.is_ready[static_cast<std::size_t>(i)], MPI_ERR_ARG, "partition is ready already");
    all.is_ready[static_cast<std::size_t>(i)] = true;
    if (all.missing == 1) request.now = request.restart();
    --all.missing;
  }
}

// Makes an inactive request of as many partitions, with the means to begin its message.
void hand_out_partitioned(
    MPI_Request* handle, int count, bool sends, std::function<Pending()> begin, MPI_Comm comm) {
  require(count >= 0, MPI_ERR_ARG, "partitions is negative");
  hand_out_persistent(handle, std::move(begin), Scope{comm});
  auto made = std::make_unique<Partitions>();
  made->sends = sends;
  made->is_ready.resize(static_cast<std::size_t>(count));
  process().requests.find(*handle)->partitions = std::move(made);
}

}  // namespace

Pending start_partitions(Request& request) {
  Partitions& all = *request.partitions;
  const std::lock_guard lock(all.mutex);
  all.is_ready.assign(all.is_ready.size(), false);
  all.missing = all.sends ? static_cast<int>(all.is_ready.size()) : 0;
  return all.missing == 0 ? request.restart() : Pending{};
}

bool has_missing_partitions(const Request& request) {
  return request.partitions != nullptr && request.partitions->missing != 0;
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

void Psend_init(const void* buf,
                int partitions,
                MPI_Count count,
                MPI_Datatype datatype,
                int dest,
                int tag,
                MPI_Comm comm,
                MPI_Info,
                MPI_Request* request) {
  hand_out_partitioned(
      request,
      partitions,
      true,
      [=] { return Send(How::kImmediate, buf, partitions * count, datatype, dest, tag, comm); },
      comm);
}
void Precv_init(void* buf,
                int partitions,
                MPI_Count count,
                MPI_Datatype datatype,
                int dest,
                int tag,
                MPI_Comm comm,
                MPI_Info,
                MPI_Request* request) {
  hand_out_partitioned(
      request,
      partitions,
      false,
      [=] { return Recv(How::kImmediate, buf, partitions * count, datatype, dest, tag, comm); },
      comm);
}

void Pready(int partition, MPI_Request request) {
  make_ready(partitioned(request), partition, partition);
}
void Pready_range(int partition_low, int partition_high, MPI_Request request) {
  make_ready(partitioned(request), partition_low, partition_high);
}
void Pready_list(int length, const int* partitions, MPI_Request request) {
  for (int i = 0; i < length; ++i) Pready(partitions[i], request);
}
void Parrived(MPI_Request request, int partition, int* flag) {
  *flag = 1;
  Request* found = process().requests.find(request);
  require(found != nullptr && found->partitions != nullptr && !found->partitions->sends,
          MPI_ERR_REQUEST,
          "request is none of a partitioned receive");
  require(partition >= 0 && partition < static_cast<int>(found->partitions->is_ready.size()),
          MPI_ERR_ARG,
          "partition is none of the request");
  if (found->active) *flag = found->now.test();
}

}  // namespace hocket::mpi::call
