#include "calls/call/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "membership/failure/caught_reason.h"

namespace hocket::call {

using control::Cause;
using control::Failure;
using engine::Kind;
using engine::Poll;
using engine::Signature;
using failure::Refusal;

namespace {

// Number of further steps for messages before a call is reported as failed. It is limited, so that
// new messages from other ranks cannot delay the report forever.
constexpr int kLastLooks = 16;

bool is_of_gpus(const std::shared_ptr<Operation>& operation) {
  const failure::MessageCall* const message = operation->call.awaited.message;
  return operation->carrying || (message != nullptr && message->envelope.tag == engine::kStagedTag);
}

}  // namespace

// --- One call -----------------------------------------------------------------------------------

void Runner::skip_others(const Plan& plan) {
  for (const auto& other : engines_.collectives) {
    if (other.get() != plan.engine) other->skip(plan.call.sequence);
  }
}

void Runner::publish_refusal(std::uint64_t sequence, Kind kind, std::string_view reason) {
  ledger_.refuse(sequence, kind, reason);
  for (const auto& engine : engines_.collectives) engine->skip(sequence);
}

bool Runner::step(CallProgress& call, bool look) {
  try {
    if (call.step() == Poll::kDone) return end_in_time(call);
    if (!look) return false;
    if (call.sequence() == 0) show_messages(*call.awaited.message);
    if (!call.deadline) call.deadline = base::Deadline::in(call.allowed);
    auto verdict = inquiry_.look(call.awaited, call.doubt);
    if (const auto* refusal = std::get_if<Refusal>(&verdict)) {
      ledger_.begin_anew_after(refusal->sequence);
      owner_.raise(*refusal);
    }
    if (std::holds_alternative<std::monostate>(verdict)) {
      if (!call.deadline->has_passed()) return false;
      verdict = inquiry_.lateness(call.awaited, call.allowed);
    }
    // The call may have succeeded meanwhile, by data that the failed rank had sent before.
    for (int looks = 0; looks < kLastLooks; ++looks) {
      const bool moved = call.sequence() == 0 && engines_.messages->progress();
      if (call.step() == Poll::kDone) return end_in_time(call);
      if (!moved) break;
    }
    owner_.raise(std::get<Failure>(verdict));
  } catch (const engine::EnvelopeMismatch& found) {
    call.reset();
    raise_envelopes(found, call);
  } catch (const DeviceError& found) {
    call.reset();
    if (group_.failed()) throw;
    owner_.raise({.cause = Cause::kDevice,
                  .reporter = group_.rank(),
                  .culprit = group_.rank(),
                  .sequence = call.sequence(),
                  .signature = call.shown,
                  .text = found.what()});
  } catch (...) {
    call.reset();
    throw;
  }
}

// Throws if the call's deadline has passed. The other ranks stop waiting at the deadline even while
// this rank runs a user's function. So this rank must not return a result of a call that has failed
// for them.
void Runner::require_in_time(const CallProgress& call) {
  if (call.deadline->has_passed()) {
    owner_.raise(inquiry_.lateness(call.awaited, call.allowed));
  }
}

void Runner::drive(std::span<CallProgress> calls) {
  live::LongWait wait(long_waits_);
  failure::DeadlockSearch deadlock(group_, *engines_.messages, long_waits_.deadlock_after);
  const std::uint64_t sequence = calls.front().sequence();
  const bool are_messages = sequence == 0;
  try {
    Waiter waiter(host_);
    std::uint32_t resumed = 0;
    const auto is_over = [&](bool look) {
      if (are_messages && engines_.messages->progress_wanted()) waiter.moved();
      calls = calls.first(step_all(calls, look));
      if (calls.empty()) return true;
      if (std::exchange(resumed, calls.front().task.resumed()) != resumed) waiter.moved();
      if (!look) return false;
      if (deadlock.is_due()) look_for_deadlock(deadlock, calls);
      waiter.wake_by(std::min({*calls.front().deadline, next_look(), deadlock.next()}));
      wait.look(calls.front().awaited, calls.front().shown);
      return look_for_returned(calls);
    };
    base::wait_until(is_over, waiter);
    wait.over(live::LongWait::End::kWell);
    hide_messages();
  } catch (...) {
    wait.over(live::LongWait::End::kFailed);
    if (!are_messages) {
      end(sequence, true);
      owner_.fail_caught(sequence);
    }
    throw;
  }
}

// Makes one step of each call. Moves the calls that have not ended to the front, and returns their
// number.
std::size_t Runner::step_all(std::span<CallProgress> calls, bool look) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (step(calls[i], look)) continue;
    if (left != i) std::swap(calls[left], calls[i]);
    ++left;
  }
  return left;
}

