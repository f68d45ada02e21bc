// Moves calls from start to end. A caller may wait for its calls in place. All other calls are
// pending: collectives in a queue, in their order, and messages in no order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "calls/call/job_context.h"
#include "calls/call/ledger.h"
#include "calls/call/operation.h"
#include "calls/call/planner.h"
#include "calls/call/tracing.h"
#include "calls/call/waiter.h"
#include "foundation/base/deadline.h"
#include "foundation/base/poll.h"
#include "membership/control/group.h"
#include "membership/failure/deadlock.h"
#include "membership/failure/inquiry.h"
#include "monitoring/live/long_wait.h"

namespace hocket::call {

// The runner's interface to the owner of the calls.
class Owner {
 public:
  virtual ~Owner() = default;
  // Makes `failure` the group's failure, unless the group has one already, and throws the group's
  // failure.
  [[noreturn]] void raise(const control::Failure& failure) {
    std::rethrow_exception(ended_by(failure));
  }
  // Throws another rank's refusal of the call.
  [[noreturn]] void raise(const failure::Refusal& refusal) {
    std::rethrow_exception(refused_by(refusal));
  }
  // Throws the refusal or failure that the verdict holds, if it holds one.
  void raise_any(const failure::Verdict& verdict) {
    if (const auto* refusal = std::get_if<failure::Refusal>(&verdict)) raise(*refusal);
    if (const auto* failure = std::get_if<control::Failure>(&verdict)) raise(*failure);
  }
  // Throws the failure of the group.
  [[noreturn]] void raise_failure() { std::rethrow_exception(ended()); }
  // Ends the group if the exception being handled ended a call that peers need.
  virtual void fail_caught(std::uint64_t sequence) noexcept = 0;
  // Reports that a call of GPUs that the host carried has failed, while no caller waits for it.
  virtual void lose_device_call() noexcept = 0;
  // Ends the group, because a peer has refused a call whose Work the program has dropped.
  virtual void fail_dropped(const Operation& operation) noexcept = 0;

 private:
  // The exceptions that the functions above throw.
  virtual std::exception_ptr ended_by(const control::Failure& failure) = 0;
  virtual std::exception_ptr refused_by(const failure::Refusal& refusal) = 0;
  virtual std::exception_ptr ended() = 0;
};

// A resource of one rank in a group, used in its turn. Functions that read an atomic need no turn.
class Runner {
 public:
  Runner(Owner& owner,
         JobContext& job,
         control::GroupControl& group,
         const Engines& engines,
         Ledger& ledger,
         failure::Inquiry& inquiry,
         Tracing& tracing,
         live::LongWaits& long_waits)
      : owner_(owner),
        host_(job.host()),
        group_(group),
        engines_(engines),
        ledger_(ledger),
        inquiry_(inquiry),
        tracing_(tracing),
        long_waits_(long_waits) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  bool busy() const noexcept {
    return !queue_.empty() || !messages_.empty() || !exchanges_.empty();
  }
  const std::deque<std::shared_ptr<QueuedCall>>& queue() const noexcept { return queue_; }
  // Appends a collective to the queue. Its deadline has already begun.
  void enqueue(std::shared_ptr<QueuedCall> operation);
  // Adds a message, which may have ended already.
  void add(std::shared_ptr<Operation> message);
  // Calls `visit` with each message in progress.
  template <typename Visit>
  void for_each_message(Visit visit) const {
    for (const auto& operation : messages_) visit(operation);
    for (const auto& operation : exchanges_) visit(operation);
  }
  // Returns a GPU's call or message that has begun, and for which a stream may wait. Null: none.
  std::shared_ptr<Operation> of_gpus() const noexcept;

  // Gives the next call of the queue its fingerprint, and announces it.
  void begin(Plan& plan, const engine::Signature& shown, Arrays arrays = Arrays::kHere) {
    ledger_.announce(plan.call, plan.hash, shown);
    if (tracing_.is_on()) [[unlikely]]
      tracing_.begin(plan.call, shown, plan.engine->name(), arrays);
    if (engines_.collectives.size() != 1 || plan.engine != engines_.collectives.front().get()) {
      skip_others(plan);
    }
  }
  void end(std::uint64_t sequence, bool failed = false) noexcept {
    ledger_.finish(sequence, !failed);
    if (tracing_.is_on()) [[unlikely]]
      tracing_.end(failed);
  }
  // Ends a call that succeeded. Compares the records if the engine does not compare fingerprints.
  // Compares them also in a large call with a root, where the root's engine does not compare and
  // the cost is small.
  void end_well(const engine::Call& call, const engine::CollectiveEngine& engine) {
    end(call.sequence);
    const engine::Signature& signature = call.signature;
    const bool is_large = engine::is_rooted(signature.kind) && signature.count >= kLargeCount;
    if (is_large || !engine.compares()) owner_.raise_any(ledger_.compare_ended(call.sequence));
  }
  void publish_refusal(std::uint64_t sequence, engine::Kind kind, std::string_view reason);

