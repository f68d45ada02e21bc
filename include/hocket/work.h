// The handle of a call that was started and may not have ended.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hocket/error.h"
#include "hocket/stream.h"
#include "hocket/types.h"

namespace hocket {

namespace call {
class Operation;
}

// The description of a received message.
struct Received {
  int source = -1;
  int tag = 0;
  std::size_t count = 0;  // elements
  DType dtype = DType::kUInt8;
};

// A resource: owns one started call. It can be moved but not copied. It may be moved to another
// thread and waited for there, by one thread at a time. The call's arrays must stay alive and
// unchanged until `wait` has returned or `test` has returned true. After that no thread of hocket
// touches them, even after an error. Destroying a pending Work cancels the call, which ends the
// communicator on all ranks. A call on a GPU continues instead, and its arrays must stay alive as
// long as the stream needs them.
class [[nodiscard("dropped while pending, it ends the communicator: keep it and wait()")]] Work {
 public:
  Work() noexcept = default;  // no call: it has ended without error
  explicit Work(std::shared_ptr<call::Operation> operation) noexcept;
  // A receive that has ended.
  Work(std::shared_ptr<call::Operation> ended, const Received& received) noexcept;
  Work(Work&&) noexcept = default;
  Work& operator=(Work&& other) noexcept {
    if (this != &other) {
      if (operation_) drop();
      operation_ = std::move(other.operation_);
      received_ = other.received_;
    }
    return *this;
  }
  ~Work() {
    if (operation_) drop();
  }

  // Waits until the call has ended. Throws its error. While it waits, this thread moves the
  // communicator's calls forward. The deadline of the call applies.
  //
  // For a call on arrays in a GPU's memory, `wait` does not block: it only throws the errors so
  // far. Later work of the call's stream runs after the call in any case. To make another stream
  // wait, use wait(stream).
  void wait();
  // Makes later work of `stream` wait for the call. For arrays in host memory it is wait().
  void wait(StreamRef stream);

  // Waits in this thread until the call has ended, also on a GPU, or the time runs out. Throws the
  // call's error.
  // @param timeout The limit of this wait.
  // @return False if the time ran out. The call continues.
  [[nodiscard("false: time ran out, and the call goes on")]] bool wait_for(Duration timeout);
  // Waits until the call has ended, also on a GPU, without a time limit for the wait.
  void synchronize() { static_cast<void>(wait_for(kForever)); }

  // Returns true if the call has ended, with or without error. Never blocks. It moves the call
  // forward if it can.
  bool test();

  // Ends a recv_async of an array in host memory if no message has come for it. If the message
  // comes later, the next matching receive gets it, and the communicator stays usable. It counts as
  // a call of the communicator, and never blocks.
  // @return True if the receive has ended now: `wait` throws nothing, and `received` has nothing.
  //   False if the receive has ended before, or if its message is under way: then it goes on. Calls
  //   other than receives always go on and return false.
  bool withdraw();

  // Returns the error of a call that has ended. Absent while it is pending, or if it succeeded.
  [[nodiscard("it throws nothing")]] std::optional<Status> error() const;

  // Describes the message of a recv_async that has ended, such as its source after kAnySource.
  // Absent while the call is pending, if it failed or was withdrawn, and for all other calls.
  [[nodiscard("it does not wait")]] std::optional<Received> received() const;

  // Calls `f` once when the call ends, or at once if it has ended already. `f` runs in the thread
  // that ended the call, so it must not block or throw: an exception that leaves it ends the
  // process. Several functions run in the order of their registration.
  //
  // `f` must not make calls of the same communicator or wait for them. They are refused, even if
  // the call ended long before. If `f` makes a collective, all ranks see it refused, like any other
  // refused argument. So let `f` notify another thread, or fill a queue that the program empties:
  // see examples/coroutines.cc.
  // @throws InvalidArgument if `f` is empty. The call goes on as if on_done had not been called.
  void on_done(std::function<void()> f);

 private:
  friend std::vector<std::size_t> wait_some_of(std::span<Work* const> works, Duration timeout);
  void drop() noexcept;  // ends a pending call; see the class
  std::shared_ptr<call::Operation> operation_;
  std::optional<Received> received_;  // of a receive that had already ended when it was started
};

// Waits until at least one of the calls, of any communicators, has ended, with or without error.
// `works[i].wait()` throws the error of call i.
// @param works The calls.
// @param timeout The limit of this wait.
// @return The indices of all calls that have ended. Empty if the time ran out; the calls continue.
// @throws InvalidArgument if there are no works.
[[nodiscard("the places of those that have ended")]] std::vector<std::size_t> wait_some(
    std::span<Work> works, Duration timeout = kForever);
// Does the same, and returns the first of these indices.
[[nodiscard("the place of one that has ended")]] std::optional<std::size_t> wait_any(
    std::span<Work> works, Duration timeout = kForever);
// Waits for all calls, in order. Returns false if the time ran out; the calls continue. Throws the
// error of the first call that failed.
[[nodiscard("false: time ran out, and the calls go on")]] bool wait_all(std::span<Work> works,
                                                                        Duration timeout);
inline void wait_all(std::span<Work> works) { static_cast<void>(wait_all(works, kForever)); }

// Do the same for works that do not lie in one array.
[[nodiscard("the places of those that have ended")]] std::vector<std::size_t> wait_some_of(
    std::span<Work* const> works, Duration timeout = kForever);
[[nodiscard("the place of one that has ended")]] std::optional<std::size_t> wait_any_of(
    std::span<Work* const> works, Duration timeout = kForever);
[[nodiscard("false: time ran out, and the calls go on")]] bool wait_all_of(
    std::span<Work* const> works, Duration timeout);

}  // namespace hocket
