// What the library and its shims for MPI say to each other. MPI's types differ from one MPI to the
// next, so each has a shim of its own, a small shared library compiled with that MPI's mpi.h, which
// is loaded at run time. This header is all that both know.
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

// One call on staged memory; counts and places are elements. A value.
struct ShimCall {
  Collective kind = Collective::kBarrier;
  std::int32_t dtype = 0;  // hocket::DType
  std::int32_t op = 0;     // hocket::ReduceOp, never kAvg
  std::int32_t root = 0;
  const void* in = nullptr;
  void* out = nullptr;
  // The array, or a rank's share; of v-forms this rank's own single part.
  std::int32_t count = 0;
  const std::int32_t* in_counts = nullptr;
  const std::int32_t* in_places = nullptr;
  const std::int32_t* out_counts = nullptr;
  const std::int32_t* out_places = nullptr;
};

// inout = in op inout, for what MPI has no operation.
using Fold =
    void (*)(std::int32_t dtype, std::int32_t op, void* inout, const void* in, std::size_t count);

// What there is to do at the process's end, where `start` has initialised MPI.
struct LastSteps {
  bool (*has_left)();             // whether requests were given up that have not ended so far
  bool (*settle)(bool withdraw);  // looks at them: true where all have; `withdraw`: what receives
  void (*finalize)();
};

// Called then. What was given up may be of GPUs' memory, whose driver may have gone.
struct AtEnd {
  void (*run)(void* self, const LastSteps& last) = nullptr;
  void* self = nullptr;
};

// A message between two ranks. A value.
struct ShimMessage {
  enum class Way : std::int32_t {
    kReceive,
    kSend,
    kSendFully,  // done only once its receive has begun: nobody need call MPI for it afterwards
  };
  Way way = Way::kReceive;
  void* bytes = nullptr;  // a send's are only read
  std::int32_t count = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;  // up to 32767
};

// Whether MPI says that it takes GPUs' memory, CUDA's.
enum class Gpus : std::int32_t { kSaysNothing, kSaysNo, kSaysYes };

// How MPI may be called.
enum class Threads : std::int32_t { kOne, kInTurns, kAny };

// Functions return 0, or MPI's error code. Calls are not made at once from several threads.
struct Shim {
  std::uint32_t abi;
  void (*version)(char* text, std::size_t size);
  void (*error_text)(int code, char* text, std::size_t size);
  bool (*is_finalized)();
  // Initialises MPI unless somebody has; whoever initialises it ends it, when the process exits.
  int (*start)(Fold fold, AtEnd at_end, Threads* threads);
  // Nobody waits for this request any more; `release` gets `memory` once it is done, which `test`
  // of others and the process's end look at. Where it is not done some seconds after that end has
  // begun, the process ends without MPI's end.
  void (*give_up)(void* request, void (*release)(void* memory), void* memory);
  // Nobody will ever send what this message, given up or about to be, receives: it may end.
  void (*withdraw)(void* request);
  // A rank of MPI's has died: the process ends without MPI's end, which would wait for it.
  void (*forsake)();
  // MPI_COMM_WORLD itself.
  int (*world)(void** comm);
  int (*place)(void* comm, std::int32_t* rank, std::int32_t* size);
  // A communicator of some of its ranks, in order; collective among these.
  int (*create)(
      void* parent, std::int32_t count, const std::int32_t* ranks, std::int32_t tag, void** comm);
  void (*release)(void* comm);
  // Starts a call, whose memory must stay until `test` has said done.
  int (*begin)(void* comm, const ShimCall* call, void** request);
  // Done: the request is gone.
  int (*test)(void* request, bool* done);
  // Starts a message, which is tested like a call.
  int (*post)(void* comm, const ShimMessage* message, void** request);
  // Who has sent a message with this tag that nobody has received so far; -1: nobody.
  int (*probe)(void* comm, std::int32_t tag, std::int32_t* source);
  // Asked when MPI has been initialised.
  Gpus (*gpus)();
  // What the process's end does, now: ends MPI, if `start` has initialised it.
  void (*end)();
};

// The only symbol of a shim.
inline constexpr const char* kShimSymbol = "hocket_mpi_shim";

}  // namespace hocket::engines::mpi
