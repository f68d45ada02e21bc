// MPI in this process: which one, its world, and the lock under which it is called.
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

// What was looked for, and why it was not found.
struct FoundMpi {
  std::shared_ptr<MpiLibrary> library;
  std::string why_not;
};

// A call under way, with its staging. A resource; MPI cannot take a call back, so that one that is
// given up lives on until the others have done their parts, or the process ends.
struct Flight {
  algorithm::Scratch in;
  algorithm::Scratch out;
  std::size_t out_count = 0;  // elements
  std::vector<std::int32_t> in_counts, in_places, out_counts, out_places;
  ShimCall call;
  void* request = nullptr;  // null: none, or done
  bool failed = false;      // MPI says so, which may write to the staging all the same
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

// A resource, one a process at most; never unloaded. Any thread: calls of MPI take turns. What MPI
// refuses is thrown as SystemError with its own words.
class MpiLibrary : public std::enable_shared_from_this<MpiLibrary> {
 public:
  // The MPI that is loaded already, or else the one of the launcher that started this process
  // (`launcher`: as LaunchInfo has it). MPI is not started.
  static FoundMpi find(const std::string& launcher);
  // That of one of them, by the name that `built_for` has.
  static FoundMpi load(std::string_view title);
  // The MPIs that this build has shims for: "Open MPI", "MPICH", "MPI's standard ABI".
  static std::vector<std::string> built_for();

  // Starts MPI unless that was done. Throws InvalidArgument where it was started in a way in which
  // hocket cannot use it.
  void start();
  const std::string& name() const noexcept { return name_; }

  std::shared_ptr<Comm> world();  // MPI_COMM_WORLD itself: to make others of
  void place(const Comm& comm, int& rank, int& size);
  // Of some of its ranks, in this order; collective among these.
  std::shared_ptr<Comm> create(const Comm& parent, std::span<const int> ranks, int tag);

  void begin(const Comm& comm, Flight& flight);
  bool test(Flight& flight);
  // The call is given up; its memory stays MPI's until it is done.
  void abandon(std::unique_ptr<Flight> flight) noexcept;
  void release(void* comm) noexcept;

  // Messages between two ranks, tested like calls: see Shim::post. `probe`: absent where none has
  // come.
  void* post(const Comm& comm, const ShimMessage& message);
  bool test(void*& request);
  std::optional<int> probe(const Comm& comm, int tag);
  // A message is given up: `memory` stays while MPI may touch it, and then until `sweep`.
  void abandon(void* request, std::shared_ptr<void> memory) noexcept;
  void withdraw(void* request) noexcept;
  // MPI has failed, and does not say whether it may still touch this: it stays.
  static void keep(std::shared_ptr<void> memory) noexcept;
  // Frees what has ended of that. Where freeing memory may wait for a GPU.
  static void sweep() noexcept;

  Gpus gpus() const;  // once started
  // From now on MPI moves this GPU's memory, too, in whichever call and thread that may be; what it
  // keeps for that is of one GPU's context, so that DeviceError refuses any other for good.
  void use(std::shared_ptr<const cuda::DeviceContext> device);
  // Ends MPI at once, if this library started it.
  void end() noexcept;

  // A rank of MPI's world has died.
  void forsake() noexcept;

 private:
  class Turn;
  // `used`: a UsedDevice.
  using UsedDevice = std::atomic<const cuda::DeviceContext*>;
  static void at_end(void* used, const LastSteps& last);
  static void finish(const LastSteps& last);
  void require(int code, const char* what) const;

  const Shim* shim_ = nullptr;
  std::string name_;
  mutable std::mutex mutex_;  // around every call of MPI
  std::shared_ptr<const cuda::DeviceContext> device_;
  UsedDevice used_{nullptr};  // the same, for the process's end
};

}  // namespace hocket::engines::mpi
