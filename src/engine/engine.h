// The interface of an engine that carries collectives.
#pragma once

#include <optional>
#include <string_view>

#include "engine/call.h"
#include "engine/task.h"

namespace hocket::engine {

// The expected time of a call, in microseconds. The engine with the lowest score carries the call.
// Among equal scores, the engine that is listed first wins.
struct Score {
  double microseconds = 0;
};

// Carries the collectives of a group. A resource: each rank has one for each group. The composition
// root makes it, and it is destroyed with the group. One thread at a time uses it. An engine checks
// no arguments, traces nothing and has no deadlines, because the communicator does all this. It
// fails by throwing from the task.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // Returns the expected time, or nothing if the call is not supported. It depends only on the
  // signature and on facts that are equal on all ranks.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Starts `call`. Calls of a group run one after the other, in one order on all ranks. The task is
  // stepped until it is done, or destroyed. After that it accesses no memory of the call.
  virtual Task start(const Call& call) = 0;

  // Tries to complete `call` at once, without a task. It waits no longer than the transfer of a
  // cache line takes. For the smallest calls, making a task takes half of the time. Returns true if
  // the call is complete. Otherwise `start` follows, and continues from the present state.
  virtual bool attempt(const Call& call) {
    static_cast<void>(call);
    return false;
  }

  // Returns whether the engine compares the ranks' fingerprints, which it sends with the data. If
  // not, the communicator compares the ranks' records after each call.
  virtual bool compares() const noexcept { return false; }

  // Returns whether the engine's calls run functions of the program, which may take any time. The
  // deadline is then also checked when a call is complete.
  virtual bool runs_program() const noexcept { return false; }

  // Tells the engine that it did not carry call `sequence` on this rank: the call was refused, or
  // another engine carried it.
  virtual void skip(std::uint64_t sequence) { static_cast<void>(sequence); }
};

}  // namespace hocket::engine
