// Compiled with an MPI's own mpi.h into a library of its own; see abi.h.
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "engines/mpi/abi.h"
#include "hocket/types.h"

namespace hocket::engines::mpi {
namespace {

struct Comm {
  MPI_Comm comm;
  bool is_owned;
};
struct Request {
  MPI_Request request;
};

// MPI gives an operation nothing of its own to know things by.
Fold fold_of_hocket = nullptr;

// What nobody waits for any more.
struct GivenUp {
  Request* request;
  void (*release)(void* memory);
  void* memory;
};
bool is_forsaken = false;  // MPI waits for a rank that has died
void forsake() { is_forsaken = true; }

std::vector<GivenUp>& given_up() {
  static auto* all = new std::vector<GivenUp>;  // there until after the last handler of the exit
  return *all;
}

template <int Dtype, int Op>
void fold(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  fold_of_hocket(Dtype, Op, inout, in, static_cast<std::size_t>(*count));
}

using UserFunction = void (*)(void*, void*, int*, MPI_Datatype*);
template <int Dtype, int... Ops>
constexpr std::array<UserFunction, sizeof...(Ops)> functions_of(
    std::integer_sequence<int, Ops...>) {
  return {&fold<Dtype, Ops>...};
}
template <int... Dtypes>
constexpr auto all_functions(std::integer_sequence<int, Dtypes...>) {
  return std::array{functions_of<Dtypes>(std::make_integer_sequence<int, kReduceOpCount>{})...};
}
constexpr auto kFunctions = all_functions(std::make_integer_sequence<int, kDTypeCount>{});

// Types whose elements only travel, or are folded by hocket.
MPI_Datatype type_of_size(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return MPI_UINT8_T;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    case 8:
      return MPI_UINT64_T;
    default:
      return MPI_C_DOUBLE_COMPLEX;
  }
}

// The type of elements on which MPI's own sums are used; MPI_DATATYPE_NULL for the others.
MPI_Datatype native_type(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kUInt32:
      return MPI_UINT32_T;
    case DType::kUInt64:
      return MPI_UINT64_T;
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kComplex64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::kComplex128:
      return MPI_C_DOUBLE_COMPLEX;
    default:
      return MPI_DATATYPE_NULL;
  }
}

// MPI's operation where it is known to be the same as hocket's. The others are not: Open MPI 4.1
// has sums of integers of 8 and 16 bits that saturate, MPICH 4.0 compares uint8 as if it had a
// sign, minima and maxima of floats may lose NaN, products of complex numbers repair it.
MPI_Op native_op(DType dtype, ReduceOp op) {
  if (native_type(dtype) == MPI_DATATYPE_NULL) return MPI_OP_NULL;
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  if (op == ReduceOp::kSum) return MPI_SUM;
  return op == ReduceOp::kProduct && !is_complex ? MPI_PROD : MPI_OP_NULL;
}

struct Operation {
  MPI_Datatype type;
  MPI_Op op;
};

int operation_of(const ShimCall& call, Operation& found) {
  const auto dtype = static_cast<DType>(call.dtype);
  const auto op = static_cast<ReduceOp>(call.op);
  found = {native_type(dtype), native_op(dtype, op)};
  if (found.op != MPI_OP_NULL) return MPI_SUCCESS;
  static std::array<std::array<MPI_Op, kReduceOpCount>, kDTypeCount> made;
  static bool is_filled = false;
  if (!is_filled) {
    for (auto& row : made) row.fill(MPI_OP_NULL);
    is_filled = true;
  }
  found.type = type_of_size(size_of(dtype));
  MPI_Op& cached = made[static_cast<std::size_t>(call.dtype)][static_cast<std::size_t>(call.op)];
  int code = MPI_SUCCESS;
  if (cached == MPI_OP_NULL) {
    const auto function =
        kFunctions[static_cast<std::size_t>(call.dtype)][static_cast<std::size_t>(call.op)];
    code = MPI_Op_create(function, 1, &cached);
  }
  found.op = cached;
  return code;
}

