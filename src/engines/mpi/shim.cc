// The source of all shims. Each is compiled with one MPI's mpi.h into a library of its own; see
// abi.h.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "engines/mpi/abi.h"
#include "engines/mpi/shim_operations.h"
#include "hocket/types.h"

namespace hocket::engines::mpi {
namespace {

struct Comm {
  MPI_Comm comm;
  bool is_owned;
  std::uint64_t number = 0;  // never reused, unlike addresses
};
struct ShimRequest {
  MPI_Request request;
  std::uint64_t comm;     // number of its communicator
  bool receives = false;  // the request is a receive
};

// An abandoned request.
struct GivenUp {
  ShimRequest* request;
  void (*release)(void* memory);
  void* memory;
};
bool is_forsaken = false;  // MPI would wait for a rank that has died
void forsake() { is_forsaken = true; }

std::vector<GivenUp>& given_up() {
  static auto* all = new std::vector<GivenUp>;  // exists until the last exit handler has run
  return *all;
}

// Communicators without users that still have abandoned requests.
std::vector<Comm>& left() {
  static auto* all = new std::vector<Comm>;
  return *all;
}
// Communicators in which a call failed. MPI does not report the state of the call's other parts. A
// new communicator that reuses such a number could receive their data.
std::vector<std::uint64_t>& broken() {
  static auto* all = new std::vector<std::uint64_t>;
  return *all;
}
bool is_left_in(const Comm& comm) {
  if (std::find(broken().begin(), broken().end(), comm.number) != broken().end()) return true;
  return std::any_of(given_up().begin(), given_up().end(), [&](const GivenUp& each) {
    return each.request->comm == comm.number;
  });
}

AtEnd at_end;

void version(char* text, std::size_t size) {
  char full[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(full, &length);
  // The name is the beginning of the first line.
  full[std::strcspn(full, "\n,")] = '\0';
  std::snprintf(text, size, "%s", full);
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == '\t') *at = ' ';
  }
}

void error_text(int code, char* text, std::size_t size) {
  char full[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, full, &length) != MPI_SUCCESS) full[0] = '\0';
  std::snprintf(text, size, "%s", full);
}

bool is_initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}
bool is_finalized() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

// Releases requests that have ended, with their memory. Returns true if none is left.
bool settle() {
  const auto ended = std::erase_if(given_up(), [](const GivenUp& each) {
    int flag = 0;
    const int code = MPI_Test(&each.request->request, &flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      broken().push_back(each.request->comm);  // the memory stays, because MPI may still write to
                                               // it
      return true;
    }
    if (flag == 0) return false;
    each.release(each.memory);
    delete each.request;
    return true;
  });
  if (ended != 0) {
    std::erase_if(left(), [](Comm& comm) {
      return !is_left_in(comm) && MPI_Comm_free(&comm.comm) == MPI_SUCCESS;
    });
  }
  return given_up().empty();
}

void withdraw(void* request) {
  auto* owned = static_cast<ShimRequest*>(request);
  if (!is_finalized()) MPI_Cancel(&owned->request);
}

void withdraw_receives() {
  for (const GivenUp& each : given_up()) {
    if (each.request->receives) withdraw(each.request);
  }
}

constexpr LastSteps kLastSteps{.has_left = [] { return !given_up().empty(); },
                               .settle =
                                   [](bool withdraws) {
                                     if (withdraws) withdraw_receives();
                                     return settle();
                                   },
                               .finalize = [] { MPI_Finalize(); }};

void finalize_at_exit() {
  if (!is_initialized() || is_finalized() || is_forsaken) return;
  at_end.run(at_end.self, kLastSteps);
}

bool starts_mpi = false;
void end() {
  if (starts_mpi) finalize_at_exit();
}

int start(Fold fold_function, AtEnd end_function, Threads* threads) {
  fold_of_hocket = fold_function;
  at_end = end_function;
  int provided = MPI_THREAD_SINGLE;
  int code = MPI_SUCCESS;
  if (!is_initialized()) {
    code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    starts_mpi = code == MPI_SUCCESS;
    if (starts_mpi) std::atexit(&finalize_at_exit);
    // Open MPI reports an error of a nonblocking collective on the world, whose default handler
    // ends the process. Parts of calls that differ have different lengths, which is such an error.
    if (starts_mpi) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  } else {
    code = MPI_Query_thread(&provided);
  }
  *threads = provided == MPI_THREAD_MULTIPLE     ? Threads::kAny
             : provided == MPI_THREAD_SERIALIZED ? Threads::kInTurns
                                                 : Threads::kOne;
  return code;
}

void give_up(void* request, void (*release)(void* memory), void* memory) {
  given_up().push_back({static_cast<ShimRequest*>(request), release, memory});
}

