#include "comm/communicator_impl.h"

#include <fmt/format.h>

#include <cstring>

#include "base/hash.h"
#include "comm/composition.h"
#include "comm/device_calls.h"
#include "comm/exit_list.h"
#include "comm/operation.h"
#include "comm/refusals.h"
#include "comm/waiter.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::Call;
using engine::Kind;
using engine::Poll;
using engine::Signature;
using engine::Task;

std::uint64_t CommunicatorImpl::mark_of(const Signature& s) noexcept {
  std::uint64_t mark;
  static_assert(offsetof(Signature, count) == sizeof(mark));
  std::memcpy(&mark, &s, sizeof(mark));
  mark = base::mix(mark, s.count);
  return base::mix(mark, s.extra ^ (s.symmetric << 1));
}

void Seat::enter() {
  auto found = Turnstile::Who::kNobody;
  // Who takes one step is soon out; who makes a call meanwhile is a mistake.
  while (!impl_.turnstile_.try_enter(Turnstile::Who::kUser, &found)) {
    // Whoever was in when this process was forked is not here to leave.
    if (impl_.forks_.forked()) impl_.raise_unusable();
    if (found == Turnstile::Who::kUser) {
      if (!impl_.open_) impl_.raise_unusable();  // that user is closing it
      throw InvalidArgument(fmt::format(
          "two threads are using communicator {} at once; give each a duplicate() of its own, or "
          "let them take turns",
          impl_.membership_.name));
    }
    base::relax();
  }
}

void Seat::leave() noexcept {
  if (impl_.busy()) {
    impl_.turnstile_.leave();
  } else {
    impl_.turnstile_.leave_quietly();
  }
}

// Groups made by one call have the same name and different first members.
std::uint64_t Membership::id() const noexcept {
  const std::uint64_t hash = base::hash_of(name, static_cast<std::uint64_t>(world_ranks[0]));
  return base::mix(hash, 0) | 1;  // never 0
}

std::shared_ptr<CommunicatorImpl> CommunicatorImpl::make(const std::shared_ptr<WorldImpl>& world,
                                                         Membership membership,
                                                         std::uint64_t block) {
  const bool is_member = membership.rank >= 0;
  try {
    return std::make_shared<CommunicatorImpl>(world, membership, block);
  } catch (...) {
    if (is_member) fail_unmade(*world, membership, block);
    throw;
  }
}

CommunicatorImpl::CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                                   Membership membership,
                                   std::uint64_t block)
    : world_(std::move(world)),
      membership_(std::move(membership)),
      forks_(world_->forks()),
      block_(block),
      tracing_(world_->trace(), membership_),
      turnstile_(world_->host().fenced()),
      eager_polls_(world_->host().may_spin() ? 1000 : 4),
      deadline_(world_->default_deadline()) {
  if (rank() < 0) return;
  std::byte* memory = world_->host().at(block);
  if (membership_.spans()) {
    entry_ = world_->host().find_group(membership_.id());
    if (entry_ == nullptr) {
      throw Error({.code = ErrorCode::kSystem,
                   .message = fmt::format("there are {} groups between hosts already, as many as "
                                          "there can be; close some",
                                          control::kGroups)});
    }
  }
  control_ = std::make_unique<control::GroupControl>(
      world_->host(), memory, rank(), membership_.host_ranks, entry_);
  engines_ = make_engines(*world_, membership_, *control_, *this, block);
  open_ = true;
}

CommunicatorImpl::~CommunicatorImpl() {
  try {
    close();
  } catch (const std::exception& error) {  // nobody is left to be told
    ExitList::instance().report(error.what());
  }
}

// All calls before a refused one are settled: whoever sees it starts anew.
std::uint64_t CommunicatorImpl::fingerprint_after_refusal(std::uint64_t sequence) noexcept {
  return base::mix(sequence, mark_of({}));
}

// --- The way of a call --------------------------------------------------------------------------

void CommunicatorImpl::refuse_forked() const {
  if (!forks_.forked()) return;
  throw InvalidArgument(fmt::format(
      "this process was forked after hocket::init; communicator {} belongs to its parent. Start "
      "ranks with `hocket run` or by spawning, or call init in the child",
      membership_.name));
}

