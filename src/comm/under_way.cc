// Calls under way that nobody waits for in place: the queue of collectives, the messages, and
// whoever moves them.
#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator_impl.h"
#include "comm/device_calls.h"
#include "comm/device_staging.h"
#include "comm/failure_texts.h"
#include "comm/messages.h"
#include "comm/operation.h"
#include "comm/refusals.h"
#include "comm/waiter.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::Poll;
using engine::Signature;
using engine::Task;

std::shared_ptr<Operation> CommunicatorImpl::enqueue(const Plan& plan,
                                                     const Signature& shown,
                                                     CallStorage storage,
                                                     std::optional<Duration> deadline,
                                                     const OnStream& on_stream) {
  const Duration allowed = deadline.value_or(deadline_);
  std::shared_ptr<Operation> operation;
  try {
    operation = std::make_shared<Operation>(shared_from_this(), Deadline::in(allowed), allowed);
    queue_.push_back(operation);
  } catch (...) {
    refuse_caught(shown.kind);
  }
  operation->plan = plan;
  operation->plan.call.sequence = ++sequence_;
  operation->shown = shown;
  operation->storage = std::move(storage);
  operation->staged = on_stream.staged;
  operation->device = on_stream.end;
  advance(false);
  if (!operation->done()) world_->watch(shared_from_this());
  return operation;
}

// One step of everything that can move; true when something ended.
bool CommunicatorImpl::advance(bool look) {
  bool moved = false;
  is_stepping_.store(true, std::memory_order_relaxed);
  try {
    while (!queue_.empty() && advance_one(*queue_.front(), look)) {
      const auto done = std::move(queue_.front());
      queue_.pop_front();
      conclude(*done, done->refused_by);
      moved = true;
    }
    if (look) check_deadlines();
    for (std::size_t i = 0; i < messages_.size();) {
      if (!advance_one(*messages_[i], look)) {
        ++i;
        continue;
      }
      const auto done = std::move(messages_[i]);
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
      if (messages_.empty()) hide_messages();
      conclude(*done, nullptr);
      moved = true;
    }
  } catch (...) {
    fail_caught(queue_.empty() ? sequence_ : queue_.front()->sequence());
    fail_all(std::current_exception());
    moved = true;
  }
  is_stepping_.store(false, std::memory_order_relaxed);
  return moved;
}

// False: it cannot be started, and is a refusal from now on.
bool CommunicatorImpl::start(Operation& operation) {
  const Plan& plan = operation.plan;
  try {
    operation.task = operation.staged ? operation.staged->carry(*plan.engine, plan.call)
                                      : plan.engine->start(plan.call);
    return true;
  } catch (...) {
    if (operation.staged) throw;  // its call has returned, and nobody would hear of it
    operation.refusal = reason_of_caught().view();
    operation.refused_by = std::current_exception();
    return false;
  }
}

// What follows the last step. Always true.
bool CommunicatorImpl::settle(Operation& operation) {
  const std::uint64_t sequence = operation.sequence();
  operation.task.reset();
  if (sequence == 0) return true;
  end(sequence);
  if (!operation.plan.engine->compares()) compare_ended(sequence);
  return true;
}

// Calls that wait for their turn have deadlines too.
void CommunicatorImpl::check_deadlines() {
  for (const auto& operation : queue_) {
    if (operation->begun || !operation->deadline().has_passed()) continue;
    control::Failure failure = lateness({.sequence = operation->sequence()}, operation->allowed());
    failure.signature = operation->shown;
    raise(failure);
  }
}