// Makes errors on the communicator return as codes.
int adopt(MPI_Comm comm, void** made) {
  const int code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) return code;
  static std::uint64_t last = 0;
  *made = new (std::nothrow) Comm{comm, true, ++last};
  return *made == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int world(void** made) {
  *made = new (std::nothrow) Comm{MPI_COMM_WORLD, false};
  return *made == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

int place(void* comm, std::int32_t* rank, std::int32_t* size) {
  const MPI_Comm c = static_cast<Comm*>(comm)->comm;
  const int code = MPI_Comm_rank(c, rank);
  return code == MPI_SUCCESS ? MPI_Comm_size(c, size) : code;
}

int create(
    void* parent, std::int32_t count, const std::int32_t* ranks, std::int32_t tag, void** made) {
  const MPI_Comm c = static_cast<Comm*>(parent)->comm;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_Comm_group(c, &all);
  if (code == MPI_SUCCESS) code = MPI_Group_incl(all, count, ranks, &some);
  if (code == MPI_SUCCESS) code = MPI_Comm_create_group(c, some, tag, &comm);
  if (some != MPI_GROUP_NULL) MPI_Group_free(&some);
  if (all != MPI_GROUP_NULL) MPI_Group_free(&all);
  return code == MPI_SUCCESS ? adopt(comm, made) : code;
}

// Abandoned requests of a communicator may end later or never. The communicator stays as long, and
// others can be freed meanwhile.
void release(void* comm) {
  auto* owned = static_cast<Comm*>(comm);
  if (owned->is_owned && !is_forsaken && !is_finalized()) {
    settle();
    if (is_left_in(*owned)) {
      left().push_back(*owned);
    } else {
      MPI_Comm_free(&owned->comm);
    }
  }
  delete owned;
}

int begin_reduction(MPI_Comm c, const ShimCall& call, MPI_Request* request) {
  MpiOperation operation{};
  const int code = operation_of(call, operation);
  if (code != MPI_SUCCESS) return code;
  const auto [type, op] = operation;
  switch (call.kind) {
    case Collective::kReduce:
      return MPI_Ireduce(call.in, call.out, call.count, type, op, call.root, c, request);
    case Collective::kAllReduce:
      return MPI_Iallreduce(call.in, call.out, call.count, type, op, c, request);
    case Collective::kScan:
      return MPI_Iscan(call.in, call.out, call.count, type, op, c, request);
    case Collective::kExscan:
      return MPI_Iexscan(call.in, call.out, call.count, type, op, c, request);
    case Collective::kReduceScatter:
      return MPI_Ireduce_scatter(call.in, call.out, call.in_counts, type, op, c, request);
    case Collective::kBarrier:
    case Collective::kBroadcast:
    case Collective::kAllGather:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kAllToAll:
    case Collective::kAllGatherV:
    case Collective::kGatherV:
    case Collective::kScatterV:
    case Collective::kAllToAllV:
      break;
  }
  return MPI_ERR_OP;  // not a reduction
}

int begin_movement(MPI_Comm c, const ShimCall& call, MPI_Request* request) {
  const MPI_Datatype type = type_of_size(size_of(static_cast<DType>(call.dtype)));
  const int n = call.count;
  switch (call.kind) {
    case Collective::kBroadcast:
      return MPI_Ibcast(call.out, n, type, call.root, c, request);
    case Collective::kAllGather:
      return MPI_Iallgather(call.in, n, type, call.out, n, type, c, request);
    case Collective::kGather:
      return MPI_Igather(call.in, n, type, call.out, n, type, call.root, c, request);
    case Collective::kScatter:
      return MPI_Iscatter(call.in, n, type, call.out, n, type, call.root, c, request);
    case Collective::kAllToAll:
      return MPI_Ialltoall(call.in, n, type, call.out, n, type, c, request);
    case Collective::kAllGatherV:
      return MPI_Iallgatherv(
          call.in, n, type, call.out, call.out_counts, call.out_places, type, c, request);
    case Collective::kGatherV:
      return MPI_Igatherv(call.in,
                          n,
                          type,
                          call.out,
                          call.out_counts,
                          call.out_places,
                          type,
                          call.root,
                          c,
                          request);
    case Collective::kScatterV:
      return MPI_Iscatterv(
          call.in, call.in_counts, call.in_places, type, call.out, n, type, call.root, c, request);
    case Collective::kAllToAllV:
      return MPI_Ialltoallv(call.in,
                            call.in_counts,
                            call.in_places,
                            type,
                            call.out,
                            call.out_counts,
                            call.out_places,
                            type,
                            c,
                            request);
    case Collective::kBarrier:
      return MPI_Ibarrier(c, request);
    case Collective::kReduce:
    case Collective::kAllReduce:
    case Collective::kScan:
    case Collective::kExscan:
    case Collective::kReduceScatter:
      break;
  }
  return MPI_ERR_OP;  // not a movement
}

int begin(void* comm, const ShimCall* call, void** made) {
  const auto* where = static_cast<Comm*>(comm);
  const MPI_Comm c = where->comm;
  auto* owned = new (std::nothrow) ShimRequest{MPI_REQUEST_NULL, where->number};
  if (owned == nullptr) return MPI_ERR_NO_MEM;
  const bool reduces = call->kind == Collective::kReduce || call->kind == Collective::kAllReduce ||
                       call->kind == Collective::kScan || call->kind == Collective::kExscan ||
                       call->kind == Collective::kReduceScatter;
  const int code = reduces ? begin_reduction(c, *call, &owned->request)
                           : begin_movement(c, *call, &owned->request);
  if (code != MPI_SUCCESS) {
    delete owned;
    return code;
  }
  *made = owned;
  return MPI_SUCCESS;
}

int begin_message(MPI_Comm c, const ShimMessage& message, MPI_Request* request) {
  const auto [way, bytes, count, peer, tag] = message;
  switch (way) {
    case ShimMessage::Way::kReceive:
      return MPI_Irecv(bytes, count, MPI_BYTE, peer, tag, c, request);
    case ShimMessage::Way::kSend:
      return MPI_Isend(bytes, count, MPI_BYTE, peer, tag, c, request);
    case ShimMessage::Way::kSendFully:
      return MPI_Issend(bytes, count, MPI_BYTE, peer, tag, c, request);
  }
  return MPI_ERR_OP;  // not a known way
}

int post(void* comm, const ShimMessage* message, void** made) {
  const bool receives = message->way == ShimMessage::Way::kReceive;
  const auto* where = static_cast<Comm*>(comm);
  auto* owned = new (std::nothrow) ShimRequest{MPI_REQUEST_NULL, where->number, receives};
  if (owned == nullptr) return MPI_ERR_NO_MEM;
  const int code = begin_message(where->comm, *message, &owned->request);
  if (code != MPI_SUCCESS) {
    delete owned;
    return code;
  }
  *made = owned;
  return MPI_SUCCESS;
}

int probe(void* comm, std::int32_t tag, std::int32_t* source) {
  if (!given_up().empty()) settle();
  int there = 0;
  MPI_Status status;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, tag, static_cast<Comm*>(comm)->comm, &there, &status);
  *source = code == MPI_SUCCESS && there != 0 ? status.MPI_SOURCE : -1;
  return code;
}

