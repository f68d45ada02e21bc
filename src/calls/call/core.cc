#include "calls/call/core.h"

#include <fmt/format.h>

#include "engine/made_of_calls.h"
#include "foundation/base/poll.h"
#include "membership/failure/caught_reason.h"

namespace hocket::call {

using base::Deadline;
using engine::Kind;
using engine::Signature;
using engine::Task;

// --- The turn -----------------------------------------------------------------------------------

void CallGuard::enter(std::optional<engine::Kind> kind) {
  auto found = TurnLock::Who::kNobody;
  // A thread that makes one step holds the turn only briefly, so this thread waits for it. The
  // other thread may have lost its processor, perhaps to this thread. A call in progress in another
  // thread is an error.
  const auto is_in = [&](bool) {
    if (core_.turn_.try_enter(TurnLock::Who::kUser, &found)) return true;
    // In a forked child, a thread that was inside does not exist and never leaves.
    if (core_.forks_.forked()) core_.raise_unusable();
    if (core_.reentry.holds_turn_in_callback()) core_.refuse_call_of_callback(kind);
    if (core_.pending.is_step_here()) core_.reentry.refuse_within_call();
    if (found == TurnLock::Who::kUser) {
      if (!core_.open_) core_.raise_unusable();  // the other user is closing it
      if (core_.turn_.is_user_here()) core_.reentry.refuse_within_call();
      throw InvalidArgument(fmt::format(
          "two threads are using communicator {} at once; give each a duplicate() of its own, or "
          "let them take turns",
          core_.membership_.name));
    }
    return false;
  };
  base::Naps pace(Duration::zero(), TurnLock::kStepsMet);
  base::wait_until(is_in, pace);
  if (!core_.reentry.is_in_callback()) [[likely]]
    return;
  try {
    core_.refuse_call_of_callback(kind);
  } catch (...) {
    core_.turn_.leave();  // not `leave_quietly`, which may let this thread's calls skip this check
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

CoreState::CoreState(std::shared_ptr<JobContext> job,
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
      tracing_(job_->trace(), job_->audit(), membership_, job_->host().memory),
      turn_(job_->host().doorbells.fenced()),
      deadline_(deadline) {}

Core::Core(std::shared_ptr<JobContext> job,
           Membership membership,
           std::byte* block,
           control::GroupEntry* entry,
           Duration deadline)
    : CoreState(std::move(job), std::move(membership), block, entry, deadline),
      message_calls(*this, job_->host().processors.may_spin() ? 1000 : 4) {}

void Core::open(Engines engines) {
  engines_ = std::move(engines);
  ledger_.emplace(*group_);
  planner_.emplace(membership_.name, place(), job_->host().memory, !group_->spans());
  planner_->set_engines(engines_);
  // The check for interrupts is for the program's threads, so the progress thread skips it.
  inquiry_.emplace(
      *group_, *engines_.messages, [this] { return !turn_.is_progress() && job_->interrupted(); });
  const failure::Texts& texts = failures.open();
  long_waits_.emplace(live::LongWaits{.group = *group_,
                                      .texts = texts,
                                      .communicator = membership_.name,
                                      .after = job_->wait_times().warn_after,
                                      .deadlock_after = job_->wait_times().deadlock_after,
                                      .beside = [this](const failure::Awaited& awaited) {
                                        return failure::under_another_tag(awaited,
                                                                          *engines_.messages);
                                      }});
  runner_.emplace(failures, *job_, *group_, engines_, *ledger_, *inquiry_, tracing_, *long_waits_);
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
  failures.raise_failure();
}

// Throws if this rank has left the job. The failures that other ranks report would only repeat
// this.
void Core::refuse_after_leaving() const {
  if (job_->has_left()) throw InvalidArgument(why_left());
}

std::string Core::why_left() const {
  if (job_->is_ending()) {
    return fmt::format(
        "this process is ending, so communicator {} can make no more calls; let all calls end "
        "before main returns or exit is called, also those of other threads and of global objects' "
        "destructors",
        membership_.name);
  }
  return fmt::format(
      "the World of communicator {} has been closed on this rank; keep it as long as communicators "
      "made of it make calls",
      membership_.name);
}

void Core::find_lost(const failure::Awaited& awaited) {
  refuse_after_leaving();
  failure::Awaited shown = awaited;
  shown.kind = called(awaited.kind);
  const auto loss = inquiry_->find_loss(shown);
  // If the lost rank has only closed the communicator, the wait decides whether this call needs it.
  if (loss && loss->cause != control::Cause::kClosed) failures.raise(*loss);
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

namespace {

// Marks a planned call as a part of `whole`. Returns the signature that the other ranks see.
Signature show_as_part(Plan& plan, Kind whole) {
  Signature shown = plan.call.signature;
  shown.digest = engine::digest_of_part(whole, shown.digest);
  plan.hash = Ledger::hash_of(shown);
  return shown;
}

}  // namespace

void Core::run_part(const Request& request) {
  const CallGuard guard(*this, request.kind);
  require_usable();
  require_members(request.kind);
  require_limit(request.kind, request.deadline);
  CallStorage storage;
  Plan plan = checked(request, storage);
  execute(plan, show_as_part(plan, whole()), request.deadline, &storage);
}

void Core::run_as(const Signature& given, const Request& request) {
  Signature shown = given;
  if (is_in_whole()) shown.digest = engine::digest_of_part(whole(), given.digest);
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
    pending.finish(
        *enqueue(plan, shown, storage == nullptr ? CallStorage{} : std::move(*storage), deadline));
    return;
  }
  const std::uint64_t sequence = plan.call.sequence = ledger_->next();
  runner_->begin(plan, shown);
  bool is_complete = false;
  try {
    is_complete = plan.engine->attempt(plan.call);
  } catch (...) {
    runner_->end(sequence, true);
    failures.fail_caught(sequence);
    throw;
  }
  if (!is_complete) {
    CallProgress call{.task = start_task(plan, shown),
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

// Starts the call on its engine. If that throws, the call is refused, because this rank has sent
// nothing so far.
Task Core::start_task(const Plan& plan, const Signature& shown) {
  try {
    return plan.engine->start(plan.call);
  } catch (...) {
    announce_refusal(plan.call.sequence, shown.kind, failure::reason_of_caught().view());
    throw;
  }
}

std::shared_ptr<QueuedCall> Core::enqueue(const Plan& plan,
                                          const Signature& shown,
                                          CallStorage storage,
                                          std::optional<Duration> deadline,
                                          std::shared_ptr<Carrying> carrying,
                                          std::shared_ptr<StreamMark> mark) {
  const Duration allowed = deadline.value_or(deadline_);
  std::shared_ptr<QueuedCall> operation;
  try {
    operation = make_operation<QueuedCall>(shared_from_this(), Deadline::in(allowed), allowed);
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
  pending.watch(*operation);
  return operation;
}

std::shared_ptr<Operation> Core::start_two_parts(TwoParts parts) {
  const CallGuard guard(*this, parts.whole);
  require_usable();
  require_members(parts.whole);
  require_limit(parts.whole, parts.deadline);
  CallStorage storage;
  Plan plan;
  Signature first;
  const Duration allowed = parts.deadline.value_or(deadline_);
  std::shared_ptr<QueuedCall> later;
  try {
    plan = planner_->plan(parts.first(), storage);
    first = show_as_part(plan, parts.whole);
    later = make_operation<QueuedCall>(shared_from_this(), Deadline::in(allowed), allowed);
    later->keep = parts.keep;
    later->call.awaited.kind = parts.whole;
    later->call.shown.kind = parts.whole;
    later->plan_now =
        [this, whole = parts.whole, second = std::move(parts.second)](QueuedCall& operation) {
          const std::uint64_t sequence = operation.sequence();
          operation.plan = planner_->plan(second(), operation.storage);
          operation.set_sequence(sequence);
          operation.call.runs_program = operation.plan.engine->runs_program();
          operation.call.shown = show_as_part(operation.plan, whole);
        };
  } catch (...) {
    refuse_caught(parts.whole);
  }
  later->first_part = enqueue(plan, first, std::move(storage), parts.deadline);
  later->first_part->keep = parts.keep;
  try {
    runner_->enqueue(later);
  } catch (...) {
    refuse_caught(parts.whole);
  }
  later->set_sequence(ledger_->next());
  runner_->advance(false);
  pending.watch(*later);
  return later;
}

}  // namespace hocket::call