// Checks whether a call waits for a rank that has returned from its task, and throws if so. Returns
// true if all calls have ended.
bool Runner::look_for_returned(std::span<CallProgress> calls) {
  std::optional<Failure> returned;
  for (const CallProgress& call : calls) {
    if (!returned) returned = inquiry_.find_returned(call.awaited);
  }
  if (!returned) return false;
  if (calls.front().sequence() == 0) engines_.messages->progress();
  if (step_all(calls, false) == 0) return true;  // data that the rank had sent before had arrived
  for (CallProgress& call : calls) call.reset();
  owner_.raise(*returned);
}

// Searches only if no other call is pending. The callback of a pending call might send a message
// that another rank waits for.
void Runner::look_for_deadlock(failure::DeadlockSearch& search, std::span<CallProgress> calls) {
  if (busy()) return search.hide();
  std::array<failure::Awaited, control::BlockingCall::kPeers> awaited;
  const std::size_t count = std::min(calls.size(), awaited.size());
  std::transform(calls.begin(),
                 calls.begin() + static_cast<std::ptrdiff_t>(count),
                 awaited.begin(),
                 [](const CallProgress& call) { return call.awaited; });
  const auto found = search.look(std::span(awaited).first(count));
  if (!found) return;
  for (CallProgress& call : calls) call.reset();
  owner_.raise(*found);
}

void Runner::raise_envelopes(const engine::EnvelopeMismatch& found, const CallProgress& call) {
  const std::uint64_t sequence = call.sequence();
  if (sequence != 0) {
    if (const auto different = failure::find_difference(group_, sequence)) owner_.raise(*different);
    // The ranks made the same call, with parts of different sizes.
    const auto own = group_.find(group_.rank(), sequence);
    Signature expected = own ? own->signature : Signature{};
    Signature given = expected;
    const std::size_t element = size_of(expected.dtype);
    expected.count = found.expected.count * size_of(found.expected.dtype) / element;
    given.count = found.received.count * size_of(found.received.dtype) / element;
    owner_.raise({.cause = Cause::kPartsDiffer,
                  .reporter = group_.rank(),
                  .culprit = found.received.peer,
                  .sequence = sequence,
                  .signature = expected,
                  .other = given});
  }
  const bool differ_in_order =
      found.expected.dtype == found.received.dtype && found.expected.count == found.received.count;
  const auto signature = [&](Kind kind, const engine::Envelope& e) {
    const std::uint64_t order = engine::digest_of(
        e.order == MemoryOrder::kFortran ? MemoryOrder::kFortran : MemoryOrder::kC);
    return Signature{
        .kind = kind, .dtype = e.dtype, .count = e.count, .digest = differ_in_order ? order : 0};
  };
  const bool sends = call.awaited.message != nullptr && call.awaited.message->sends;
  owner_.raise({.cause = Cause::kDifferent,
                .reporter = group_.rank(),
                .culprit = found.received.peer,
                .signature = signature(sends ? Kind::kSend : Kind::kRecv, found.expected),
                .other = signature(sends ? Kind::kRecv : Kind::kSend, found.received)});
}

// --- Calls under way ----------------------------------------------------------------------------

bool Runner::advance(bool look) {
  count_visit();
  return guarded([&] {
    bool moved = advance_queue(look);
    if (!messages_.empty()) {
      engines_.messages->progress_wanted();
      moved |= end_messages();
      if (look) moved |= look_at_messages();
    }
    moved |= advance_exchanges(look);
    if (moved && messages_.empty() && exchanges_.empty()) hide_messages();
    return moved;
  });
}

// Runs a step of pending calls. An exception ends all pending calls.
template <typename Part>
bool Runner::guarded(Part part) {
  bool moved = true;
  is_stepping_.store(true, std::memory_order_relaxed);
  try {
    moved = part();
  } catch (...) {
    owner_.fail_caught(queue_.empty() ? ledger_.last() : queue_.front()->sequence());
    fail_all(std::current_exception());
  }
  is_stepping_.store(false, std::memory_order_relaxed);
  return moved;
}

bool Runner::advance_queue(bool look) {
  bool moved = false;
  while (!queue_.empty() && advance_one(*queue_.front(), look)) {
    const auto done = std::move(queue_.front());
    queue_.pop_front();
    conclude(*done, done->refused_by);
    moved = true;
  }
  if (look) check_deadlines();
  return moved;
}

bool Runner::advance_exchanges(bool look) {
  bool moved = false;
  for (std::size_t i = 0; i < exchanges_.size();) {
    if (!step_pending(*exchanges_[i], look)) {
      ++i;
      continue;
    }
    const auto done = std::move(exchanges_[i]);
    exchanges_.erase(exchanges_.begin() + static_cast<std::ptrdiff_t>(i));
    conclude(*done, nullptr);
    moved = true;
  }
  return moved;
}

