// A call under way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calls/call/messages.h"
#include "calls/call/planner.h"
#include "calls/call/request.h"
#include "calls/call/tracing.h"
#include "engine/task.h"
#include "foundation/base/deadline.h"
#include "foundation/base/this_thread.h"
#include "hocket/communicator.h"
#include "membership/failure/inquiry.h"

namespace hocket::call {

class Core;

// The state for steps of a call: the task, the awaited ranks, and the deadline. A resource of the
// waiting thread or of the queue; see Runner::step.
struct CallProgress {
  engine::Task task;
  MessageInFlight* message = nullptr;  // set for a plain message, which has no task
  failure::Awaited awaited;
  Duration allowed{};
  std::optional<base::Deadline> deadline;  // absent until the first look sets it
  // True if the call runs a function of the program. Its deadline is set at its start. See
  // engine::CollectiveEngine.
  bool runs_program = false;
  failure::Doubt doubt;
  engine::Signature shown;  // signature of a collective, as the other ranks know it

  std::uint64_t sequence() const noexcept { return awaited.sequence; }  // 0: a message
  engine::Poll step() {
    if (message == nullptr) return task.step();
    return message->owned.done(&message->sender) ? engine::Poll::kDone : engine::Poll::kPending;
  }
  // Cancels the messages that have not ended.
  void reset() noexcept {
    task.reset();
    if (message != nullptr) message->owned.take_back();
  }
};

// Carries a call on GPUs' arrays by a host engine, on copies in host memory.
class Carrying {
 public:
  virtual ~Carrying() = default;
  // Calls `arrived` once the input is in place, before any of it is overwritten.
  virtual engine::Task carry(engine::CollectiveEngine& engine,
                             const engine::Call& call,
                             std::function<void()> arrived) = 0;
  // True if the program's call waits for the end, and so gets errors.
  virtual bool is_awaited() const noexcept = 0;
};

// The position right behind a call on the stream that carries it.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  // True if the stream has passed it. Throws DeviceError if a kernel failed.
  virtual bool passed() const = 0;
  // Makes later work of `stream` wait for it.
  virtual void hold(StreamRef stream) const = 0;
};

// Wakes a thread that waits for the first of several operations to end. A resource of that thread;
// the operations ring it.
class Bell {
 public:
  // Any thread may call it. It never waits.
  void ring() noexcept;
  // Returns once it has been rung since the last wait, or after `most`.
  void wait(Duration most);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;  // guarded by mutex_
};

// The state of a Work. A resource, shared with the runner. The communicator's turn guards the
// public data members; private members synchronize themselves. Programs keep many messages in
// flight, so members that only some operations need are in derived classes.
class Operation {
 public:
  Operation(std::shared_ptr<Core> owner, base::Deadline deadline, Duration allowed)
      : owner_(std::move(owner)), core_(owner_.get()) {
    call.deadline = deadline;
    call.allowed = allowed;
  }
  // Makes an operation of `of` that has already ended. `of` stores it.
  explicit Operation(Core& of) noexcept : core_(&of), state_(State::kDone) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Core& owner() noexcept { return *core_; }

  CallProgress call;
  std::optional<Received> received;  // sender of a receive; written before `done`
  // Set for calls on GPUs.
  std::shared_ptr<Carrying> carrying;
  std::shared_ptr<StreamMark> mark;
  std::atomic<bool> dropped{false};  // the program dropped it without seeing its error
  std::shared_ptr<void> keep;        // owner of data that the call refers to

  std::uint64_t sequence() const noexcept { return call.sequence(); }
  // True if it carries a call on a GPU whose caller has returned, so that no caller gets its error.
  bool is_unheard() const noexcept {
    return carrying != nullptr && !carrying->is_awaited() && mark == nullptr;
  }

