// The MPI of this process: its library, its world communicator, and the lock around every MPI call.
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

inline constexpr std::string_view kName = "mpi";  // name of the engine

// The result of a search for MPI, or the reason of its failure.
struct FoundMpi {
  std::shared_ptr<MpiLibrary> library;
  std::string why_not;
};

// A call in progress, with its staging memory. MPI cannot cancel a call. So an abandoned Flight
// lives until the other ranks have done their parts of the call, or until the process ends. A
// resource.
struct Flight {
  algorithm::Scratch in;
  algorithm::Scratch out;
  std::size_t out_count = 0;  // elements in `out`
  std::vector<std::int32_t> in_counts, in_places, out_counts, out_places;
  ShimCall call;
  void* request = nullptr;  // null: not begun, or complete
  bool failed = false;      // MPI reported an error, but may still write to the staging memory
};

// An MPI communicator. The last owner frees it. A resource.
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

// The loaded MPI. A process has at most one, which is never unloaded. Any thread may use it; a lock
// lets only one thread call MPI at a time. An error of MPI becomes a SystemError with MPI's text. A
// resource.
class MpiLibrary : public std::enable_shared_from_this<MpiLibrary> {
 public:
  // Finds the MPI that is already loaded in this process. If there is none, finds the MPI of the
  // launcher that started this process (`launcher` as in LaunchInfo). Does not start MPI.
  static FoundMpi find(const std::string& launcher);
  // Loads an MPI by its name, as listed by `built_for`.
  static FoundMpi load(std::string_view title);
  // Returns the MPIs that this build has shims for: "Open MPI", "MPICH", "MPI's standard ABI".
  static std::vector<std::string> built_for();

  // Starts MPI if it has not been started. Throws InvalidArgument if MPI was started for a single
  // thread, or has been finalized.
  void start();
  const std::string& name() const noexcept { return name_; }

  std::shared_ptr<Comm> world();  // MPI_COMM_WORLD
  void place(const Comm& comm, int& rank, int& size);
  // Makes a communicator of some ranks of `parent`, in this order. Collective among these ranks.
  std::shared_ptr<Comm> create(const Comm& parent, std::span<const int> ranks, int tag);

  void begin(const Comm& comm, Flight& flight);
  bool test(Flight& flight);
  // Abandons a call. The Flight belongs to MPI until the call has ended.
  void abandon(std::unique_ptr<Flight> flight) noexcept;
  void release(void* comm) noexcept;

  // Start and test a message between two ranks; see Shim::post. `probe` returns the sender of an
  // arrived message with this tag, or nothing.
  void* post(const Comm& comm, const ShimMessage& message);
  bool test(void*& request);
  std::optional<int> probe(const Comm& comm, int tag);
  // Abandons a message. `memory` stays allocated while MPI may access it, and then until `sweep`.
  void abandon(void* request, std::shared_ptr<void> memory) noexcept;
  void withdraw(void* request) noexcept;
  // Keeps memory for the rest of the process. Use it after MPI has failed and does not say whether
  // it still accesses the memory.
  static void keep(std::shared_ptr<void> memory) noexcept;
  // Frees the memory of abandoned messages that have ended. Call it only where a wait for a GPU is
  // allowed, because freeing the memory may wait.
  static void sweep() noexcept;

  Gpus gpus() const;  // call it after `start`
  // Lets MPI access the memory of this GPU from now on, in any call and thread. MPI then keeps
  // state for the context of this GPU. So later calls for a different GPU throw DeviceError.
  void use(std::shared_ptr<const cuda::DeviceContext> device);
  // Finalizes MPI now, if this library started it.
  void end() noexcept;

  // Records that a rank of MPI's world has died, so that MPI is not finalized.
  void forsake() noexcept;

 private:
  class Turn;
  // Called at the exit of the process. `used` points to a UsedDevice.
  using UsedDevice = std::atomic<const cuda::DeviceContext*>;
  static void at_end(void* used, const LastSteps& last);
  static void finish(const LastSteps& last);
  void require(int code, const char* what) const;

  const Shim* shim_ = nullptr;
  std::string name_;
  mutable std::mutex mutex_;  // around every call of MPI
  std::shared_ptr<const cuda::DeviceContext> device_;
  UsedDevice used_{nullptr};  // device_, for the exit of the process, which takes no lock
};

}  // namespace hocket::engines::mpi