void version(char* text, std::size_t size) {
  char full[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(full, &length);
  // Of the first line, as much as says what it is.
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

// Releases what is done. True where nothing is left.
bool settle() {
  std::erase_if(given_up(), [](const GivenUp& each) {
    int flag = 0;
    const int code = MPI_Test(&each.request->request, &flag, MPI_STATUS_IGNORE);
    if (flag == 0 || code != MPI_SUCCESS) return false;
    each.release(each.memory);
    delete each.request;
    return true;
  });
  return given_up().empty();
}

void finalize_at_exit() {
  if (!is_initialized() || is_finalized() || is_forsaken) return;
  // The others may be about to do their part, or never.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!settle()) {
    if (std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MPI_Finalize();
}

int start(Fold fold_function, Threads* threads) {
  fold_of_hocket = fold_function;
  int provided = MPI_THREAD_SINGLE;
  int code = MPI_SUCCESS;
  if (!is_initialized()) {
    code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    if (code == MPI_SUCCESS) std::atexit(&finalize_at_exit);
  } else {
    code = MPI_Query_thread(&provided);
  }
  *threads = provided == MPI_THREAD_MULTIPLE     ? Threads::kAny
             : provided == MPI_THREAD_SERIALIZED ? Threads::kInTurns
                                                 : Threads::kOne;
  return code;
}

void give_up(void* request, void (*release)(void* memory), void* memory) {
  given_up().push_back({static_cast<Request*>(request), release, memory});
}

// Errors on it come back as codes.
int adopt(MPI_Comm comm, void** made) {
  const int code = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (code != MPI_SUCCESS) return code;
  *made = new (std::nothrow) Comm{comm, true};
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

void release(void* comm) {
  auto* owned = static_cast<Comm*>(comm);
  if (owned->is_owned && given_up().empty() && !is_forsaken && !is_finalized())
    MPI_Comm_free(&owned->comm);
  delete owned;
}

int begin_reduction(MPI_Comm c, const ShimCall& call, MPI_Request* request) {
  Operation operation{};
  const int code = operation_of(call, operation);
  if (code != MPI_SUCCESS) return code;
  const auto [type, op] = operation;
  switch (call.kind) {
    case Collective::kReduce:
      return MPI_Ireduce(call.in, call.out, call.count, type, op, call.root, c, request);
    case Collective::kAllReduce:
      return MPI_Iallreduce(call.in, call.out, call.count, type, op, c, request);
    default:
      return MPI_Ireduce_scatter(call.in, call.out, call.in_counts, type, op, c, request);
  }
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
    default:
      return MPI_Ibarrier(c, request);
  }
}

int begin(void* comm, const ShimCall* call, void** made) {
  auto* owned = new (std::nothrow) Request{MPI_REQUEST_NULL};
  if (owned == nullptr) return MPI_ERR_NO_MEM;
  const MPI_Comm c = static_cast<Comm*>(comm)->comm;
  const bool reduces = call->kind == Collective::kReduce || call->kind == Collective::kAllReduce ||
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

int test(void* request, bool* done) {
  if (!given_up().empty()) settle();
  auto* owned = static_cast<Request*>(request);
  int flag = 0;
  const int code = MPI_Test(&owned->request, &flag, MPI_STATUS_IGNORE);
  *done = flag != 0 || code != MPI_SUCCESS;
  if (*done) delete owned;
  return code;
}

constexpr Shim kShim{.abi = kAbi,
                     .version = &version,
                     .error_text = &error_text,
                     .is_initialized = &is_initialized,
                     .is_finalized = &is_finalized,
                     .start = &start,
                     .give_up = &give_up,
                     .forsake = &forsake,
                     .world = &world,
                     .place = &place,
                     .create = &create,
                     .release = &release,
                     .begin = &begin,
                     .test = &test};

}  // namespace
}  // namespace hocket::engines::mpi

extern "C" __attribute__((visibility("default"))) const hocket::engines::mpi::Shim*
hocket_mpi_shim() {
  return &hocket::engines::mpi::kShim;
}