// Ends the messages that are done. If the carrier counts ended messages, this stops once it has
// found that many. They are mostly first in the list.
bool Runner::end_messages() {
  const auto ended = engines_.messages->ended();
  std::size_t left = messages_.size();
  if (ended) left = std::min<std::size_t>(left, *ended - std::exchange(ended_seen_, *ended));
  bool moved = false;
  for (std::size_t i = 0; left != 0 && i < messages_.size();) {
    if (!step(messages_[i]->call, false)) {
      ++i;
      continue;
    }
    --left;
    end_message(i);
    moved = true;
  }
  return moved;
}

// Checks whether messages can still succeed. It checks all of them if a rank was lost or a deadline
// has passed. Otherwise it checks a few: each check also looks at the other ranks, which serves all
// messages.
bool Runner::look_at_messages() {
  const bool looks_at_all = inquiry_.has_news() || first_message_deadline_.has_passed();
  if (looks_at_all) first_message_deadline_ = base::Deadline::never();
  std::size_t looks = looks_at_all ? messages_.size() : std::min(messages_.size(), kMessagesALook);
  bool moved = false;
  for (; looks != 0 && !messages_.empty(); --looks) {
    if (next_looked_at_ >= messages_.size()) next_looked_at_ = 0;
    Operation& operation = *messages_[next_looked_at_];
    if (step(operation.call, true)) {
      end_message(next_looked_at_);
      moved = true;
      continue;
    }
    first_message_deadline_ = std::min(first_message_deadline_, *operation.call.deadline);
    ++next_looked_at_;
  }
  return moved;
}

