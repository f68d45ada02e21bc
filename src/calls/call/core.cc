#include "calls/call/core.h"

#include <fmt/format.h>

#include <algorithm>

#include "foundation/base/poll.h"
#include "membership/failure/caught.h"

namespace hocket::call {

using base::Deadline;
using engine::Signature;
using engine::Task;

// --- The turn -----------------------------------------------------------------------------------

void CallGuard::enter(std::optional<engine::Kind> kind) {
  auto found = TurnLock::Who::kNobody;
  // A thread at one step is soon out, unless it has lost its processor, perhaps to this thread. A
  // call in progress in another thread is an error.
  const auto is_in = [&](bool) {
    if (core_.turn_.try_enter(TurnLock::Who::kUser, &found)) return true;
    // A thread that was inside when this process was forked does not exist here, and never leaves.
    if (core_.forks_.forked()) core_.raise_unusable();
    if (core_.holds_turn_in_callback()) core_.refuse_call_of_callback(kind);
    if (core_.stepper_.load(std::memory_order_relaxed) == base::this_thread()) {
      core_.refuse_within_call();
    }
    if (found == TurnLock::Who::kUser) {
      if (!core_.open_) core_.raise_unusable();  // that user is closing it
      if (core_.turn_.is_user_here()) core_.refuse_within_call();
      throw InvalidArgument(fmt::format(
          "two threads are using communicator {} at once; give each a duplicate() of its own, or "
          "let them take turns",
          core_.membership_.name));
    }
    return false;
  };
  base::Naps pace(Duration::zero(), TurnLock::kStepsMet);
  base::wait_until(is_in, pace);
  if (!core_.is_telling_here()) [[likely]]
    return;
  try {
    core_.refuse_call_of_callback(kind);
  } catch (...) {
    core_.turn_.leave();  // not quietly: this thread must not get the fast path
    throw;
  }
}

void CallGuard::leave() noexcept {
  if (core_.runner_ && core_.runner_->busy()) {
    core_.turn_.leave();
  } else {
    core_.turn_.leave_quietly();
  }
}

// --- Making -------------------------------------------------------------------------------------

Core::Core(std::shared_ptr<JobContext> job,
           Membership membership,
           std::byte* block,
           control::GroupEntry* entry,
           Duration deadline)
    : job_(std::move(job)),
      membership_(std::move(membership)),
      forks_(job_->forks()),
      group_(block == nullptr
                 ? nullptr
                 : std::make_unique<control::GroupControl>(
                       job_->host(), block, membership_.rank, membership_.host_ranks, entry)),
      tracing_(job_->trace(), job_->audit(), membership_, job_->host()),
      turn_(job_->host().fenced()),
      eager_polls_(job_->host().may_spin() ? 1000 : 4),
      deadline_(deadline) {}

void Core::open(Engines engines) {
  engines_ = std::move(engines);
  ledger_.emplace(*group_);
  planner_.emplace(membership_.name, place(), job_->host(), !group_->spans());
  planner_->set_engines(engines_);
  // Never in the progress thread: the hook is for threads of the program's own.
  inquiry_.emplace(
      *group_, *engines_.messages, [this] { return !turn_.is_progress() && job_->interrupted(); });
  texts_.emplace(membership_.name, *group_, job_->witness());
  long_waits_.emplace(live::LongWaits{.group = *group_,
                                      .texts = *texts_,
                                      .communicator = membership_.name,
                                      .after = job_->wait_times().warn_after,
                                      .deadlock_after = job_->wait_times().deadlock_after,
                                      .beside = [this](const failure::Awaited& awaited) {
                                        return failure::under_another_tag(awaited,
                                                                          *engines_.messages);
                                      }});
  runner_.emplace(static_cast<Owner&>(*this),
                  *job_,
                  *group_,
                  engines_,
                  *ledger_,
                  *inquiry_,
                  tracing_,
                  *long_waits_);
  runner_->set_next_look(
      [this] { return awaits_gpu() ? Deadline::in(kGpuLook) : inquiry_->next_look(); });
  open_ = true;
}

void Core::set_audited(bool audited) {
  const CallGuard guard(*this);
  if (audited != is_audited()) tracing_.audit_in(audited ? job_->open_audit() : nullptr);
}

// --- Whether a call can be made -----------------------------------------------------------------

void Core::refuse_forked() const {
  if (!forks_.forked()) return;
  throw InvalidArgument(fmt::format(
      "this process was forked after hocket::init; communicator {} belongs to its parent. Start "
      "ranks with `hocket run`, and other processes by spawning instead of forking",
      membership_.name));
}

void Core::refuse_within_call() const {
  throw InvalidArgument(fmt::format(
      "an operator, or a signal's handler, uses communicator {} within a call of that very "
      "communicator; have it set a flag, and make its call after that one",
      membership_.name));
}

void Core::refuse_in_callback() const {
  if (!is_in_callback()) {
    if (stepper_.load(std::memory_order_relaxed) == base::this_thread()) refuse_within_call();
    return;
  }
  throw told_in_callback();
}

InvalidArgument Core::told_in_callback() const {
  return InvalidArgument(
      fmt::format("a callback that Work::on_done was given uses communicator {} while it tells of "
                  "a call's end; have it tell another thread, which does so then",
                  membership_.name));
}

// --- Callbacks of calls that have ended ---------------------------------------------------------

void Core::tell(const std::function<void()>& callback) noexcept {
  // Entering takes the fast path away from this thread, so that CallGuard looks for callbacks. If
  // another thread is inside, it has done so.
  if (turn_.try_enter(TurnLock::Who::kWaiter)) turn_.leave();
  const auto self = base::this_thread();
  {
    const std::lock_guard lock(tellers_mutex_);
    tellers_.push_back(self);
    tellers_count_.store(tellers_.size(), std::memory_order_relaxed);
  }
  callback();
  const std::lock_guard lock(tellers_mutex_);
  tellers_.erase(std::ranges::find(tellers_, self));
  tellers_count_.store(tellers_.size(), std::memory_order_relaxed);
}

bool Core::is_telling_here() const noexcept {
  if (tellers_count_.load(std::memory_order_relaxed) == 0) return false;  // a thread sees its own
  const std::lock_guard lock(tellers_mutex_);
  return std::ranges::find(tellers_, base::this_thread()) != tellers_.end();
}

void Core::raise_unusable() {
  refuse_forked();
  if (rank() < 0) {
    throw InvalidArgument(
        fmt::format("this process is not a member of communicator {}", membership_.name));
  }
  if (!open_) {
    throw InvalidArgument(fmt::format("communicator {} has been closed", membership_.name));
  }
  refuse_after_leaving();
  raise_failure();
}

// Afterwards the others only report that this rank has left, which says nothing new here.
void Core::refuse_after_leaving() const {
  if (!job_->has_left()) return;
  throw InvalidArgument(
      fmt::format("the World of communicator {} has been closed on this rank; keep it as long as "
                  "communicators made of it make calls",
                  membership_.name));
}

void Core::find_lost(const failure::Awaited& awaited) {
  refuse_after_leaving();
  const auto loss = inquiry_->find_loss(awaited);
  // If a rank has closed the communicator, only the wait shows whether this call needs it.
  if (loss && loss->cause != control::Cause::kClosed) raise(*loss);
}

// --- Collectives --------------------------------------------------------------------------------

Plan Core::checked(const Request& request,
                   CallStorage& storage,
                   const Signature* shown,
                   const Plan* like) {
  try {
    return planner_->plan(request, storage, shown, like);
  } catch (...) {
    refuse_caught(request.kind);
  }
}

void Core::run_as(const Signature& shown, const Request& request) {
  const CallGuard guard(*this, shown.kind);
  require_usable();
  require_members(shown.kind);
  require_limit(shown.kind, request.deadline);
  CallStorage storage;
  Plan plan = checked(request, storage, &shown);
  execute(plan, shown, request.deadline, &storage);
}

void Core::execute(Plan& plan,
                   const Signature& shown,
                   std::optional<Duration> deadline,
                   CallStorage* storage) {
  if (runner_->busy()) {
    finish_queued(
        *enqueue(plan, shown, storage == nullptr ? CallStorage{} : std::move(*storage), deadline));
    return;
  }
  const std::uint64_t sequence = plan.call.sequence = ledger_->next();
  runner_->begin(plan, shown);
  bool is_through = false;
  try {
    is_through = plan.engine->attempt(plan.call);
  } catch (...) {
    runner_->end(sequence, true);
    fail_caught(sequence);
    throw;
  }
  if (!is_through) {
    Stepped call{.task = start_task(plan, shown),
                 .awaited = {.sequence = sequence},
                 .allowed = deadline.value_or(deadline_),
                 .deadline = {},
                 .runs_program = plan.engine->runs_program(),
                 .doubt = {},
                 .shown = shown};
    if (call.runs_program) call.deadline = Deadline::in(call.allowed);
    runner_->drive({&call, 1});
  }
  runner_->end_well(plan.call, *plan.engine);
}

// A call that cannot be started is refused: this rank has given nothing so far.
Task Core::start_task(const Plan& plan, const Signature& shown) {
  try {
    return plan.engine->start(plan.call);
  } catch (...) {
    announce_refusal(plan.call.sequence, shown.kind, failure::reason_of_caught().view());
    throw;
  }
}

// A blocking call's wait behind others under way.
void Core::finish_queued(Operation& operation) {
  live::LongWait wait(*long_waits_);
  runner_->advance_until([&] { return operation.done(); },
                         Deadline::never(),
                         [&] {
                           wait.look(operation.call.awaited, operation.call.shown);
                           look_for_returned(operation);
                         });
  wait.over(operation.error() ? live::LongWait::End::kFailed : live::LongWait::End::kWell);
  operation.rethrow();
}

std::shared_ptr<Operation> Core::enqueue(const Plan& plan,
                                         const Signature& shown,
                                         CallStorage storage,
                                         std::optional<Duration> deadline,
                                         std::shared_ptr<Carrying> carrying,
                                         std::shared_ptr<StreamMark> mark) {
  const Duration allowed = deadline.value_or(deadline_);
  std::shared_ptr<Operation> operation;
  try {
    operation = make_operation(shared_from_this(), Deadline::in(allowed), allowed);
    runner_->enqueue(operation);
  } catch (...) {
    refuse_caught(shown.kind);
  }
  operation->plan = plan;
  operation->call.runs_program = plan.engine->runs_program();
  operation->set_sequence(ledger_->next());
  operation->call.shown = shown;
  operation->storage = std::move(storage);
  operation->carrying = std::move(carrying);
  operation->mark = std::move(mark);
  runner_->advance(false);
  watch(*operation);
  return operation;
}

std::shared_ptr<Operation> Core::start_two_parts(engine::Kind kind_of_second,
                                                 const std::function<Request()>& first,
                                                 std::function<Request()> second,
                                                 std::optional<Duration> deadline,
                                                 const std::shared_ptr<void>& keep) {
  const CallGuard guard(*this, engine::Kind::kNone);
  require_usable();
  require_members();
  require_limit(engine::Kind::kNone, deadline);
  CallStorage storage;
  Plan plan;
  const Duration allowed = deadline.value_or(deadline_);
  std::shared_ptr<Operation> later;
  try {
    plan = planner_->plan(first(), storage);
    later = make_operation(shared_from_this(), Deadline::in(allowed), allowed);
    later->keep = keep;
    later->call.awaited.kind = kind_of_second;
    later->call.shown.kind = kind_of_second;
    later->plan_now = [this, second = std::move(second)](Operation& operation) {
      const std::uint64_t sequence = operation.sequence();
      operation.plan = planner_->plan(second(), operation.storage);
      operation.set_sequence(sequence);
      operation.call.runs_program = operation.plan.engine->runs_program();
      operation.call.shown = operation.plan.call.signature;
    };
  } catch (...) {
    refuse_caught(engine::Kind::kNone);
  }
  later->first_part = enqueue(plan, plan.call.signature, std::move(storage), deadline);
  later->first_part->keep = keep;
  try {
    runner_->enqueue(later);
  } catch (...) {
    refuse_caught(engine::Kind::kNone);
  }
  later->set_sequence(ledger_->next());
  runner_->advance(false);
  watch(*later);
  return later;
}

// --- Messages -----------------------------------------------------------------------------------

void Core::run_message(Task task,
                       const failure::MessageCall& call,
                       std::optional<Duration> deadline) {
  if (runner_->busy()) {
    finish_queued(*start_message(std::move(task), call, deadline));
    return;
  }
  Stepped stepped{.task = std::move(task),
                  .message = nullptr,
                  .awaited = {.peer = call.envelope.peer, .message = &call},
                  .allowed = deadline.value_or(deadline_),
                  .deadline = {},
                  .runs_program = false,
                  .doubt = {},
                  .shown = {}};
  runner_->drive({&stepped, 1});
}

namespace {

Stepped stepped(MessageInFlight& message, Duration allowed) {
  return {.task = {},
          .message = &message,
          .awaited = {.peer = message.call.envelope.peer, .message = &message.call},
          .allowed = allowed,
          .deadline = {},
          .doubt = {},
          .shown = {}};
}

}  // namespace

void Core::run_message(MessageInFlight& message, std::optional<Duration> deadline) {
  if (runner_->busy()) return run_behind_others({&message, 1}, deadline);
  Stepped call = stepped(message, deadline.value_or(deadline_));
  trace_during(message, [&] { runner_->drive({&call, 1}); });
}

void Core::run_messages(std::span<MessageInFlight> messages, std::optional<Duration> deadline) {
  if (runner_->busy()) return run_behind_others(messages, deadline);
  std::vector<Stepped> calls;
  calls.reserve(messages.size());
  for (MessageInFlight& message : messages)
    calls.push_back(stepped(message, deadline.value_or(deadline_)));
  struct Together {
    std::span<MessageInFlight> messages;
    void end(bool failed) noexcept {
      for (MessageInFlight& message : messages) message.end(failed);
    }
  } all{messages};
  trace_during(all, [&] { runner_->drive(calls); });
}

void Core::run_behind_others(std::span<MessageInFlight> messages,
                             std::optional<Duration> deadline) {
  std::vector<std::shared_ptr<Operation>> operations;
  operations.reserve(messages.size());
  for (MessageInFlight& message : messages) {
    operations.push_back(start_message(std::move(message), deadline));
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    finish_queued(*operations[i]);
    messages[i].sender = operations[i]->message.sender;
  }
}

std::optional<engine::Envelope> Core::find_message(const failure::MessageCall& call) {
  const int peer = call.envelope.peer;
  const auto look = [&] {
    messages().progress();
    return messages().waiting(call.envelope);
  };
  auto found = look();
  if (!found) {
    if (std::exchange(probed_peer_, peer) != peer) probing_ = {};
    const auto verdict = inquiry_->look({.peer = peer, .message = &call}, probing_);
    if (const auto* failure = std::get_if<control::Failure>(&verdict)) {
      found = look();  // it may have come before the news
      if (!found) raise(*failure);
    } else if (auto returned = inquiry_->find_returned({.peer = peer, .message = &call})) {
      found = look();
      if (!found) raise(*returned);
    }
  }
  if (found) probing_ = {};
  return found;
}

std::shared_ptr<Operation> Core::start_message(Task task,
                                               const failure::MessageCall& call,
                                               std::optional<Duration> deadline) {
  const auto operation =
      new_message({.call = call, .owned = {}, .traced = {}, .sender = {}}, deadline);
  operation->call.task = std::move(task);
  return start_message(operation);
}

std::shared_ptr<Operation> Core::start_message(MessageInFlight&& message,
                                               std::optional<Duration> deadline) {
  const auto operation = new_message(std::move(message), deadline);
  operation->call.message = &operation->message;
  return start_message(operation);
}

std::shared_ptr<Operation> Core::new_message(MessageInFlight&& message,
                                             std::optional<Duration> deadline) {
  const Duration allowed = deadline.value_or(deadline_);
  return make_operation(shared_from_this(), Deadline::in(allowed), allowed, std::move(message));
}

std::shared_ptr<Operation> Core::start_message(std::shared_ptr<Operation> operation) {
  runner_->add(operation);
  watch(*operation);
  return operation;
}

// In the turn. The progress thread lets go of this in the turn as well, where nothing is left.
void Core::watch(const Operation& operation) {
  if (operation.done() || is_watched_) return;
  is_watched_ = true;
  visits_seen_.store(runner_->visits(), std::memory_order_relaxed);
  job_->watch(shared_from_this());
}

}  // namespace hocket::call
