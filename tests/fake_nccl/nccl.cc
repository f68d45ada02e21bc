// The calls. Like NCCL's kernels, the work that they put on a stream waits there for the other
// ranks. If one never comes, it waits until the communicator is aborted.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "channels.h"
#include "foundation/cuda/abi.h"
#include "host_work.h"
#include "reduce.h"

using namespace hocket::engines::nccl;
using hocket::cuda::Stream;

namespace fake_nccl {
namespace {

// Bytes to or from a rank.
struct Part {
  bool sends;
  int peer;
  std::byte* at;
  std::size_t bytes;
};

}  // namespace
}  // namespace fake_nccl

// Work of a stream. A graph may run it repeatedly.
struct Work {
  ncclComm* comm;
  std::vector<fake_nccl::Part> parts;
  std::vector<std::vector<std::byte>> room;  // for what comes to be reduced
  std::function<void()> finish;              // where all parts are through
};

// Never destroyed: streams may have work of it.
struct ncclComm {
  int rank = 0;
  int size = 1;
  fake_nccl::Meeting* meeting = nullptr;
  std::atomic<bool> aborted{false};
  std::atomic<int> running{0};
  std::mutex mutex;
  std::vector<std::unique_ptr<Work>> works;  // guarded by mutex
};

namespace fake_nccl {
namespace {

constexpr NcclResult kInvalidArgument = static_cast<NcclResult>(4);

// Parts of one way with one rank come one after the other.
bool is_next(const Work& work, const std::vector<std::size_t>& done, std::size_t which) {
  for (std::size_t i = 0; i < which; ++i) {
    if (done[i] < work.parts[i].bytes && work.parts[i].sends == work.parts[which].sends &&
        work.parts[i].peer == work.parts[which].peer) {
      return false;
    }
  }
  return true;
}

void run(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  ncclComm& comm = *work.comm;
  ++comm.running;
  std::vector<std::size_t> done(work.parts.size());
  bool through = false;
  while (!through && !comm.aborted) {
    through = true;
    bool moved = false;
    for (std::size_t i = 0; i < work.parts.size(); ++i) {
      const Part& part = work.parts[i];
      if (done[i] == part.bytes) continue;
      through = false;
      if (!is_next(work, done, i)) continue;
      auto& rings = comm.meeting->rings;
      const std::size_t now =
          part.sends ? rings[comm.rank][part.peer].put(part.at + done[i], part.bytes - done[i])
                     : rings[part.peer][comm.rank].take(part.at + done[i], part.bytes - done[i]);
      done[i] += now;
      moved = moved || now > 0;
    }
    if (!through && !moved) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (through && work.finish) work.finish();
  --comm.running;
}

NcclResult put(ncclComm* comm, std::unique_ptr<Work> work, Stream stream) {
  work->comm = comm;
  Work* const kept = work.get();
  {
    const std::lock_guard lock(comm->mutex);
    comm->works.push_back(std::move(work));
  }
  fake::launch_on(stream, run, kept);
  return NcclResult::kSuccess;
}

// Messages of this thread, until the group ends.
struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  Stream stream = nullptr;
  std::vector<Part> parts;
};
thread_local Group group;

NcclResult end_group() {
  if (group.parts.empty()) return NcclResult::kSuccess;
  auto work = std::make_unique<Work>();
  work->parts = std::exchange(group.parts, {});
  return put(group.comm, std::move(work), group.stream);
}

NcclResult add(Part part, ncclComm* comm, Stream stream) {
  if (part.peer < 0 || part.peer >= comm->size || part.peer == comm->rank) return kInvalidArgument;
  group.comm = comm;
  group.stream = stream;
  group.parts.push_back(part);
  return group.depth > 0 ? NcclResult::kSuccess : end_group();
}

std::byte* at(const void* array, std::size_t offset = 0) {
  return static_cast<std::byte*>(const_cast<void*>(array)) + offset;
}

// Each rank that `reduces` gets everybody's piece, of `bytes` and at `stride` times its number.
NcclResult reduce_pieces(const void* in,
                         void* out,
                         std::size_t count,
                         std::size_t stride,
                         NcclType type,
                         RedOp op,
                         const std::function<bool(int)>& reduces,
                         ncclComm* comm,
                         Stream stream) {
  const std::size_t bytes = count * size_of(type);
  auto work = std::make_unique<Work>();
  std::vector<const void*> sources;
  work->room.resize(static_cast<std::size_t>(comm->size));
  for (int peer = 0; peer < comm->size; ++peer) {
    const void* own = at(in, stride * static_cast<std::size_t>(peer));
    if (peer == comm->rank) {
      sources.push_back(own);
      continue;
    }
    if (reduces(peer)) work->parts.push_back({true, peer, at(own), bytes});
    if (!reduces(comm->rank)) continue;
    auto& room = work->room[static_cast<std::size_t>(peer)];
    room.resize(bytes);
    work->parts.push_back({false, peer, room.data(), bytes});
    sources.push_back(room.data());
  }
  if (reduces(comm->rank)) {
    work->finish = [=] { reduce(out, sources, count, type, op); };
  }
  return put(comm, std::move(work), stream);
}

}  // namespace
}  // namespace fake_nccl