// Both queries are extensions that not every MPI has.
Gpus gpus() {
  using Query = int (*)();
  using QueryKind = int (*)(int kind, int* is_supported);
  constexpr int kCuda = 0;  // MPIX_GPU_SUPPORT_CUDA
  const auto find = [](const char* name) { return ::dlsym(RTLD_DEFAULT, name); };
  if (void* found = find("MPIX_GPU_query_support")) {
    int is_supported = 0;
    if (reinterpret_cast<QueryKind>(found)(kCuda, &is_supported) == MPI_SUCCESS) {
      return is_supported != 0 ? Gpus::kSaysYes : Gpus::kSaysNo;
    }
  }
  if (void* found = find("MPIX_Query_cuda_support")) {
    return reinterpret_cast<Query>(found)() != 0 ? Gpus::kSaysYes : Gpus::kSaysNo;
  }
  return Gpus::kSaysNothing;
}

int test(void* request, bool* done) {
  if (!given_up().empty()) settle();
  auto* owned = static_cast<ShimRequest*>(request);
  int flag = 0;
  const int code = MPI_Test(&owned->request, &flag, MPI_STATUS_IGNORE);
  *done = flag != 0 || code != MPI_SUCCESS;
  if (code != MPI_SUCCESS) broken().push_back(owned->comm);
  if (*done) delete owned;
  return code;
}

constexpr Shim kShim{.abi = kAbi,
                     .version = &version,
                     .error_text = &error_text,
                     .is_finalized = &is_finalized,
                     .start = &start,
                     .give_up = &give_up,
                     .withdraw = &withdraw,
                     .forsake = &forsake,
                     .world = &world,
                     .place = &place,
                     .create = &create,
                     .release = &release,
                     .begin = &begin,
                     .test = &test,
                     .post = &post,
                     .probe = &probe,
                     .gpus = &gpus,
                     .end = &end};

}  // namespace
}  // namespace hocket::engines::mpi

extern "C" __attribute__((visibility("default"))) const hocket::engines::mpi::Shim*
hocket_mpi_shim() {
  return &hocket::engines::mpi::kShim;
}