// True when the operation has ended well; throws when it has ended otherwise for good, and with it
// the communicator. A refusal by a peer ends this operation alone.
bool CommunicatorImpl::advance_one(Operation& operation, bool look) {
  const std::uint64_t sequence = operation.sequence();
  if (operation.refusal) {
    if (control_->failed()) raise_failure();
    if (!control_->may_refuse(sequence)) return false;
    publish_refusal(sequence, operation.shown.kind, *operation.refusal);
    return true;
  }
  const MessageCall& message = operation.message;
  const Awaited awaited{.sequence = sequence, .peer = message.envelope.peer, .message = &message};
  try {
    if (!operation.begun) {
      operation.begun = true;
      begin(operation.plan, operation.shown);
      if (!start(operation)) return advance_one(operation, look);
    }
    if (operation.task.step() == Poll::kDone) return settle(operation);
    if (!look) return false;
    std::optional<control::Failure> failure = look_around(awaited, operation.doubt);
    if (!failure && operation.deadline().has_passed()) {
      failure = lateness(awaited, operation.allowed());
    }
    if (!failure) return false;
    if (operation.task.step() != Poll::kDone) raise(*failure);
    return settle(operation);
  } catch (const InvalidArgument& refusal) {
    operation.task.reset();
    // Its call has returned, and nobody would hear of it.
    if (operation.staged && !operation.device) {
      raise(missed_refusal(refusal.status().peer, sequence, operation.shown));
    }
    if (sequence != 0) end(sequence, true);
    const auto held = sequence != 0 ? queue_.front() : nullptr;
    if (held) {
      queue_.pop_front();
      conclude(*held, std::current_exception());
      if (held->dropped.load(std::memory_order_seq_cst)) miss(*held);
      return false;
    }
    throw;
  } catch (const engine::EnvelopeMismatch& found) {
    operation.task.reset();
    raise_envelopes(found, awaited);
  } catch (const DeviceError& found) {
    operation.task.reset();
    raise({.code = ErrorCode::kDevice,
           .reporter = rank(),
           .culprit = rank(),
           .sequence = sequence,
           .signature = operation.shown,
           .text = found.what()});
  }
}

control::Failure CommunicatorImpl::missed_refusal(int peer,
                                                  std::uint64_t sequence,
                                                  const Signature& shown) const {
  return {.code = ErrorCode::kAborted,
          .reporter = rank(),
          .culprit = peer,
          .sequence = sequence,
          .signature = shown,
          .text = std::string(kRefusedOnGpus) + control_->refusal(peer, sequence).value_or("")};
}

void CommunicatorImpl::miss(const Operation& operation) noexcept {
  if (!open_ || forks_.forked()) return;
  try {
    std::rethrow_exception(operation.error());
  } catch (const InvalidArgument& refusal) {
    lost_.store(true, std::memory_order_relaxed);
    control_->fail(
        missed_refusal(refusal.status().peer, operation.plan.call.sequence, operation.shown));
  } catch (...) {  // the communicator has ended by that, and says so
  }
}

void CommunicatorImpl::fail_all(const std::exception_ptr& error) noexcept {
  const auto messages = std::exchange(messages_, {});
  const auto is_of_gpus = [](const auto& operation) {
    return operation->staged || operation->message.envelope.tag == engine::kStagedTag;
  };
  if (std::ranges::any_of(queue_, is_of_gpus) || std::ranges::any_of(messages, is_of_gpus)) {
    lost_.store(true, std::memory_order_relaxed);
  }
  while (!queue_.empty()) {  // an empty one would take memory
    const auto operation = std::move(queue_.front());
    queue_.pop_front();
    give_up(*operation, error);
  }
  for (const auto& operation : messages) give_up(*operation, error);
}

// Nothing where a callback of an earlier one has done so.
void CommunicatorImpl::give_up(Operation& operation, const std::exception_ptr& error) noexcept {
  if (operation.done()) return;
  operation.task.reset();
  if (operation.begun && operation.sequence() != 0) end(operation.sequence(), true);
  conclude(operation, error);
}

void CommunicatorImpl::conclude(Operation& operation, const std::exception_ptr& error) noexcept {
  const std::uintptr_t before = concluding_.exchange(this_thread(), std::memory_order_relaxed);
  operation.finish(error);
  concluding_.store(before, std::memory_order_relaxed);
}

