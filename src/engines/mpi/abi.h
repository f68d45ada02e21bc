// The interface between the library and its MPI shims. Types differ between MPIs. So each MPI has
// its own shim: a small shared library that is compiled with that MPI's mpi.h and loaded at run
// time. This header is all that both sides share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket::engines::mpi {

inline constexpr std::uint32_t kAbi = 8;

enum class Collective : std::int32_t {
  kBarrier,
  kBroadcast,
  kReduce,
  kAllReduce,
  kScan,
  kExscan,
  kReduceScatter,  // parts of `counts` elements
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kAllGatherV,
  kGatherV,
  kScatterV,
  kAllToAllV,
};

// One call on staged memory. Counts and places are in elements. A value.
struct ShimCall {
  Collective kind = Collective::kBarrier;
  std::int32_t dtype = 0;  // hocket::DType
  std::int32_t op = 0;     // hocket::ReduceOp, never kAvg
  std::int32_t root = 0;
  const void* in = nullptr;
  void* out = nullptr;
  // Elements of the array, or of a rank's share. For v-forms, of this rank's own part.
  std::int32_t count = 0;
  const std::int32_t* in_counts = nullptr;
  const std::int32_t* in_places = nullptr;
  const std::int32_t* out_counts = nullptr;
  const std::int32_t* out_places = nullptr;
};

// Computes inout = in op inout, for operations that MPI lacks.
using Fold =
    void (*)(std::int32_t dtype, std::int32_t op, void* inout, const void* in, std::size_t count);

// The steps that remain when the process exits, if `start` has initialized MPI.
struct LastSteps {
  bool (*has_left)();             // whether abandoned requests have not ended yet
  bool (*settle)(bool withdraw);  // tests them; true: all have ended; `withdraw`: cancel the
                                  // receives
  void (*finalize)();
};

// The function that is called at exit. Abandoned requests may use GPUs' memory whose driver has
// gone.
struct AtEnd {
  void (*run)(void* self, const LastSteps& last) = nullptr;
  void* self = nullptr;
};

// A message between two ranks. A value.
struct ShimMessage {
  enum class Way : std::int32_t {
    kReceive,
    kSend,
    kSendFully,  // done only when its receive has begun, so that no more calls of MPI are needed
  };
  Way way = Way::kReceive;
  void* bytes = nullptr;  // only read, for a send
  std::int32_t count = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;  // at most 32767
};

// The answer of MPI to the question whether it supports CUDA memory of GPUs.
enum class Gpus : std::int32_t { kSaysNothing, kSaysNo, kSaysYes };

// The threads that may call MPI.
enum class Threads : std::int32_t { kOne, kInTurns, kAny };

// The functions of a shim. They return 0 or MPI's error code. Only one thread calls them at a time.
struct Shim {
  std::uint32_t abi;
  void (*version)(char* text, std::size_t size);
  void (*error_text)(int code, char* text, std::size_t size);
  bool (*is_finalized)();
  // Initializes MPI if it is not initialized. Then it also finalizes MPI when the process exits.
  int (*start)(Fold fold, AtEnd at_end, Threads* threads);
  // Abandons a request. When it has ended, `release` gets `memory`. Tests of other requests and the
  // exit of the process check for that. If it has not ended some seconds after the exit began, the
  // process ends without MPI_Finalize.
  void (*give_up)(void* request, void (*release)(void* memory), void* memory);
  // Cancels a receive, abandoned or about to be, whose message will never be sent.
  void (*withdraw)(void* request);
  // Reports that a rank of MPI has died. The process then ends without MPI_Finalize, which would
  // wait for that rank.
  void (*forsake)();
  // Returns MPI_COMM_WORLD.
  int (*world)(void** comm);
  int (*place)(void* comm, std::int32_t* rank, std::int32_t* size);
  // Makes a communicator of some ranks of `parent`, in order. It is collective among these ranks.
  int (*create)(
      void* parent, std::int32_t count, const std::int32_t* ranks, std::int32_t tag, void** comm);
  void (*release)(void* comm);
  // Starts a call. Its memory must stay until `test` has reported it done.
  int (*begin)(void* comm, const ShimCall* call, void** request);
  // Tests a request. A request that is done no longer exists.
  int (*test)(void* request, bool* done);
  // Starts a message, which is tested like a call.
  int (*post)(void* comm, const ShimMessage* message, void** request);
  // Returns the sender of an unreceived message with this tag. -1: there is none.
  int (*probe)(void* comm, std::int32_t tag, std::int32_t* source);
  // Called after MPI was initialized.
  Gpus (*gpus)();
  // Does now what the exit of the process would do: finalizes MPI if `start` initialized it.
  void (*end)();
};

// The only symbol that a shim exports.
inline constexpr const char* kShimSymbol = "hocket_mpi_shim";

}  // namespace hocket::engines::mpi