void Runner::end_message(std::size_t index) {
  const auto done = std::move(messages_[index]);
  if (index == 0) {  // the usual case, and quicker
    messages_.pop_front();
  } else {
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  conclude(*done, nullptr);
}

// Makes one step first, so that a message which has already come is matched.
bool Runner::withdraw(Operation& receive) {
  advance(false);
  MessageInFlight* const message = receive.call.message;
  if (receive.done() || message == nullptr || !message->owned.withdraw()) return false;
  message->is_withdrawn = true;
  const auto is_it = [&](const auto& operation) { return operation.get() == &receive; };
  end_message(static_cast<std::size_t>(std::ranges::find_if(messages_, is_it) - messages_.begin()));
  if (!busy()) hide_messages();
  return true;
}

void Runner::add(std::shared_ptr<Operation> message) {
  if (message->call.message == nullptr) {
    exchanges_.push_back(std::move(message));
    advance(false);
    return;
  }
  count_visit();
  first_message_deadline_ = std::min(first_message_deadline_, *message->call.deadline);
  messages_.push_back(std::move(message));
  guarded([&] {
    const bool has_ended = step(messages_.back()->call, false);
    if (has_ended) end_message(messages_.size() - 1);
    return has_ended;
  });
}

// Returns true if the operation succeeded. Throws if it failed permanently, which also ends the
// communicator. A refusal by a peer ends this operation alone.
bool Runner::advance_one(QueuedCall& operation, bool look) {
  const std::uint64_t sequence = operation.sequence();
  if (operation.refusal) {
    if (group_.failed()) owner_.raise_failure();
    if (!group_.may_refuse(sequence)) return false;
    publish_refusal(sequence, operation.call.shown.kind, *operation.refusal);
    return true;
  }
  try {
    if (!operation.begun) {
      if (operation.first_part) {
        const auto held = queue_.front();  // keeps `operation`, which `plan` may drop
        if (!plan(operation)) return operation.refusal ? advance_one(operation, look) : false;
      }
      operation.begun = true;
      begin(operation.plan,
            operation.call.shown,
            operation.carrying ? Arrays::kComing : Arrays::kHere);
      if (!start(operation)) return advance_one(operation, look);
    }
    if (!step_pending(operation, look)) return false;
    end_well(operation.plan.call, *operation.plan.engine);
    return true;
  } catch (const InvalidArgument& refusal) {
    if (operation.is_unheard()) {
      owner_.raise({.cause = Cause::kRefused,
                    .reporter = group_.rank(),
                    .culprit = refusal.status().peer,
                    .sequence = sequence,
                    .signature = operation.call.shown,
                    .text = refusal.status().reason});
    }
    end(sequence, true);
    const auto held = std::move(queue_.front());
    queue_.pop_front();
    conclude(*held, std::current_exception());
    if (held->dropped.load(std::memory_order_seq_cst)) owner_.fail_dropped(*held);
    return false;
  }
}

// Makes one step of an operation that has begun and has a task.
bool Runner::step_pending(Operation& operation, bool look) {
  const std::uint32_t resumed = operation.call.task.resumed();
  if (!step(operation.call, look)) {
    if (operation.call.task.resumed() != resumed) ++resumptions_;
    return false;
  }
  operation.call.task.reset();
  return true;
}

// Plans the second part of a call. Returns false if that part became a refusal, or ended with the
// first part.
bool Runner::plan(QueuedCall& operation) {
  const auto first = std::exchange(operation.first_part, nullptr);
  try {
    if (first->error()) std::rethrow_exception(first->error());
    operation.plan_now(operation);
    return true;
  } catch (...) {
    // If the first part failed, no other rank has seen the number of the second part. So the next
    // call can get it.
    if (first->error() && ledger_.last() == queue_.back()->sequence()) {
      drop_second_part();
    } else {
      operation.refusal = failure::reason_of_caught().view();
      operation.refused_by = std::current_exception();
    }
    return false;
  }
}

// Ends the first call of the queue, which has not begun, with the error being handled. The numbers
// of later calls decrease by one, because a rank that refused the first part has not numbered the
// second.
void Runner::drop_second_part() {
  const auto held = std::move(queue_.front());
  queue_.pop_front();
  for (const auto& later : queue_) later->set_sequence(later->sequence() - 1);
  ledger_.take_back_last();
  conclude(*held, std::current_exception());
}

// Starts a call of the queue. Returns false if it could not be started and became a refusal.
bool Runner::start(QueuedCall& operation) {
  const Plan& plan = operation.plan;
  try {
    operation.call.task =
        operation.carrying
            ? operation.carrying->carry(*plan.engine, plan.call, [this] { tracing_.arrived(); })
            : plan.engine->start(plan.call);
    return true;
  } catch (...) {
    if (operation.carrying) throw;  // its call has returned, so no caller would get the error
    operation.refusal = failure::reason_of_caught().view();
    operation.refused_by = std::current_exception();
    return false;
  }
}

void Runner::enqueue(std::shared_ptr<QueuedCall> operation) {
  const base::Deadline deadline = *operation->call.deadline;
  queue_.push_back(std::move(operation));
  first_deadline_ = std::min(first_deadline_, deadline);
}

// Checks the deadlines of queued calls that have not begun; `step` checks the deadlines of other
// calls.
void Runner::check_deadlines() {
  if (!first_deadline_.has_passed()) return;
  first_deadline_ = base::Deadline::never();
  for (const auto& operation : queue_) {
    if (!operation->begun) {
      first_deadline_ = std::min(first_deadline_, base::Deadline(*operation->call.deadline));
    }
  }
  for (const auto& operation : queue_) {
    if (operation->begun || !operation->call.deadline->has_passed()) continue;
    Failure failure = inquiry_.lateness(operation->call.awaited, operation->call.allowed);
    failure.signature = operation->call.shown;
    owner_.raise(failure);
  }
}

std::shared_ptr<Operation> Runner::of_gpus() const noexcept {
  if (!queue_.empty() && queue_.front()->begun && is_of_gpus(queue_.front())) {
    return queue_.front();
  }
  const auto found = std::ranges::find_if(exchanges_, is_of_gpus);
  return found == exchanges_.end() ? nullptr : *found;
}

void Runner::fail_all(const std::exception_ptr& error) noexcept {
  const auto exchanges = std::exchange(exchanges_, {});
  if (std::ranges::any_of(queue_, is_of_gpus) || std::ranges::any_of(exchanges, is_of_gpus)) {
    owner_.lose_device_call();
  }
  while (!queue_.empty()) {  // not std::exchange: an empty deque allocates memory
    const auto operation = std::move(queue_.front());
    queue_.pop_front();
    if (!operation->done() && operation->begun) {
      operation->call.reset();
      end(operation->sequence(), true);
    }
    give_up(*operation, error);
  }
  while (!messages_.empty()) {
    const auto operation = std::move(messages_.front());
    messages_.pop_front();
    give_up(*operation, error);
  }
  for (const auto& operation : exchanges) give_up(*operation, error);
}

// The callback of another operation may have ended this operation already.
void Runner::give_up(Operation& operation, const std::exception_ptr& error) noexcept {
  if (!operation.done()) conclude(operation, error);
}

void Runner::conclude(Operation& operation, const std::exception_ptr& error) noexcept {
  const std::uintptr_t before =
      concluding_.exchange(base::this_thread(), std::memory_order_relaxed);
  operation.finish(error);
  concluding_.store(before, std::memory_order_relaxed);
}

void Runner::show_messages(const failure::MessageCall& awaited) {
  const std::size_t waiting = std::max<std::size_t>(1, messages_.size() + exchanges_.size());
  if (shown_messages_ == waiting) return;
  shown_messages_ = waiting;
  std::string what =
      describe(messages_.empty() ? awaited : *messages_.front()->call.awaited.message);
  if (waiting > 1) what += fmt::format(" and {} more", waiting - 1);
  group_.show_wait(what);
}

void Runner::hide_messages() noexcept {
  if (shown_messages_ == 0) return;
  shown_messages_ = 0;
  group_.show_wait({});
}

}  // namespace hocket::call
