// The handle of a call that has been started and may not have finished.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "hocket/error.h"
#include "hocket/stream.h"
#include "hocket/types.h"

namespace hocket {

namespace call {
class Operation;
}

// Who sent a received message, and how much came.
struct Received {
  int source = -1;
  int tag = 0;
  std::size_t count = 0;  // elements
  DType dtype = DType::kUInt8;
};

// A resource: owns one started call. Movable, not copyable; may be moved to, and waited for in,
// another thread, one at a time. The arrays of the call must stay alive and untouched until `wait`
// has returned or `test` has said true; with an error too, nobody touches them afterwards.
// Destroying a pending Work cancels the call, which fails the communicator on all ranks; a call on
// a GPU just goes on, and its arrays must stay alive as long as the stream needs them.
class [[nodiscard("dropped while pending, it ends the communicator: keep it and wait()")]] Work {
 public:
  Work() noexcept;  // of nothing: done, without error
  explicit Work(std::shared_ptr<call::Operation> operation) noexcept;
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Returns when the call has finished; throws its error. Moves the communicator's calls forward
  // in this thread while it waits. The call's own deadline applies.
  //
  // A call on arrays in a GPU's memory is waited for by streams, not by threads: what follows on
  // its own stream comes after it anyway, so this only throws what has gone wrong so far.
  void wait();
  // Has later work of `stream` wait for the call. For arrays in host memory: as wait().
  void wait(StreamRef stream);

  // Waits in this thread for at most `timeout`: true when the call has finished, on the GPU too;
  // false when time ran out (the call goes on). Throws the call's error.
  [[nodiscard("false: time ran out, and the call goes on")]] bool wait_for(Duration timeout);
  // The same without a limit of its own.
  void synchronize() { static_cast<void>(wait_for(kForever)); }

  // True when finished, with or without error. Never blocks; gives the call a chance to move.
  bool test();

  // The error of a finished call; absent while it is pending or when it succeeded.
  [[nodiscard("it throws nothing")]] std::optional<Status> error() const;

  // Of a finished recv_async: who sent, the answer to kAnySource. Absent while it is pending, when
  // it failed, and of every other call.
  [[nodiscard("it does not wait")]] std::optional<Received> received() const;

  // Calls `f` once when the call finishes, at once if it has: in the thread that finished it, so it
  // must neither block nor throw. Calls of that communicator, and waits for them, are refused.
  void on_done(std::function<void()> f);

 private:
  std::shared_ptr<call::Operation> operation_;
};

}  // namespace hocket
