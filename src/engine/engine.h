// The first cut: what carries collectives.
#pragma once

#include <optional>
#include <string_view>

#include "engine/call.h"
#include "engine/task.h"

namespace hocket::engine {

// How well an engine would do a call: the time it expects, in microseconds; the least wins. Ties go
// to the engine that is registered first.
struct Score {
  double microseconds = 0;
};

// A resource, one a rank and group, made by the composition root and destroyed with the group.
// Used by one thread at a time. Engines check no arguments, trace nothing and take no deadline:
// the communicator does. They fail by throwing from the task.
class CollectiveEngine {
 public:
  virtual ~CollectiveEngine() = default;
  virtual std::string_view name() const noexcept = 0;

  // Absent: not supported. Depends on the signature and on facts equal on all ranks, nothing else.
  virtual std::optional<Score> score(const Signature& signature) const noexcept = 0;

  // Starts `call`; calls of a group run one after the other, in one order on all ranks. The task is
  // stepped until done, or destroyed, after which no memory of the call is touched any more.
  virtual Task start(const Call& call) = 0;

  // Tries to do `call` at once, waiting no longer than a cache line needs to come from its peer:
  // for the smallest calls the making of a task is half of their time. True: it is done. False:
  // `start` follows, and finds what has been done so far.
  virtual bool attempt(const Call& call) {
    static_cast<void>(call);
    return false;
  }

  // Whether it compares the calls' fingerprints as their data meet. Where not, the communicator
  // compares what the ranks announced, after each call.
  virtual bool compares() const noexcept { return false; }

  // Whether its calls run functions of the program's own, which may take any time: then the
  // deadline is looked at when a call is done as well.
  virtual bool runs_program() const noexcept { return false; }

  // Call `sequence` was not carried by this engine on this rank: it was refused, or another engine
  // did it.
  virtual void skip(std::uint64_t sequence) { static_cast<void>(sequence); }
};

}  // namespace hocket::engine
