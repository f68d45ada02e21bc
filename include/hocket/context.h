// The runtime context for libraries that compute on distributed arrays: the device of this process,
// its communicator, and its engines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hocket/bootstrap.h"
#include "hocket/communicator.h"
#include "hocket/group.h"
#include "hocket/launch.h"

namespace hocket {

struct ContextOptions {
  std::optional<int> device = {};         // number of the GPU in this process; absent: host memory
  std::vector<std::string> engines = {};  // see InitOptions
  std::optional<Duration> timeout = {};   // limit for joining
  std::optional<Duration> deadline = {};  // default limit for calls
  std::vector<std::string> library_folders = {};
};

// A resource: this process's part in a runtime that libraries find with `current`. A process has at
// most one at a time. `initialize` and `finalize` are collective.
class Context {
 public:
  // Makes the context from the environment, or from a process group that the program provides.
  // Collective.
  // @param group The process group; see Bootstrap.
  // @param options See ContextOptions.
  // @throws InvalidArgument if there is a context already. Throws what `init` throws.
  static std::shared_ptr<Context> initialize(Bootstrap& group, const ContextOptions& options = {});
  static std::shared_ptr<Context> initialize(const ContextOptions& options = {});
  // Returns the context that was initialized and not finalized. Null if there is none. Any thread
  // may call it.
  static std::shared_ptr<Context> current();
  // Waits for the other ranks, and closes the context when its last owner releases it. Does nothing
  // if there is no context. A context that still exists when the process exits ends as a World
  // does.
  static void finalize();

  // Use `initialize` instead.
  Context(World world, ContextOptions options);

  Communicator& communicator() noexcept { return world_.communicator(); }
  int rank() const noexcept { return world_.rank(); }
  int size() const noexcept { return world_.size(); }
  const std::optional<int>& device() const noexcept { return options_.device; }
  std::span<const std::string> engines() const noexcept { return world_.engines(); }

 private:
  World world_;
  ContextOptions options_;
};

}  // namespace hocket
