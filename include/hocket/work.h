// The handle of a call that has been started and may not have finished.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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
  // Several functions are called in the order in which they were given.
  void on_done(std::function<void()> f);

 private:
  friend std::vector<std::size_t> wait_some(std::span<Work> works, Duration timeout);
  std::shared_ptr<call::Operation> operation_;
};

// Waits until at least one of the calls, of any communicators, has ended, well or not. Returns the
// places of all that have ended; none when `timeout` ran out, and the calls go on. Each of them
// throws its error in `works[i].wait()`. Throws InvalidArgument when there are no works.
[[nodiscard("the places of those that have ended")]] std::vector<std::size_t> wait_some(
    std::span<Work> works, Duration timeout = kForever);
// The first of these places.
[[nodiscard("the place of one that has ended")]] std::optional<std::size_t> wait_any(
    std::span<Work> works, Duration timeout = kForever);
// Waits for all, in order: false when `timeout` ran out, and the calls go on. Throws the error of
// the first that has failed.
[[nodiscard("false: time ran out, and the calls go on")]] bool wait_all(std::span<Work> works,
                                                                        Duration timeout);
inline void wait_all(std::span<Work> works) { static_cast<void>(wait_all(works, kForever)); }

}  // namespace hocket
