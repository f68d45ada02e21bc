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
struct Stepped {
  engine::Task task;
  MessageInFlight* message = nullptr;  // in place of a task
  failure::Awaited awaited;
  Duration allowed{};
  std::optional<base::Deadline> deadline;  // absent: starts at the first look
  // see engine::CollectiveEngine; it then has a deadline from its start on
  bool runs_program = false;
  failure::Doubt doubt;
  engine::Signature shown;  // a collective's, as the others know it

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

// Carries a call on host copies of arrays that the host's engines cannot reach.
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

// The position after a call on its stream, if the stream carries the call.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
  // True if the stream has passed it. Throws DeviceError if a kernel failed.
  virtual bool passed() const = 0;
  // Makes later work of `stream` wait for it.
  virtual void hold(StreamRef stream) const = 0;
};

// The first of several operations that ends rings it. A resource of the thread that waits for them.
class Bell {
 public:
  // Never waits.
  void ring() noexcept;
  // Returns once it has been rung since the last wait, or after `most`.
  void wait(Duration most);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;  // guarded by mutex_
};

// The state of a Work. A resource, shared with the runner's queue. Public members are guarded by
// the communicator's turn; the others are safe by themselves.
class Operation {
 public:
  Operation(std::shared_ptr<Core> owner, base::Deadline deadline, Duration allowed)
      : owner_(std::move(owner)), core_(owner_.get()) {
    call.deadline = deadline;
    call.allowed = allowed;
  }
  // A message that has begun.
  Operation(std::shared_ptr<Core> owner,
            base::Deadline deadline,
            Duration allowed,
            MessageInFlight&& its)
      : begun(true), message(std::move(its)), owner_(std::move(owner)), core_(owner_.get()) {
    call.deadline = deadline;
    call.allowed = allowed;
    call.awaited = {.peer = message.call.envelope.peer, .message = &message.call};
  }

  // A message of `of` that has already ended. The owner stores it.
  explicit Operation(Core& of) noexcept : core_(&of), state_(State::kDone) {}

  Core& owner() noexcept { return *core_; }

  Stepped call;
  bool begun = false;
  // For a collective, which begins when its turn in the queue comes.
  Plan plan;
  CallStorage storage;
  MessageInFlight message;           // where it is one
  std::optional<Received> received;  // for a receive: the sender; written before done
  // For the second part of a call, whose request follows from the result of the first one: plans
  // it, once the first one has ended well.
  std::shared_ptr<Operation> first_part;
  std::function<void(Operation&)> plan_now;
  // The reason why this rank does not begin the call; announced when the call's turn comes.
  std::optional<std::string> refusal;
  std::exception_ptr refused_by;  // the reason why it could not be started
  // For calls of GPUs.
  std::shared_ptr<Carrying> carrying;
  std::shared_ptr<StreamMark> mark;
  std::atomic<bool> dropped{false};  // by a program that has not seen its error
  std::shared_ptr<void> keep;        // owner of data that the call refers to, besides `storage`

  std::uint64_t sequence() const noexcept { return call.sequence(); }
  void set_sequence(std::uint64_t sequence) noexcept {
    call.awaited.sequence = sequence;
    plan.call.sequence = sequence;
  }
  // True if the host carries it for a GPU's call that has returned, so that no caller would get
  // its error.
  bool is_unheard() const noexcept {
    return carrying != nullptr && !carrying->is_awaited() && mark == nullptr;
  }

  bool done() const noexcept { return state_.load(std::memory_order_acquire) == State::kDone; }
  // Ends the operation; runs the callback in this thread.
  void finish(std::exception_ptr error) noexcept;
  std::exception_ptr error() const noexcept { return error_; }
  // Throws the error to the program, if there is one.
  void rethrow();
  bool told() const noexcept { return told_; }
  void on_done(std::function<void()> f);
  // True if a callback or a bell waits for the end.
  bool has_callback() {
    const std::lock_guard lock(mutex_);
    return !callbacks_.empty() || !bells_.empty();
  }

 private:
  friend class Awaiting;
  friend class Listening;
  // An operation is heard if a callback or a bell waits for its end. Nearly all are not, and their
  // end takes no mutex.
  enum class State : std::uint8_t { kPending, kHeard, kDone };
  // Returns false if it has ended. The caller holds the mutex.
  bool make_heard() noexcept;

  std::shared_ptr<Core> owner_;  // null if the owner keeps this
  Core* core_;
  std::exception_ptr error_;  // written before state_ becomes kDone
  bool told_ = false;         // of it; the program's
  std::atomic<State> state_{State::kPending};
  std::atomic<std::uintptr_t> waiter_{0};  // the waiting thread, by this_thread(); 0: none
  std::mutex mutex_;                       // guards the next
  std::vector<std::function<void()>> callbacks_;
  std::vector<Bell*> bells_;
};

// Allocates operations as tasks' frames are: from memory that this thread has freed.
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

template <typename... Arguments>
std::shared_ptr<Operation> make_operation(Arguments&&... arguments) {
  return std::allocate_shared<Operation>(FrameAllocator<Operation>(),
                                         std::forward<Arguments>(arguments)...);
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