  bool done() const noexcept { return state_.load(std::memory_order_acquire) == State::kDone; }
  // Ends the operation and runs the callbacks in this thread.
  void finish(std::exception_ptr error) noexcept;
  std::exception_ptr error() const noexcept { return error_; }
  // Throws the operation's error, if there is one.
  void rethrow();
  bool is_error_seen() const noexcept { return error_seen_; }
  void on_done(std::function<void()> f);
  // True if a callback or a bell waits for the end.
  bool has_callback() {
    const std::lock_guard lock(mutex_);
    return !callbacks_.empty() || !bells_.empty();
  }

 private:
  friend class Awaiting;
  friend class Listening;
  // kHeard: a callback or a bell waits for the end. Most operations have none, and end without
  // locking the mutex.
  enum class State : std::uint8_t { kPending, kHeard, kDone };
  // Sets kHeard. Returns false if the operation has ended. The caller holds the mutex.
  bool make_heard() noexcept;

  std::shared_ptr<Core> owner_;  // null if the owner stores this object
  Core* core_;
  std::exception_ptr error_;  // written before state_ becomes kDone
  bool error_seen_ = false;   // the program has seen error_
  std::atomic<State> state_{State::kPending};
  std::atomic<std::uintptr_t> waiter_{0};  // the waiting thread, by this_thread(); 0: none
  std::mutex mutex_;                       // guards the next two
  std::vector<std::function<void()>> callbacks_;
  std::vector<Bell*> bells_;
};

// A collective, which begins when it reaches the front of the runner's queue.
class QueuedCall : public Operation {
 public:
  using Operation::Operation;

  bool begun = false;
  Plan plan;
  CallStorage storage;
  // Set for the second part of a call in two parts. `plan_now` makes its plan when the first part
  // has succeeded.
  std::shared_ptr<Operation> first_part;
  std::function<void(QueuedCall&)> plan_now;
  // The reason why this rank does not begin the call. It is announced when the call reaches the
  // front of the queue.
  std::optional<std::string> refusal;
  std::exception_ptr refused_by;  // the exception that prevented its start

  void set_sequence(std::uint64_t sequence) noexcept {
    call.awaited.sequence = sequence;
    plan.call.sequence = sequence;
  }
};

// A message that has begun.
class PendingMessage : public Operation {
 public:
  PendingMessage(std::shared_ptr<Core> owner,
                 base::Deadline deadline,
                 Duration allowed,
                 MessageInFlight&& its)
      : Operation(std::move(owner), deadline, allowed), message(std::move(its)) {
    call.awaited = {.peer = message.call.envelope.peer, .message = &message.call};
  }

  MessageInFlight message;
};

// Allocates operations from memory that this thread has freed; frames of tasks come from there,
// too.
template <typename T>
struct FrameAllocator {
  using value_type = T;
  FrameAllocator() noexcept = default;
  template <typename Other>
  FrameAllocator(const FrameAllocator<Other>&) noexcept {}  // NOLINT: converts, as allocators do
  T* allocate(std::size_t count) {
    return static_cast<T*>(engine::allocate_frame(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    engine::free_frame(memory, count * sizeof(T));
  }
  bool operator==(const FrameAllocator&) const noexcept { return true; }
};

template <typename Kind = Operation, typename... Arguments>
std::shared_ptr<Kind> make_operation(Arguments&&... arguments) {
  return std::allocate_shared<Kind>(FrameAllocator<Kind>(), std::forward<Arguments>(arguments)...);
}

// During this value's life, this thread waits for the operation. The thread that ends the operation
// wakes it.
class Awaiting {
 public:
  explicit Awaiting(Operation& operation) noexcept : operation_(operation) {
    operation_.waiter_.store(base::this_thread(), std::memory_order_relaxed);
  }
  ~Awaiting() { operation_.waiter_.store(0, std::memory_order_relaxed); }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Operation& operation_;
};

// During this object's life, the operation's end rings the bell. It rings at once if it has ended.
class Listening {
 public:
  Listening(std::shared_ptr<Operation> operation, Bell& bell);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

 private:
  const std::shared_ptr<Operation> operation_;
  Bell& bell_;
};

}  // namespace hocket::call
