// A call under way that nobody waits for yet: what a Work holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "comm/communicator_impl.h"

namespace hocket::comm {

class DeviceWork;
class StagedCall;

// A resource, shared by its Work and by the communicator's queue. The fields down to `waiting` are
// guarded by the communicator's turn; the rest by their own means.
class Operation {
 public:
  Operation(std::shared_ptr<CommunicatorImpl> owner, base::Deadline deadline, Duration allowed)
      : owner_(std::move(owner)), deadline_(deadline), allowed_(allowed) {}

  CommunicatorImpl& owner() noexcept { return *owner_; }
  base::Deadline deadline() const noexcept { return deadline_; }
  Duration allowed() const noexcept { return allowed_; }

  // A collective: begun when its turn comes.
  Plan plan;
  engine::Signature shown;
  CallStorage storage;
  // A message, or a refusal to be announced (then `task` is empty and `refusal` set).
  MessageCall message;
  observe::Span span;
  std::optional<std::string> refusal;
  std::exception_ptr refused_by;       // of a call that could not be started: what stood in its way
  std::shared_ptr<Received> received;  // of a message that comes: who sent; written before done
  std::shared_ptr<void> keep;          // what the call points to, where that is not `storage`

  // Calls of GPUs: what is copied for it; the mark behind it on its stream.
  std::shared_ptr<StagedCall> staged;
  std::shared_ptr<DeviceWork> device;
  std::atomic<bool> dropped{false};  // by a program that has not been told of its error

  engine::Task task;
  bool begun = false;
  Doubt doubt;

  std::uint64_t& sequence() noexcept { return plan.call.sequence; }  // 0: a message

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  // Ends the operation; runs the callback in this thread.
  void finish(std::exception_ptr error) noexcept;
  std::exception_ptr error() const noexcept { return error_; }
  // Tells the program of the error, if there is one.
  void rethrow();
  bool told() const noexcept { return told_; }
  void on_done(std::function<void()> f);

 private:
  friend class Awaiting;
  std::shared_ptr<CommunicatorImpl> owner_;
  base::Deadline deadline_;
  Duration allowed_;
  std::exception_ptr error_;  // written before done_
  bool told_ = false;         // of it; the program's
  std::atomic<bool> done_{false};
  std::atomic<std::uintptr_t> waiter_{0};  // who waits, by this_thread(); 0: nobody
  std::mutex mutex_;                       // guards callback_
  std::function<void()> callback_;
};

// A value for as long as this thread waits for an operation: whoever ends it wakes this thread.
class Awaiting {
 public:
  explicit Awaiting(Operation& operation) noexcept : operation_(operation) {
    operation_.waiter_.store(this_thread(), std::memory_order_relaxed);
  }
  ~Awaiting() { operation_.waiter_.store(0, std::memory_order_relaxed); }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Operation& operation_;
};

}  // namespace hocket::comm
