// The source of all shims. It is compiled once for each MPI, with that MPI's mpi.h, into a separate
// library; see abi.h.
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
  std::uint64_t comm;     // Comm::number of its communicator
  bool receives = false;  // the request is a receive
};

// An abandoned request. `release` frees `memory` when the request has ended.
struct GivenUp {
  ShimRequest* request;
  void (*release)(void* memory);
  void* memory;
};
bool is_forsaken = false;  // a rank has died, for which MPI_Finalize would wait
void forsake() { is_forsaken = true; }

std::vector<GivenUp>& given_up() {
  static auto* all = new std::vector<GivenUp>;  // exists until the last exit handler has run
  return *all;
}

// Communicators that have no users any more but still have abandoned requests.
std::vector<Comm>& left() {
  static auto* all = new std::vector<Comm>;
  return *all;
}
// The numbers of communicators in which a call failed. They are never freed: other parts of the
// failed call may still move data, and MPI does not report their state. A new communicator that
// reuses MPI's identifier could receive this data.
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
  // Keep only the name, which is the beginning of the first line.
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

// Releases an abandoned request and its memory if the request has ended. Returns false if it has
// not ended.
bool release_if_ended(const GivenUp& each) {
  int flag = 0;
  const int code = MPI_Test(&each.request->request, &flag, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) {
    // The memory is never released, because MPI may still write to it.
    broken().push_back(each.request->comm);
    return true;
  }
  if (flag == 0) return false;
  each.release(each.memory);
  delete each.request;
  return true;
}

// Frees the communicators in left() that have no abandoned request any more.
void free_left() {
  std::erase_if(left(), [](Comm& comm) {
    return !is_left_in(comm) && MPI_Comm_free(&comm.comm) == MPI_SUCCESS;
  });
}

// Releases the abandoned requests of one communicator that have ended.
void release_ended_of(const Comm& comm) {
  std::erase_if(given_up(), [&](const GivenUp& each) {
    return each.request->comm == comm.number && release_if_ended(each);
  });
}

// Releases all abandoned requests that have ended. Returns true if none is left.
bool release_ended() {
  if (std::erase_if(given_up(), release_if_ended) != 0) free_left();
  return given_up().empty();
}

// Tests one abandoned request at every kStepsALook-th call. A test lets MPI make progress, and MPI
// may yield the processor meanwhile. After many faults there are many abandoned requests. Testing
// all of them at each step would delay the current call.
void look_at_one() {
  constexpr std::uint32_t kStepsALook = 64;
  static std::uint32_t steps = 0;
  static std::size_t next = 0;
  if (given_up().empty() || ++steps % kStepsALook != 0) return;
  next = (next + 1) % given_up().size();
  if (!release_if_ended(given_up()[next])) return;
  given_up().erase(given_up().begin() + static_cast<std::ptrdiff_t>(next));
  free_left();
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
                               .test =
                                   [](bool withdraws) {
                                     if (withdraws) withdraw_receives();
                                     return release_ended();
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
    // Open MPI reports an error of a nonblocking collective on MPI_COMM_WORLD, whose default error
    // handler ends the process. Such an error occurs if ranks make different calls, whose parts
    // have different lengths.
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

// Wraps a new communicator. Makes MPI return errors on it as codes.
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

// Frees a communicator. If it still has abandoned requests, which may end later or never, it is
// kept until they have ended.
void release(void* comm) {
  auto* owned = static_cast<Comm*>(comm);
  if (owned->is_owned && !is_forsaken && !is_finalized()) {
    release_ended_of(*owned);
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
  look_at_one();
  int there = 0;
  MPI_Status status;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, tag, static_cast<Comm*>(comm)->comm, &there, &status);
  *source = code == MPI_SUCCESS && there != 0 ? status.MPI_SOURCE : -1;
  return code;
}

// Both queries are extensions that not every MPI has, so their functions are looked up at run time.
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
  look_at_one();
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