using namespace fake_nccl;

extern "C" {

NcclResult ncclGetVersion(int* version) {
  *version = 22809;
  return NcclResult::kSuccess;
}
NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  *id = make_meeting();
  return NcclResult::kSuccess;
}
const char* ncclGetErrorString(NcclResult) { return "the fake NCCL says no"; }
const char* ncclGetLastError(ncclComm*) { return ""; }

NcclResult ncclCommInitRankConfig(
    ncclComm** comm, int size, NcclUniqueId id, int rank, CommConfig*) {
  if (size > kMaxRanks) return kInvalidArgument;
  auto* made = new ncclComm;
  made->rank = rank;
  made->size = size;
  made->meeting = open_meeting(id);
  if (made->meeting == nullptr) return kInvalidArgument;
  ++made->meeting->attached;
  *comm = made;
  return NcclResult::kInProgress;
}
NcclResult ncclCommGetAsyncError(ncclComm* comm, NcclResult* state) {
  *state = comm->meeting->attached < comm->size ? NcclResult::kInProgress : NcclResult::kSuccess;
  return NcclResult::kSuccess;
}
NcclResult ncclCommFinalize(ncclComm*) { return NcclResult::kSuccess; }
NcclResult ncclCommDestroy(ncclComm*) { return NcclResult::kSuccess; }
// As NCCL: returns when its kernels have ended.
NcclResult ncclCommAbort(ncclComm* comm) {
  comm->aborted = true;
  while (comm->running > 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return NcclResult::kSuccess;
}

NcclResult ncclGroupStart() {
  ++group.depth;
  return NcclResult::kSuccess;
}
NcclResult ncclGroupEnd() { return --group.depth > 0 ? NcclResult::kSuccess : end_group(); }

NcclResult ncclSend(
    const void* data, std::size_t count, NcclType type, int peer, ncclComm* comm, Stream stream) {
  return add({true, peer, at(data), count * size_of(type)}, comm, stream);
}
NcclResult ncclRecv(
    void* data, std::size_t count, NcclType type, int peer, ncclComm* comm, Stream stream) {
  return add({false, peer, at(data), count * size_of(type)}, comm, stream);
}

NcclResult ncclAllReduce(const void* in,
                         void* out,
                         std::size_t count,
                         NcclType type,
                         RedOp op,
                         ncclComm* comm,
                         Stream stream) {
  return reduce_pieces(in, out, count, 0, type, op, [](int) { return true; }, comm, stream);
}
NcclResult ncclReduce(const void* in,
                      void* out,
                      std::size_t count,
                      NcclType type,
                      RedOp op,
                      int root,
                      ncclComm* comm,
                      Stream stream) {
  const auto reduces = [root](int rank) { return rank == root; };
  return reduce_pieces(in, out, count, 0, type, op, reduces, comm, stream);
}
NcclResult ncclReduceScatter(const void* in,
                             void* out,
                             std::size_t count,
                             NcclType type,
                             RedOp op,
                             ncclComm* comm,
                             Stream stream) {
  const std::size_t stride = count * size_of(type);
  // In place, the output is this rank's part of the input.
  const auto* const first = at(in);
  const auto* const own = first + stride * static_cast<std::size_t>(comm->rank);
  const bool is_within =
      at(out) >= first && at(out) < first + stride * static_cast<std::size_t>(comm->size);
  if (is_within && at(out) != own) return kInvalidArgument;
  return reduce_pieces(in, out, count, stride, type, op, [](int) { return true; }, comm, stream);
}
NcclResult ncclBroadcast(const void* in,
                         void* out,
                         std::size_t count,
                         NcclType type,
                         int root,
                         ncclComm* comm,
                         Stream stream) {
  const std::size_t bytes = count * size_of(type);
  auto work = std::make_unique<Work>();
  if (comm->rank != root) {
    work->parts.push_back({false, root, at(out), bytes});
  } else {
    for (int peer = 0; peer < comm->size; ++peer) {
      if (peer != root) work->parts.push_back({true, peer, at(in), bytes});
    }
    work->finish = [=] {
      if (in != out) std::copy_n(at(in), bytes, at(out));
    };
  }
  return put(comm, std::move(work), stream);
}
NcclResult ncclAllGather(
    const void* in, void* out, std::size_t count, NcclType type, ncclComm* comm, Stream stream) {
  const std::size_t bytes = count * size_of(type);
  auto work = std::make_unique<Work>();
  for (int peer = 0; peer < comm->size; ++peer) {
    if (peer == comm->rank) continue;
    work->parts.push_back({true, peer, at(in), bytes});
    work->parts.push_back({false, peer, at(out, bytes * static_cast<std::size_t>(peer)), bytes});
  }
  std::byte* const own = at(out, bytes * static_cast<std::size_t>(comm->rank));
  work->finish = [=] {
    if (at(in) != own) std::copy_n(at(in), bytes, own);
  };
  return put(comm, std::move(work), stream);
}

}  // extern "C"
