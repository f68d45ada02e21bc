// The MPI of this process: its library, its world, and the lock around every call of it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engines/algorithm/scratch.h"
#include "engines/mpi/abi.h"
#include "foundation/cuda/context.h"

namespace hocket::engines::mpi {

class MpiLibrary;

inline constexpr std::string_view kName = "mpi";  // of the engine

// The result of a search for MPI, or the reason of its failure.
struct FoundMpi {
  std::shared_ptr<MpiLibrary> library;
  std::string why_not;
};

// A call in progress, with its staging memory. A resource. MPI cannot cancel a call. So an
// abandoned call lives until the other ranks have done their parts, or the process ends.
struct Flight {
  algorithm::Scratch in;
  algorithm::Scratch out;
  std::size_t out_count = 0;  // in elements
  std::vector<std::int32_t> in_counts, in_places, out_counts, out_places;
  ShimCall call;
  void* request = nullptr;  // null: none, or done
  bool failed = false;      // MPI reported an error, but may still write to the staging memory
};

// A communicator of MPI. A resource; freed with its last user.
class Comm {
 public:
  Comm(std::shared_ptr<MpiLibrary> library, void* handle) noexcept
      : library_(std::move(library)), handle_(handle) {}
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  void* handle() const noexcept { return handle_; }
  MpiLibrary& library() const noexcept { return *library_; }

 private:
  std::shared_ptr<MpiLibrary> library_;
  void* handle_;
};

// A resource, at most one in a process, and never unloaded. Any thread may use it; calls of MPI
// take turns. An error of MPI becomes a SystemError with MPI's own text.
class MpiLibrary : public std::enable_shared_from_this<MpiLibrary> {
 public:
  // Finds the MPI that is already loaded, or else that of the launcher of this process (`launcher`
  // as in LaunchInfo). It does not start MPI.
  static FoundMpi find(const std::string& launcher);
  // Loads one of the MPIs, by its name in `built_for`.
  static FoundMpi load(std::string_view title);
  // Returns the MPIs that this build has shims for: "Open MPI", "MPICH", "MPI's standard ABI".
  static std::vector<std::string> built_for();

  // Starts MPI if it has not been started. Throws InvalidArgument if it was started in a mode that
  // hocket cannot use.
  void start();
  const std::string& name() const noexcept { return name_; }

  std::shared_ptr<Comm> world();  // MPI_COMM_WORLD, from which others are made
  void place(const Comm& comm, int& rank, int& size);
  // Makes a communicator of some ranks, in this order. It is collective among these ranks.
  std::shared_ptr<Comm> create(const Comm& parent, std::span<const int> ranks, int tag);

  void begin(const Comm& comm, Flight& flight);
  bool test(Flight& flight);
  // Abandons a call. Its memory belongs to MPI until the call has ended.
  void abandon(std::unique_ptr<Flight> flight) noexcept;
  void release(void* comm) noexcept;

  // Start and test messages between two ranks, as calls are tested: see Shim::post. `probe` returns
  // nothing if no message has arrived.
  void* post(const Comm& comm, const ShimMessage& message);
  bool test(void*& request);
  std::optional<int> probe(const Comm& comm, int tag);
  // Abandons a message. `memory` stays while MPI may access it, and then until `sweep`.
  void abandon(void* request, std::shared_ptr<void> memory) noexcept;
  void withdraw(void* request) noexcept;
  // Keeps memory for the rest of the process, because MPI failed and does not say whether it still
  // accesses it.
  static void keep(std::shared_ptr<void> memory) noexcept;
  // Frees the memory of abandoned messages that have ended. Call it where freeing memory may wait
  // for a GPU.
  static void sweep() noexcept;

  Gpus gpus() const;  // after `start`
  // Lets MPI access this GPU's memory from now on, in any call and thread. MPI then keeps state for
  // this GPU's context. So DeviceError refuses any other GPU from then on.
  void use(std::shared_ptr<const cuda::DeviceContext> device);
  // Finalizes MPI now, if this library started it.
  void end() noexcept;

  // Reports that a rank of MPI's world has died.
  void forsake() noexcept;

 private:
  class Turn;
  // `used` is a UsedDevice.
  using UsedDevice = std::atomic<const cuda::DeviceContext*>;
  static void at_end(void* used, const LastSteps& last);
  static void finish(const LastSteps& last);
  void require(int code, const char* what) const;

  const Shim* shim_ = nullptr;
  std::string name_;
  mutable std::mutex mutex_;  // around every call of MPI
  std::shared_ptr<const cuda::DeviceContext> device_;
  UsedDevice used_{nullptr};  // the same device, for the exit of the process
};

}  // namespace hocket::engines::mpi
