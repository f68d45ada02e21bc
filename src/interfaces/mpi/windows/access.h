// Accesses to memory that this process cannot reach directly: the target is on another host, or the
// system refuses. A thread of the target, its service, carries them out; see service.h.
//
//     origin                                        service of the target
//     sends the request, runs and data  -------->   receives them, uses the target's memory
//     waits                             <--------   sends the answer, then data
//
// The runs are the pieces of the target's memory. All messages are sent on the window's
// communicator `requests`, which has no other messages. All requests have one tag. The other
// messages of a request have tags that follow from its number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "interfaces/mpi/windows/process_memory.h"
#include "interfaces/mpi/windows/window.h"

namespace hocket::mpi {

enum class Access : std::int32_t {
  kRead,           // the answer has the runs' bytes
  kWrite,          // the data go to the runs
  kCombine,        // the data are combined with the runs' bytes; the answer has the old bytes
  kSwap,           // the data are two elements, expected and new; the answer has the old one
  kLock,           // the answer comes once the origin has the lock
  kTryLockShared,  // the answer's `granted` says whether the origin has the lock
  kUnlock,
  kStop,  // a rank sends it to itself, to end its service
};

// A request as it is sent. A value.
struct AccessRequest {
  Access access = Access::kRead;
  std::int32_t number = 0;   // number among the origin's requests
  std::int32_t op = -1;      // an index of kNamedOps
  std::int32_t element = 0;  // the Kind of the elements that are combined
  std::int32_t lock = 0;     // a value of Held
  std::int64_t runs = 0;     // number of them
  std::int64_t data = 0;     // bytes that follow the runs
  std::int64_t wanted = 0;   // bytes that follow the answer
};

// The answer as it is sent. A value.
struct AccessAnswer {
  std::int32_t refused = MPI_SUCCESS;  // an error class; MPI_SUCCESS: not refused
  std::int32_t granted = 0;
  std::array<char, 256> text{};
};

inline constexpr int kRequestTag = 0;
constexpr int tag_to_target(std::int32_t number) { return 2 * number + 1; }
constexpr int tag_to_origin(std::int32_t number) { return 2 * number + 2; }

using Runs = std::vector<RemoteRun>;

// Access a target's memory, and return when the target has carried out the access. Throw the
// target's error if it refuses, and an error if a rank of the window has died. Any thread may call
// them.
void read_remote(Window& window, int target, const Runs& runs, std::span<std::byte> to);
void write_remote(Window& window, int target, const Runs& runs, std::span<const std::byte> from);
// `old` gets the target's old bytes, unless it is empty. `from` is empty for MPI_NO_OP.
void combine_remote(Window& window,
                    int target,
                    const Runs& runs,
                    std::span<const std::byte> from,
                    MPI_Op op,
                    const Datatype& type,
                    std::span<std::byte> old);
// Compares bytes. `expected`, `fresh` and `old` are as long as the runs.
void swap_remote(Window& window,
                 int target,
                 const Runs& runs,
                 std::span<const std::byte> expected,
                 std::span<const std::byte> fresh,
                 std::span<std::byte> old);
void lock_remote(Window& window, int target, Held kind);
bool try_lock_shared_remote(Window& window, int target);
void unlock_remote(Window& window, int target, Held kind);

}  // namespace hocket::mpi
