// The runtime context of libraries that compute on distributed arrays: which device this process
// has, with whom it works, by which engines.
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
  std::optional<int> device = {};         // a GPU's number; absent: host memory
  std::vector<std::string> engines = {};  // as InitOptions
  std::optional<Duration> timeout = {};   // for joining
  std::optional<Duration> deadline = {};  // of calls
  std::vector<std::string> library_folders = {};
};

// A resource: this process's part in a runtime that libraries find by `current`. At most one a
// process at a time; `initialize` and `finalize` are collective.
class Context {
 public:
  // By a process group of the program's own, or by the environment. Throws InvalidArgument where
  // there is a context already, and what `init` throws.
  static std::shared_ptr<Context> initialize(Bootstrap& group, const ContextOptions& options = {});
  static std::shared_ptr<Context> initialize(const ContextOptions& options = {});
  // The one that has been initialized and not finalized; null where there is none.
  static std::shared_ptr<Context> current();
  // Waits for the others, and takes the context down once nobody refers to it. Without one, or
  // again: nothing. A context that was left standing when the process exits is left like a world.
  static void finalize();

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