void CommunicatorImpl::show_messages(const MessageCall& awaited) {
  const std::size_t waiting = std::max<std::size_t>(1, messages_.size());
  if (shown_messages_ == waiting) return;
  shown_messages_ = waiting;
  std::string what = describe(messages_.empty() ? awaited : messages_.front()->message);
  if (waiting > 1) what += fmt::format(" and {} more", waiting - 1);
  control_->show_wait(what);
}

void CommunicatorImpl::hide_messages() noexcept {
  if (shown_messages_ == 0) return;
  shown_messages_ = 0;
  control_->show_wait({});
}

void CommunicatorImpl::run_message(Task task,
                                   const MessageCall& call,
                                   std::optional<Duration> deadline) {
  if (busy()) {
    finish_queued(*start_message(std::move(task), call, deadline));
    return;
  }
  drive(task, {.peer = call.envelope.peer, .message = &call}, deadline.value_or(deadline_));
}

std::shared_ptr<Operation> CommunicatorImpl::start_message(Task task,
                                                           const MessageCall& call,
                                                           std::optional<Duration> deadline,
                                                           observe::Span span) {
  const Duration allowed = deadline.value_or(deadline_);
  auto operation = std::make_shared<Operation>(shared_from_this(), Deadline::in(allowed), allowed);
  operation->task = std::move(task);
  operation->begun = true;
  operation->message = call;
  operation->span = std::move(span);
  messages_.push_back(operation);
  advance(false);
  if (!operation->done()) world_->watch(shared_from_this());
  return operation;
}

bool CommunicatorImpl::wait(Operation& operation, Deadline until) {
  Waiter waiter(world_->host());
  waiter.wake_by(std::min(until, operation.deadline()));
  const Awaiting awaiting(operation);
  while (!operation.done()) {
    if (forks_.forked()) raise_unusable();
    const bool look = waiter.pause();
    if (turnstile_.try_enter(Turnstile::Who::kWaiter)) {
      const bool moved = advance(look);
      try {
        if (look && world_->interrupted()) raise(interruption());
      } catch (...) {
        fail_all(std::current_exception());
      }
      turnstile_.leave();
      if (moved) waiter.moved();
    }
    if (look && !operation.done() && until.has_passed()) return false;
  }
  return true;
}

void CommunicatorImpl::poke() {
  if (forks_.forked()) raise_unusable();
  if (!turnstile_.try_enter(Turnstile::Who::kWaiter)) return;
  advance(true);
  turnstile_.leave();
}

CommunicatorImpl::Turn CommunicatorImpl::progress() noexcept {
  if (!turnstile_.try_enter(Turnstile::Who::kProgress)) return Turn::kIdle;
  const bool moved = open_ && advance(true);
  const bool left = busy();
  const bool awaits_gpu = left && devices_ && devices_->awaits_gpu();
  turnstile_.leave();
  // Who waits may have found this thread at it, and gone to sleep.
  if (moved) world_->host().ring(world_->host().self());
  if (!left) return Turn::kNothingLeft;
  if (moved) return Turn::kMoved;
  return awaits_gpu ? Turn::kAwaitsGpu : Turn::kIdle;
}

void CommunicatorImpl::abandon(Operation& operation) noexcept {
  if (world_->forked()) return;
  control_->fail(
      {.code = ErrorCode::kAborted,
       .reporter = rank(),
       .culprit = rank(),
       .sequence = operation.sequence(),
       .signature = operation.shown,
       .text = failure_text("gave up a call that was under way (its Work was destroyed)")});
  // In a callback nobody can take a step before this has returned; here nothing is at one.
  if (concluding_.load(std::memory_order_relaxed) == this_thread()) {
    try {
      raise_failure();
    } catch (...) {
      fail_all(std::current_exception());
      give_up(operation, std::current_exception());  // one of those that are being given up
    }
    return;
  }
  while (!operation.done()) {
    poke();
    base::relax();
  }
}

}  // namespace hocket::comm