  // Makes one step of a call. Returns true when the call has succeeded, and throws when it has
  // failed. `look`: also checks whether it can still succeed.
  bool step(CallProgress& call, bool look);
  // Steps calls to their ends in this thread: one collective, or messages.
  void drive(std::span<CallProgress> calls);
  // Makes one step of each pending call. Returns whether any has ended.
  bool advance(bool look);
  // Ends a receive without a message and returns true, unless a message has been matched with it.
  bool withdraw(Operation& receive);
  // Returns how often `add` and `advance` were called. Any thread may call it.
  std::uint32_t visits() const noexcept { return visits_.load(std::memory_order_relaxed); }
  // Returns how often a call advanced without ending. A waiter restarts its pace when this changes.
  std::uint32_t resumptions() const noexcept { return resumptions_; }
  // Moves pending calls until `is_over()`. Returns false if the deadline passes first.
  template <typename IsOver>
  bool advance_until(IsOver is_over, base::Deadline deadline = base::Deadline::never()) {
    return advance_until(is_over, deadline, [] {});
  }
  // The same, but it calls `at_look` whenever it looks for failures.
  template <typename IsOver, typename Look>
  bool advance_until(IsOver is_over, base::Deadline deadline, Look at_look) {
    if (is_over()) return true;
    bool is_late = false;
    Waiter waiter(host_);
    const auto has_ended = [&](bool look) {
      is_late = look && deadline.has_passed();
      if (is_late) return true;
      if (look) at_look();
      const std::uint32_t before = resumptions_;
      if (advance(look) || resumptions_ != before) waiter.moved();
      waiter.wake_by(std::min(deadline, next_look()));
      return is_over();
    };
    base::wait_until(has_ended, waiter);
    return !is_late;
  }

  // --- The ends of calls under way ------------------------------------------------------------

  void fail_all(const std::exception_ptr& error) noexcept;
  // Ends an operation with `error`, unless it has already ended.
  void give_up(Operation& operation, const std::exception_ptr& error) noexcept;
  // True if this thread runs the callback of a call.
  bool is_concluding_here() const noexcept {
    return concluding_.load(std::memory_order_relaxed) == base::this_thread();
  }
  // True if a thread is at a step of pending calls.
  bool is_stepping() const noexcept { return is_stepping_.load(std::memory_order_relaxed); }

  // Sets a function that returns the latest time of the next look. A GPU does not ring the doorbell
  // when a call can go on.
  void set_next_look(std::function<base::Deadline()> next_look) {
    next_look_ = std::move(next_look);
  }
  base::Deadline next_look() const { return next_look_ ? next_look_() : base::Deadline::never(); }

 private:
  static constexpr std::size_t kLargeCount = 16384;  // elements
  static constexpr std::size_t kMessagesALook = 8;   // if no rank was lost and nothing is late

  void skip_others(const Plan& plan);
  void count_visit() noexcept { visits_.store(visits() + 1, std::memory_order_relaxed); }
  template <typename Part>
  bool guarded(Part part);
  bool advance_queue(bool look);
  bool advance_exchanges(bool look);
  bool end_messages();
  bool look_at_messages();
  void end_message(std::size_t index);
  std::size_t step_all(std::span<CallProgress> calls, bool look);
  bool look_for_returned(std::span<CallProgress> calls);
  void look_for_deadlock(failure::DeadlockSearch& search, std::span<CallProgress> calls);
  bool end_in_time(const CallProgress& call) {
    if (call.runs_program) [[unlikely]]
      require_in_time(call);
    return true;
  }
  void require_in_time(const CallProgress& call);
  bool advance_one(QueuedCall& operation, bool look);
  bool step_pending(Operation& operation, bool look);
  bool start(QueuedCall& operation);
  bool plan(QueuedCall& operation);
  void drop_second_part();
  void check_deadlines();
  void conclude(Operation& operation, const std::exception_ptr& error) noexcept;
  // Shows the host's other ranks which messages this rank waits for. Call it again when they
  // change.
  void show_messages(const failure::MessageCall& awaited);
  void hide_messages() noexcept;
  [[noreturn]] void raise_envelopes(const engine::EnvelopeMismatch& found,
                                    const CallProgress& call);

  Owner& owner_;
  control::HostControl& host_;
  control::GroupControl& group_;
  const Engines& engines_;
  Ledger& ledger_;
  failure::Inquiry& inquiry_;
  Tracing& tracing_;
  live::LongWaits& long_waits_;
  std::deque<std::shared_ptr<QueuedCall>> queue_;      // collectives, in order
  std::deque<std::shared_ptr<Operation>> messages_;    // plain messages, in no order
  std::vector<std::shared_ptr<Operation>> exchanges_;  // messages that are tasks, such as GPUs'
  // Before these times no call of the queue, and none of `messages_`, is late. So checking the
  // deadlines of thousands of calls is one comparison.
  base::Deadline first_deadline_ = base::Deadline::never();
  base::Deadline first_message_deadline_ = base::Deadline::never();
  std::uint64_t ended_seen_ = 0;    // see PointToPoint::ended
  std::size_t next_looked_at_ = 0;  // index in `messages_`
  std::atomic<std::uint32_t> visits_{0};
  std::uint32_t resumptions_ = 0;
  std::size_t shown_messages_ = 0;  // number of waiting messages when they were last shown
  std::function<base::Deadline()> next_look_;
  // The thread that runs a callback of an operation, with the turn, by this_thread(); 0: none does.
  std::atomic<std::uintptr_t> concluding_{0};
  std::atomic<bool> is_stepping_{false};
};

}  // namespace hocket::call
