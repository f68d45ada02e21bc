// The interface between libhocket and its MPI shims. MPI's types differ between MPIs. So each MPI
// has a separate shim: a small shared library that is compiled with that MPI's mpi.h and loaded at
// run time. Only this header is shared by both sides.
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
  kReduceScatter,  // with parts of in_counts elements
  kAllGather,
  kGather,
  kScatter,
  kAllToAll,
  kAllGatherV,
  kGatherV,
  kScatterV,
  kAllToAllV,
};

// One collective call on staged memory. Counts and places are in elements. A value.
struct ShimCall {
  Collective kind = Collective::kBarrier;
  std::int32_t dtype = 0;  // hocket::DType
  std::int32_t op = 0;     // hocket::ReduceOp, never kAvg
  std::int32_t root = 0;
  const void* in = nullptr;
  void* out = nullptr;
  // Elements of the array or of a rank's share. In v-forms, elements of this rank's own part.
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
  bool (*has_left)();  // returns whether some abandoned requests have not ended
  // Tests the abandoned requests. Returns whether all have ended. With `withdraw`, it first cancels
  // the receives among them.
  bool (*test)(bool withdraw);
  void (*finalize)();
};

// A function that the shim calls at the exit of the process, to carry out the last steps. libhocket
// provides it instead of the shim, because abandoned requests may use GPUs' memory. Only libhocket
// knows whether the GPU's driver has already ended, and then this memory must not be used.
struct AtEnd {
  void (*run)(void* self, const LastSteps& last) = nullptr;
  void* self = nullptr;
};

// A message between two ranks. A value.
struct ShimMessage {
  enum class Way : std::int32_t {
    kReceive,
    kSend,
    // A send that ends only when its receive has begun. Afterwards MPI need not be called again to
    // deliver it.
    kSendFully,
  };
  Way way = Way::kReceive;
  void* bytes = nullptr;  // a send only reads them
  std::int32_t count = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;  // at most 32767
};

// MPI's answer to the question whether it supports CUDA memory.
enum class Gpus : std::int32_t { kSaysNothing, kSaysNo, kSaysYes };

// The threads that may call MPI: only one, any thread but one at a time, or any thread.
enum class Threads : std::int32_t { kOne, kInTurns, kAny };

// The functions of a shim. Functions that return `int` return 0 or MPI's error code. Only one
// thread may call them at a time.
struct Shim {
  std::uint32_t abi;
  void (*version)(char* text, std::size_t size);
  void (*error_text)(int code, char* text, std::size_t size);
  bool (*is_finalized)();
  // Initializes MPI if it is not initialized. In this case the shim also finalizes MPI when the
  // process exits.
  int (*start)(Fold fold, AtEnd at_end, Threads* threads);
  // Abandons a request. When the request has ended, the shim calls `release(memory)`. It checks for
  // the end in tests of other requests and at the exit of the process. If the request has not ended
  // some seconds after the exit began, the process ends without MPI_Finalize.
  void (*give_up)(void* request, void (*release)(void* memory), void* memory);
  // Cancels a receive whose message will never be sent. The caller must pass the request to
  // `give_up` before or afterwards.
  void (*withdraw)(void* request);
  // Records that a rank of MPI's world has died. The process then ends without MPI_Finalize, which
  // would wait for this rank.
  void (*forsake)();
  // Returns MPI_COMM_WORLD.
  int (*world)(void** comm);
  int (*place)(void* comm, std::int32_t* rank, std::int32_t* size);
  // Makes a communicator of `count` ranks of `parent`, in this order. Collective among these ranks.
  int (*create)(
      void* parent, std::int32_t count, const std::int32_t* ranks, std::int32_t tag, void** comm);
  void (*release)(void* comm);
  // Starts a collective call. Its memory must stay allocated until `test` has reported its end.
  int (*begin)(void* comm, const ShimCall* call, void** request);
  // Tests a request. Sets `done` if it has ended; the request then no longer exists.
  int (*test)(void* request, bool* done);
  // Starts a message. Test its request like the request of a call.
  int (*post)(void* comm, const ShimMessage* message, void** request);
  // Sets `source` to the sender of an arrived message with this tag, or to -1 if there is none. The
  // message is not received.
  int (*probe)(void* comm, std::int32_t tag, std::int32_t* source);
  // Asks MPI whether it supports CUDA memory. MPI must be initialized.
  Gpus (*gpus)();
  // If `start` initialized MPI, finalizes it now instead of at the exit of the process.
  void (*end)();
};

// The only symbol that a shim exports.
inline constexpr const char* kShimSymbol = "hocket_mpi_shim";

}  // namespace hocket::engines::mpi
