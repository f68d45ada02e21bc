#include "comm/communicator_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/composition.h"
#include "comm/operation.h"
#include "comm/waiter.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;
using engine::Call;
using engine::Kind;
using engine::Poll;
using engine::Signature;
using engine::Task;

std::uint64_t CommunicatorImpl::mix(std::uint64_t hash, const Signature& s) noexcept {
  std::uint64_t head;
  static_assert(offsetof(Signature, count) == sizeof(head));
  std::memcpy(&head, &s, sizeof(head));
  hash = (hash ^ head) * 0xff51afd7ed558ccdULL;
  hash ^= hash >> 32;
  hash = (hash + s.count) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 29;
  hash = (hash ^ s.extra ^ (s.symmetric << 1)) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

Seat::Seat(CommunicatorImpl& impl) : impl_(impl) {
  std::uint32_t expected = CommunicatorImpl::kFree;
  // The progress thread gives way within one step; a user's thread is a mistake.
  while (!impl.holder_.compare_exchange_weak(
      expected, CommunicatorImpl::kUser, std::memory_order_acquire)) {
    if (expected == CommunicatorImpl::kUser) {
      throw InvalidArgument(fmt::format(
          "two threads are using communicator {} at once; give each a duplicate() of its own, or "
          "let them take turns",
          impl.membership_.name));
    }
    expected = CommunicatorImpl::kFree;
    relax();
  }
}

Seat::~Seat() { impl_.holder_.store(CommunicatorImpl::kFree, std::memory_order_release); }

CommunicatorImpl::CommunicatorImpl(std::shared_ptr<WorldImpl> world,
                                   Membership membership,
                                   std::uint64_t block)
    : world_(std::move(world)),
      membership_(std::move(membership)),
      block_(block),
      deadline_(world_->default_deadline()) {
  if (rank() < 0) return;
  std::byte* memory = world_->host().at(block);
  control_ = std::make_unique<control::GroupControl>(
      world_->host(), memory, rank(), membership_.host_ranks);
  engines_ = make_engines(*world_, membership_, *control_, *this, block);
}

CommunicatorImpl::~CommunicatorImpl() { close(); }

// All calls before a refused one are settled: whoever sees it starts anew.
std::uint64_t CommunicatorImpl::fingerprint_after_refusal(std::uint64_t sequence) noexcept {
  return mix(sequence, Signature{});
}

void CommunicatorImpl::close() noexcept {
  if (world_->forked() || closed_) return;
  intra_node.reset();
  inter_node.reset();
  closed_ = true;
  if (rank() < 0) return;
  if (busy()) {
    control_->fail({.code = ErrorCode::kAborted,
                    .reporter = rank(),
                    .culprit = rank(),
                    .sequence = sequence_,
                    .text = "closed the communicator with calls under way"});
    try {
      raise_failure();
    } catch (...) {
      fail_all(std::current_exception());
    }
  }
  engines_ = {};
  world_->host().release(block_);
}

// --- The way of a call --------------------------------------------------------------------------

void CommunicatorImpl::require_usable() {
  if (world_->forked()) {
    throw InvalidArgument(fmt::format(
        "this process was forked after hocket::init; communicator {} belongs to its parent. Start "
        "ranks with `hocket run` or by spawning, or call init in the child",
        membership_.name));
  }
  if (rank() < 0) {
    throw InvalidArgument(
        fmt::format("this process is not a member of communicator {}", membership_.name));
  }
  if (closed_) {
    throw InvalidArgument(fmt::format("communicator {} has been closed", membership_.name));
  }
  if (control_->failed()) raise_failure();
}

// Whom a new collective needs: all.
void CommunicatorImpl::require_members() {
  if (world_->host().losses() == losses_seen_) return;
  if (const auto loss = find_loss({.sequence = sequence_ + 1})) raise(*loss);
}

// A call whose arguments are bad takes its number and is announced as refused, so that the others
// hear of it at once instead of waiting.
void CommunicatorImpl::refuse(Kind kind, const InvalidArgument& reason) {
  const std::uint64_t sequence = ++sequence_;
  const auto operation =
      std::make_shared<Operation>(shared_from_this(), Deadline::never(), kForever);
  operation->call.sequence = sequence;
  operation->shown.kind = kind;
  operation->refusal = reason.what();
  queue_.push_back(operation);
  advance(false);
  // After the others have read earlier refusals; but never after work under way, which may need
  // what this thread does next.
  Waiter waiter(world_->host());
  const Deadline deadline = Deadline::in(deadline_);
  while (!operation->done() && queue_.front() == operation) {
    const bool look = waiter.pause();
    if (look && deadline.has_passed()) break;
    if (advance(look)) waiter.moved();
  }
  if (!operation->done()) world_->watch(shared_from_this());
  Status status = reason.status();
  status.communicator = membership_.name;
  status.sequence = sequence;
  status.operation = engine::name_of(kind);
  status.rank = rank();
  status.message =
      fmt::format("{} #{} on {}: {}", status.operation, sequence, membership_.name, reason.what());
  throw InvalidArgument(std::move(status));
}

void CommunicatorImpl::refuse_call(Kind kind, const std::string& reason) {
  const Seat seat(*this);
  require_usable();
  refuse(kind, InvalidArgument(reason));
}

engine::CollectiveEngine& CommunicatorImpl::choose(const Signature& signature) {
  if (chosen_ != nullptr && chosen_for_ == signature) return *chosen_;
  engine::CollectiveEngine* best = nullptr;
  double least = 0;
  for (const auto& candidate : engines_.collectives) {
    const auto score = candidate->score(signature);
    if (score && (best == nullptr || score->microseconds < least)) {
      best = candidate.get();
      least = score->microseconds;
    }
  }
  if (best == nullptr) {
    throw InvalidArgument(fmt::format(
        "no engine of communicator {} carries {}", membership_.name, engine::describe(signature)));
  }
  chosen_for_ = signature;
  chosen_ = best;
  return *best;
}

// Gives the call its fingerprint, when all before it have ended or been refused, and announces it;
// the engine that is to carry it.
engine::CollectiveEngine& CommunicatorImpl::begin(Call& call, const Signature& shown) {
  fingerprint_ = mix(fingerprint_, shown);
  call.fingerprint = fingerprint_;
  control_->record(call.sequence, call.fingerprint, shown);
  engine::CollectiveEngine& engine = choose(call.signature);
  if (engines_.collectives.size() > 1) {
    for (const auto& other : engines_.collectives) {
      if (other.get() != &engine) other->skip(call.sequence);
    }
  }
  return engine;
}

void CommunicatorImpl::end(std::uint64_t sequence) noexcept { control_->finish(sequence); }

Call CommunicatorImpl::checked(const Request& request, CallStorage& storage) {
  try {
    Call call = check(request, place(), storage);
    find_symmetric(call);
    choose(call.signature);
    return call;
  } catch (const InvalidArgument& reason) {
    refuse(request.kind, reason);
  }
}

void CommunicatorImpl::execute(Call& call,
                               const Signature& shown,
                               std::optional<Duration> deadline,
                               CallStorage* storage) {
  if (busy()) {
    const auto operation =
        enqueue(call, shown, storage == nullptr ? CallStorage{} : std::move(*storage), deadline);
    Waiter waiter(world_->host());
    while (!operation->done()) {
      const bool look = waiter.pause();
      if (advance(look)) waiter.moved();
    }
    if (operation->error()) std::rethrow_exception(operation->error());
    return;
  }
  call.sequence = ++sequence_;
  engine::CollectiveEngine& engine = begin(call, shown);
  if (!engine.attempt(call)) {
    Task task = engine.start(call);
    drive(task, {.sequence = call.sequence}, deadline.value_or(deadline_));
  }
  end(call.sequence);
  if (!engine.compares()) compare_ended(call.sequence);
}

// Steps a task to its end in this thread.
void CommunicatorImpl::drive(Task& task, const Awaited& awaited, Duration allowed) {
  try {
    Waiter waiter(world_->host());
    std::optional<Deadline> deadline;
    while (task.step() == Poll::kPending) {
      if (!waiter.pause()) continue;
      if (!deadline) {
        deadline = Deadline::in(allowed);
        waiter.wake_by(*deadline);
      }
      std::optional<control::Failure> failure = look_around(awaited);
      if (!failure && deadline->has_passed()) failure = lateness(awaited, allowed);
      if (!failure) continue;
      // It may have ended well meanwhile, without whoever failed.
      if (task.step() == Poll::kDone) return;
      raise(*failure);
    }
  } catch (const engine::EnvelopeMismatch& found) {
    task.reset();
    raise_envelopes(found, awaited);
  } catch (...) {
    task.reset();
    if (awaited.sequence != 0) end(awaited.sequence);
    throw;
  }
}

void CommunicatorImpl::run(const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  CallStorage storage;
  Call call = checked(request, storage);
  execute(call, call.signature, request.deadline, &storage);
}

void CommunicatorImpl::run_as(const Signature& shown, const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  CallStorage storage;
  Call call = checked(request, storage);
  execute(call, shown, request.deadline, &storage);
}

std::shared_ptr<Operation> CommunicatorImpl::start(const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  CallStorage storage;
  const Call call = checked(request, storage);
  return enqueue(call, call.signature, std::move(storage), request.deadline);
}

Call CommunicatorImpl::prepare(const Request& request, CallStorage& storage) {
  const Seat seat(*this);
  require_usable();
  Call call = check(request, place(), storage);
  find_symmetric(call);
  choose(call.signature);
  return call;
}

void CommunicatorImpl::run_prepared(Call& call, std::optional<Duration> deadline) {
  const Seat seat(*this);
  require_usable();
  require_members();
  execute(call, call.signature, deadline, nullptr);
}

std::shared_ptr<Operation> CommunicatorImpl::start_prepared(const Call& call,
                                                            std::optional<Duration> deadline,
                                                            std::shared_ptr<void> keep) {
  const Seat seat(*this);
  require_usable();
  require_members();
  auto operation = enqueue(call, call.signature, {}, deadline);
  operation->keep = std::move(keep);
  return operation;
}

// Symmetric arrays are known by their address: they alone lie in the host's segment.
void CommunicatorImpl::find_symmetric(Call& call) const noexcept {
  const auto reachable = [this](const void* address) {
    return address != nullptr && world_->host().contains(address);
  };
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

// --- Work under way -----------------------------------------------------------------------------

std::shared_ptr<Operation> CommunicatorImpl::enqueue(const Call& call,
                                                     const Signature& shown,
                                                     CallStorage storage,
                                                     std::optional<Duration> deadline) {
  const Duration allowed = deadline.value_or(deadline_);
  auto operation = std::make_shared<Operation>(shared_from_this(), Deadline::in(allowed), allowed);
  operation->call = call;
  operation->call.sequence = ++sequence_;
  operation->shown = shown;
  operation->storage = std::move(storage);
  queue_.push_back(operation);
  advance(false);
  if (!operation->done()) world_->watch(shared_from_this());
  return operation;
}

// One step of everything that can move; true when something ended.
bool CommunicatorImpl::advance(bool look) {
  bool moved = false;
  try {
    while (!queue_.empty() && advance_one(*queue_.front(), look)) {
      const auto done = std::move(queue_.front());
      queue_.pop_front();
      done->finish(nullptr);
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
      done->finish(nullptr);
      moved = true;
    }
  } catch (...) {
    fail_all(std::current_exception());
    moved = true;
  }
  return moved;
}

// What follows the last step. Always true.
bool CommunicatorImpl::settle(Operation& operation) {
  const std::uint64_t sequence = operation.call.sequence;
  operation.task.reset();
  if (sequence == 0) return true;
  end(sequence);
  if (!choose(operation.call.signature).compares()) compare_ended(sequence);
  return true;
}

// Calls that wait for their turn have deadlines too.
void CommunicatorImpl::check_deadlines() {
  for (const auto& operation : queue_) {
    if (operation->begun || !operation->deadline().has_passed()) continue;
    control::Failure failure =
        lateness({.sequence = operation->call.sequence}, operation->allowed());
    failure.signature = operation->shown;
    raise(failure);
  }
}

// True when the operation has ended well; throws when it has ended otherwise for good, and with it
// the communicator. A refusal by a peer ends this operation alone.
bool CommunicatorImpl::advance_one(Operation& operation, bool look) {
  const std::uint64_t sequence = operation.call.sequence;
  if (operation.refusal) {
    if (control_->failed()) raise_failure();
    if (!control_->may_refuse(sequence)) return false;
    fingerprint_ = fingerprint_after_refusal(sequence);
    control_->refuse(sequence, operation.shown.kind, *operation.refusal);
    for (const auto& engine : engines_.collectives) engine->skip(sequence);
    return true;
  }
  const Describe describe = [&operation] { return operation.message; };
  const Awaited awaited{.sequence = sequence, .peer = operation.peer, .message = &describe};
  try {
    if (!operation.begun) {
      operation.begun = true;
      operation.task = begin(operation.call, operation.shown).start(operation.call);
    }
    if (operation.task.step() == Poll::kDone) return settle(operation);
    if (!look) return false;
    std::optional<control::Failure> failure = look_around(awaited);
    if (!failure && operation.deadline().has_passed()) {
      failure = lateness(awaited, operation.allowed());
    }
    if (!failure) return false;
    if (operation.task.step() != Poll::kDone) raise(*failure);
    return settle(operation);
  } catch (const InvalidArgument&) {
    operation.task.reset();
    if (sequence != 0) end(sequence);
    const auto held = sequence != 0 ? queue_.front() : nullptr;
    if (held) {
      queue_.pop_front();
      held->finish(std::current_exception());
      return false;
    }
    throw;
  } catch (const engine::EnvelopeMismatch& found) {
    operation.task.reset();
    raise_envelopes(found, awaited);
  }
}

void CommunicatorImpl::fail_all(const std::exception_ptr& error) noexcept {
  const auto queue = std::exchange(queue_, {});
  const auto messages = std::exchange(messages_, {});
  for (const auto& operation : queue) {
    operation->task.reset();
    if (operation->begun) end(operation->call.sequence);
    operation->finish(error);
  }
  for (const auto& operation : messages) operation->finish(error);
}

void CommunicatorImpl::run_message(Task task,
                                   int peer,
                                   const Describe& what,
                                   std::optional<Duration> deadline) {
  if (busy()) {
    const auto operation = start_message(std::move(task), peer, what(), deadline);
    Waiter waiter(world_->host());
    while (!operation->done()) {
      const bool look = waiter.pause();
      if (advance(look)) waiter.moved();
    }
    if (operation->error()) std::rethrow_exception(operation->error());
    return;
  }
  drive(task, {.peer = peer, .message = &what}, deadline.value_or(deadline_));
}

std::shared_ptr<Operation> CommunicatorImpl::start_message(Task task,
                                                           int peer,
                                                           RankCall what,
                                                           std::optional<Duration> deadline) {
  const Duration allowed = deadline.value_or(deadline_);
  auto operation = std::make_shared<Operation>(shared_from_this(), Deadline::in(allowed), allowed);
  operation->task = std::move(task);
  operation->begun = true;
  operation->peer = peer;
  operation->message = std::move(what);
  messages_.push_back(operation);
  advance(false);
  if (!operation->done()) world_->watch(shared_from_this());
  return operation;
}

bool CommunicatorImpl::wait(Operation& operation, Deadline until) {
  Waiter waiter(world_->host());
  waiter.wake_by(std::min(until, operation.deadline()));
  while (!operation.done()) {
    const bool look = waiter.pause();
    std::uint32_t expected = kFree;
    if (holder_.compare_exchange_strong(expected, kUser, std::memory_order_acquire)) {
      const bool moved = advance(look);
      try {
        if (look && world_->interrupted()) raise(interruption());
      } catch (...) {
        fail_all(std::current_exception());
      }
      holder_.store(kFree, std::memory_order_release);
      if (moved) waiter.moved();
    }
    if (look && !operation.done() && until.has_passed()) return false;
  }
  return true;
}

void CommunicatorImpl::poke() {
  std::uint32_t expected = kFree;
  if (!holder_.compare_exchange_strong(expected, kUser, std::memory_order_acquire)) return;
  advance(true);
  holder_.store(kFree, std::memory_order_release);
}

CommunicatorImpl::Turn CommunicatorImpl::progress() noexcept {
  std::uint32_t expected = kFree;
  if (!holder_.compare_exchange_strong(expected, kProgress, std::memory_order_acquire)) {
    return Turn::kIdle;
  }
  const bool moved = !closed_ && advance(true);
  const bool left = busy();
  holder_.store(kFree, std::memory_order_release);
  if (!left) return Turn::kNothingLeft;
  return moved ? Turn::kMoved : Turn::kIdle;
}

void CommunicatorImpl::abandon(Operation& operation) noexcept {
  if (world_->forked()) return;
  control_->fail({.code = ErrorCode::kAborted,
                  .reporter = rank(),
                  .culprit = rank(),
                  .sequence = operation.call.sequence,
                  .signature = operation.shown,
                  .text = "gave up a call that was under way (its Work was destroyed)"});
  while (!operation.done()) {
    poke();
    relax();
  }
}

}  // namespace hocket::comm