void CommunicatorImpl::raise_unusable() {
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

// What the others say then is that this rank has left, which is no news here.
void CommunicatorImpl::refuse_after_leaving() const {
  if (!world_->has_left()) return;
  throw InvalidArgument(
      fmt::format("the World of communicator {} has been closed on this rank; keep it as long as "
                  "communicators made of it make calls",
                  membership_.name));
}

void CommunicatorImpl::find_peer(int peer) {
  refuse_after_leaving();
  if (const auto loss = find_loss({.peer = peer})) raise(*loss);
}

void CommunicatorImpl::find_members() {
  refuse_after_leaving();
  if (const auto loss = find_loss({.sequence = sequence_ + 1})) raise(*loss);
}

engine::CollectiveEngine& CommunicatorImpl::choose(const Signature& signature) {
  engine::CollectiveEngine* best = choices_.of(signature, [this](const Signature& s) {
    engine::CollectiveEngine* quickest = nullptr;
    double least = 0;
    for (const auto& candidate : engines_.collectives) {
      const auto score = candidate->score(s);
      if (score && (quickest == nullptr || score->microseconds < least)) {
        quickest = candidate.get();
        least = score->microseconds;
      }
    }
    return quickest;
  });
  if (best == nullptr) {
    throw InvalidArgument(fmt::format(
        "no engine of communicator {} carries {}", membership_.name, engine::describe(signature)));
  }
  return *best;
}

// Gives the call its fingerprint, when all before it have ended or been refused, and announces it.
void CommunicatorImpl::begin(Plan& plan, const Signature& shown) {
  Call& call = plan.call;
  fingerprint_ = base::mix(fingerprint_, plan.mark);
  call.fingerprint = fingerprint_;
  control_->record(call.sequence, call.fingerprint, shown);
  if (tracing_.is_on()) [[unlikely]]
    tracing_.begin(call, shown, plan.engine->name());
  if (engines_.collectives.size() == 1) return;
  for (const auto& other : engines_.collectives) {
    if (other.get() != plan.engine) other->skip(call.sequence);
  }
}

void CommunicatorImpl::end(std::uint64_t sequence, bool failed) noexcept {
  control_->finish(sequence, !failed);
  if (tracing_.is_on()) [[unlikely]]
    tracing_.end(failed);
}

Plan CommunicatorImpl::plan(const Request& request, CallStorage& storage, const Signature* shown) {
  Plan plan{.call = check(request, place(), storage)};
  find_symmetric(plan.call);
  plan.engine = &choose(plan.call.signature);
  plan.mark = mark_of(shown == nullptr ? plan.call.signature : *shown);
  return plan;
}

Plan CommunicatorImpl::checked(const Request& request,
                               CallStorage& storage,
                               const Signature* shown) {
  try {
    return plan(request, storage, shown);
  } catch (...) {
    refuse_caught(request.kind);
  }
}

// A call that cannot be started is refused: this rank has given nothing so far.
Task CommunicatorImpl::start_task(const Plan& plan, const Signature& shown) {
  try {
    return plan.engine->start(plan.call);
  } catch (...) {
    announce_refusal(plan.call.sequence, shown.kind, reason_of_caught().view());
    throw;
  }
}

void CommunicatorImpl::execute(Plan& plan,
                               const Signature& shown,
                               std::optional<Duration> deadline,
                               CallStorage* storage) {
  if (busy()) {
    finish_queued(
        *enqueue(plan, shown, storage == nullptr ? CallStorage{} : std::move(*storage), deadline));
    return;
  }
  Call& call = plan.call;
  call.sequence = ++sequence_;
  begin(plan, shown);
  bool is_through = false;
  try {
    is_through = plan.engine->attempt(call);
  } catch (...) {
    end(call.sequence, true);
    fail_caught(call.sequence);
    throw;
  }
  if (!is_through) {
    Task task = start_task(plan, shown);
    drive(task, {.sequence = call.sequence}, deadline.value_or(deadline_));
  }
  end(call.sequence);
  if (!plan.engine->compares()) compare_ended(call.sequence);
}

// A blocking call's wait behind others under way.
void CommunicatorImpl::finish_queued(Operation& operation) {
  Waiter waiter(world_->host());
  while (!operation.done()) {
    waiter.wake_by(next_look());
    const bool look = waiter.pause();
    if (advance(look)) waiter.moved();
  }
  operation.rethrow();
}

// Steps a task to its end in this thread.
void CommunicatorImpl::drive(Task& task, const Awaited& awaited, Duration allowed) {
  try {
    Waiter waiter(world_->host());
    std::optional<Deadline> deadline;
    Doubt doubt;
    while (task.step() == Poll::kPending) {
      if (!waiter.pause()) continue;
      if (!deadline) {
        deadline = Deadline::in(allowed);
      }
      waiter.wake_by(std::min(*deadline, next_look()));
      std::optional<control::Failure> failure = look_around(awaited, doubt);
      if (!failure && deadline->has_passed()) failure = lateness(awaited, allowed);
      if (!failure) continue;
      // It may have ended well meanwhile, without whoever failed.
      if (task.step() == Poll::kDone) break;
      raise(*failure);
    }
    hide_messages();
  } catch (const engine::EnvelopeMismatch& found) {
    task.reset();
    raise_envelopes(found, awaited);
  } catch (...) {
    task.reset();
    if (awaited.sequence != 0) {
      end(awaited.sequence, true);
      fail_caught(awaited.sequence);
    }
    throw;
  }
}

void CommunicatorImpl::run(const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  if (request.is_device()) [[unlikely]]
    return devices().run(request);
  auto& [last, plan] = repeated_[static_cast<std::size_t>(request.kind) % repeated_.size()];
  if (!repeats(last, request)) {
    CallStorage storage;
    last.kind = Kind::kNone;
    plan = checked(request, storage);
    if (!storage.positions.empty()) {
      execute(plan, plan.call.signature, request.deadline, &storage);
      return;
    }
    last = request;
  }
  execute(plan, plan.call.signature, request.deadline, nullptr);
}

void CommunicatorImpl::run_as(const Signature& shown, const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  CallStorage storage;
  Plan plan = checked(request, storage, &shown);
  execute(plan, shown, request.deadline, &storage);
}

std::shared_ptr<Operation> CommunicatorImpl::start(const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  if (request.is_device()) return devices().start(request);
  CallStorage storage;
  const Plan plan = checked(request, storage);
  return enqueue(plan, plan.call.signature, std::move(storage), request.deadline);
}

Plan CommunicatorImpl::prepare(const Request& request, CallStorage& storage) {
  const Seat seat(*this);
  require_usable();
  return checked(request, storage);
}

void CommunicatorImpl::run_prepared(Plan& plan, std::optional<Duration> deadline) {
  const Seat seat(*this);
  require_usable();
  require_members();
  execute(plan, plan.call.signature, deadline, nullptr);
}

std::shared_ptr<Operation> CommunicatorImpl::start_prepared(const Plan& plan,
                                                            std::optional<Duration> deadline,
                                                            std::shared_ptr<void> keep) {
  const Seat seat(*this);
  require_usable();
  require_members();
  auto operation = enqueue(plan, plan.call.signature, {}, deadline);
  operation->keep = std::move(keep);
  return operation;
}

// Symmetric arrays are known by their address: they alone lie in the host's segment.
void CommunicatorImpl::find_symmetric(Call& call) const noexcept {
  const auto reachable = [this](const void* address) {
    return address != nullptr && world_->host().contains(address);
  };
  call.signature.symmetric = 0;
  if (entry_ != nullptr) return;  // not within reach of all
  bool symmetric = false;
  switch (call.signature.kind) {
    case Kind::kAllReduce:
      symmetric = reachable(call.in) && reachable(call.out);
      break;
    case Kind::kReduce:
    case Kind::kAllGather:
      symmetric = reachable(call.in);
      break;
    case Kind::kReduceScatter:
    case Kind::kAllToAll:  // in place, a rank would overwrite what others have yet to read
      symmetric = reachable(call.in) && call.in != call.out;
      break;
    case Kind::kBroadcast:
      symmetric = reachable(call.out);  // which all ranks have; the root's is read by the others
      break;
    default:
      break;
  }
  call.signature.symmetric = symmetric && call.signature.count != 0 ? 1 : 0;
}

}  // namespace hocket::comm
