#include "calls/device/calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"
#include "foundation/base/hash.h"
#include "foundation/base/poll.h"
#include "foundation/cuda/quiet.h"

namespace hocket::device {

using base::Deadline;
using engine::Call;
using engine::Kind;
using engine::Signature;

namespace {

constexpr const char* kNeedsHost = "no engine of GPUs carries it by itself, so the host has to";

// `move` moves other calls in progress, which the other ranks may wait for.
engine::Task until_others(std::function<bool()> follow, std::function<void()> move) {
  co_await engine::until([&] {
    move();
    return follow();
  });
}

}  // namespace

DeviceCalls::~DeviceCalls() { close(); }

bool DeviceCalls::is_current(const DevicePlan& plan) const noexcept {
  return plan.epoch == job_.device_blocks().epoch();
}

void DeviceCalls::run(DevicePlan& plan, const call::Request& request, call::CallStorage storage) {
  go(plan, opened(request), std::move(storage));
}

std::shared_ptr<call::Operation> DeviceCalls::start(DevicePlan& plan,
                                                    const call::Request& request,
                                                    call::CallStorage storage) {
  const Launch how = opened(request);
  return with_work(plan, how, go(plan, how, std::move(storage), Wants::kWork));
}

// Gathers every rank's bytes with the communicator's engine for the host. It is part of a call on
// GPUs, and carries its name.
std::vector<std::byte> DeviceCalls::gather(const Signature& shown,
                                           std::span<const std::byte> own,
                                           std::optional<Duration> deadline) {
  std::vector<std::byte> all(own.size() * static_cast<std::size_t>(owner_.size()));
  call::CallStorage storage;
  call::Plan plan = owner_.planner().plan({.kind = Kind::kAllGather,
                                           .in = {own.data(), own.size(), DType::kUInt8},
                                           .out = {all.data(), all.size(), DType::kUInt8}},
                                          storage,
                                          &shown);
  owner_.execute(plan, shown, deadline, nullptr);
  return all;
}

void DeviceCalls::require_engines(const Signature& shown) {
  if (engines_) return;
  const cuda::OutsideCapture outside(device_->driver());
  auto engines = std::make_unique<DeviceEngines>(
      job_, owner_.membership(), device_, relay_.any(), [&](std::span<const std::byte> own) {
        return gather(shown, own);
      });
  const auto lateness = [this](std::uint64_t sequence, Duration allowed) {
    return owner_.inquiry().lateness({.sequence = sequence}, allowed);
  };
  watch_ = std::make_shared<DeviceWatch>(owner_.group(), device_, owner_.long_waits(), lateness);
  require_streams();
  engines_ = std::move(engines);
  job_.add_periodic_task(watch_);
  while ((messenger_ = engines_->messenger()) != nullptr && !connect(*messenger_, shown)) {
  }
  if (engines_->relayed()) settle_relay(shown);
}

// Makes the objects that calls on streams need with any engine.
void DeviceCalls::require_streams() {
  if (staging_) return;
  auto events = std::make_shared<EventPool>(device_);
  auto order = std::make_unique<StreamOrder>(device_);
  if (owner_.tracing().times_streams()) times_ = std::make_unique<StreamTimes>(device_);
  staging_ = std::make_shared<Staging>(device_);
  job_.finish_at_exit(owner_.weak_from_this());
  events_ = std::move(events);
  order_ = std::move(order);
}

std::function<void()> DeviceCalls::looking() {
  return [this, doubt = failure::Doubt()]() mutable {
    const failure::Verdict verdict =
        owner_.inquiry().look({.sequence = owner_.ledger().last() + 1}, doubt);
    if (const auto* refusal = std::get_if<failure::Refusal>(&verdict)) {
      owner_.ledger().begin_anew_after(refusal->sequence);
    }
    owner_.raise_any(verdict);
  };
}

// Collective; see DeviceEngines::connect.
bool DeviceCalls::connect(engine::DeviceEngine& engine, const Signature& shown) {
  finish_relayed();
  const engine::Introduction introduction{
      .gather = [&](std::span<const std::byte> own) { return gather(shown, own); },
      .look = looking(),
      .deadline = Deadline::in(owner_.deadline())};
  const cuda::OutsideCapture outside(device_->driver());
  const bool works = engines_->connect(engine, introduction);
  if (works) watch_->add(engine);
  return works;
}

// --- The way of a call --------------------------------------------------------------------------

void DeviceCalls::choose(DevicePlan& plan, bool captured) {
  do {
    plan.engine = engines_->choose(plan.call.signature, captured);
  } while (plan.engine != nullptr && !engines_->is_connected(*plan.engine) &&
           !connect(*plan.engine, plan.call.signature));
  plan.chosen = true;
  plan.captured = captured;
  plan.steps = plan.engine == nullptr ? nullptr : plan.engine->steps_of(plan.call, plan.outs);
}

std::shared_ptr<call::Operation> DeviceCalls::go(DevicePlan& plan,
                                                 const Launch& how,
                                                 call::CallStorage storage,
                                                 Wants wants) {
  const cuda::DeviceGuard guard(*device_);
  try {
    require_engines(plan.call.signature);
  } catch (const DeviceError& error) {  // the others are in the same call and have their own error
    raise(error, owner_.ledger().last() + 1, plan.call.signature);
  }
  if (!plan.chosen || plan.captured != how.captured ||
      (plan.engine != nullptr && !engines_->is_connected(*plan.engine))) {
    choose(plan, how.captured);
  }
  if (how.captured && (plan.engine == nullptr || plan.engine->returns_when_done())) {
    owner_.refuse(plan.call.signature.kind,
                  InvalidArgument(fmt::format("{} cannot be captured into a graph: {}",
                                              engine::describe(plan.call.signature),
                                              kNeedsHost)));
  }
  if (plan.engine != nullptr) {
    if (plan.engine->meets_on_device()) {
      try {
        require_own_stream(how);
      } catch (const InvalidArgument& reason) {
        owner_.refuse(plan.call.signature.kind, reason);
      }
    }
    launch(plan, how);
    return nullptr;
  }
  return stage(plan, how, std::move(storage), wants);
}

std::shared_ptr<DeviceWork> DeviceCalls::mark_end(const Launch& how) {
  const cuda::DeviceGuard guard(*device_);
  auto end = std::make_shared<DeviceWork>(events_, how.stream);
  end->put(how.stream);
  return end;
}

// Returns a Work's operation: the work in progress on the host, if any, and a mark on the stream.
std::shared_ptr<call::Operation> DeviceCalls::with_work(
    const DevicePlan& plan, const Launch& how, std::shared_ptr<call::Operation> operation) {
  if (operation) return operation;
  operation = call::make_operation(owner_.shared_from_this(), Deadline::never(), how.allowed);
  operation->plan.call = plan.call;
  operation->set_sequence(plan.call.sequence);
  operation->finish(nullptr);
  if (how.captured) return operation;
  try {
    const call::LentTurn lent(owner_);
    operation->mark = mark_end(how);
  } catch (const DeviceError& error) {  // the call is in progress, and its end would not be seen
    raise(error, operation->sequence(), plan.call.signature);
  }
  return operation;
}

std::shared_ptr<call::Operation> DeviceCalls::mark(StreamRef stream) {
  if (!events_) {
    throw InvalidArgument(
        fmt::format("communicator {} has had no call on GPUs so far", owner_.membership().name));
  }
  return with_work({}, open({.stream = stream}), nullptr);
}

// Waits on the host until the others have made as much progress in a call.
void DeviceCalls::await_others(std::uint64_t sequence,
                               Duration allowed,
                               std::function<bool()> follow) {
  engine::Task task = until_others(std::move(follow), [this] {
    if (owner_.runner().busy()) owner_.runner().advance(false);
  });
  struct Looks {
    bool& looks;
    ~Looks() { looks = false; }
  } const looks{awaits_word_ = true};
  call::Stepped wait{.task = std::move(task),
                     .message = nullptr,
                     .awaited = {.sequence = sequence},
                     .allowed = allowed,
                     .deadline = {},
                     .doubt = {},
                     .shown = {}};
  owner_.runner().drive({&wait, 1});
}

// Synchronizes threads that share a GPU and whose kernels may wait for each other. Such threads may
// load programs and allocate memory between calls. So no thread enqueues anything before all are in
// the call, and no thread leaves before all have enqueued their parts.

void DeviceCalls::meet(Meeting meeting, std::uint64_t sequence, const Launch& how) {
  const std::uint64_t step = 2 * sequence + static_cast<std::uint64_t>(meeting);
  control::GroupControl& control = owner_.group();
  control.come_to(step);
  await_others(sequence, how.allowed, [&control, step] { return control.all_at(step); });
}

void DeviceCalls::keep_pace(std::uint64_t sequence, const Launch& how) {
  if (watch_->is_ahead()) [[unlikely]]
    await_others(sequence, how.allowed, [this] { return !watch_->is_ahead(); });
}

// Gives the call its number and fingerprint, and announces them. From here on this rank takes part.
// `meets`: all ranks synchronize on the device.
void DeviceCalls::number(Call& call, std::uint64_t hash, const Launch& how, bool meets) {
  call.sequence = owner_.ledger().next();
  owner_.ledger().announce(call, hash, call.signature);
  for (const auto& engine : owner_.engines().collectives) engine->skip(call.sequence);
  if (meets) [[unlikely]]
    meet(Meeting::kBefore, call.sequence, how);
  keep_pace(call.sequence, how);
  owner_.runner().end(call.sequence);
  if (owner_.group().refused(call.sequence)) [[unlikely]]
    hear_refusal(call.sequence);
  const auto other =
      watch_->announce({.sequence = call.sequence, .fingerprint = call.fingerprint}, how.allowed);
  if (other) [[unlikely]]
    answer(*other);
}

// Handles a refusal. It ends this call alone, because this rank has not enqueued it.
void DeviceCalls::hear_refusal(std::uint64_t sequence) {
  const auto refusal = failure::find_refusal(owner_.group(), sequence);
  if (!refusal) return;  // so old that a rank that enqueued the call has ended the communicator
  owner_.ledger().begin_anew_after(sequence);
  owner_.raise_any(*refusal);
}

// GPUs do not know the calls' numbers and would take one call for the other.
void DeviceCalls::answer(const DeviceWatch::Other& other) {
  if (other.own == other.theirs) return owner_.confirm(other.member, other.own);
  owner_.raise(
      failure::refused_on_gpu(owner_.group(), other.member, std::min(other.own, other.theirs)));
}

// Throws an error of a call that the others have enqueued or will enqueue. If a peer's death may be
// the cause, the watch gets time to learn of it.
void DeviceCalls::raise(const DeviceError& error,
                        std::uint64_t sequence,
                        const Signature& signature) {
  try {
    throw;  // throws `error` with its original type
  } catch (const engine::MaybeLoss&) {
    job_.look_again();
    base::poll_until([this] { return owner_.group().failed(); },
                     Deadline::in(engine::kLossDoubt),
                     std::chrono::milliseconds(1));
  } catch (const DeviceError&) {
  }
  owner_.raise({.cause = control::Cause::kDevice,
                .reporter = owner_.rank(),
                .culprit = owner_.rank(),
                .sequence = sequence,
                .signature = signature,
                .text = error.what()});
}

void DeviceCalls::launch(DevicePlan& plan, const Launch& how) {
  finish_queue();
  call::TracedLaunch traced =
      owner_.tracing().device(plan.call.signature, owner_.ledger().last() + 1, plan.engine->name());
  call::trace_during(traced, [&] { put_on_stream(plan, how); });
}

// Replays of a graph are not announced, and a call that returns when it is done is timed as a host
// call.
bool DeviceCalls::is_timed(const engine::DeviceEngine& engine, const Launch& how) const noexcept {
  return times_ && !how.captured && !engine.returns_when_done();
}

void DeviceCalls::put_on_stream(DevicePlan& plan, const Launch& how) {
  const bool meets = stays_in_call(how) && plan.engine->meets_on_device();
  number(plan.call, plan.hash, how, meets);
  std::optional<cuda::Round> round;  // all ranks have arrived, and none has launched
  if (meets) [[unlikely]]
    round.emplace(*device_);
  try {
    const bool keeps_time =
        plan.engine->keeps_time(how.allowed, how.captured ? 0 : plan.call.sequence);
    const bool marks = !keeps_time && !how.captured;
    // Engines that return when all is done may use the thread that moves other calls.
    std::optional<call::LentTurn> lent;
    if (plan.engine->returns_when_done()) {
      finish_relayed();
    } else {
      lent.emplace(owner_);
    }
    if (!how.captured) order_->follow(how.stream);
    if (marks) {
      watch_->mark_begin(how.stream, {.sequence = plan.call.sequence, .allowed = how.allowed});
    }
    if (plan.engine->returns_when_done() && watch_->was_asleep()) job_.look_again();
    const auto put = [&] {
      plan.steps ? plan.steps->enqueue(how.stream) : plan.engine->enqueue(plan.call, how.stream);
    };
    if (is_timed(*plan.engine, how)) {
      times_->take(
          how.stream, owner_.tracing().on_stream(plan.call.signature, plan.engine->name()), put);
    } else {
      put();
    }
    if (marks) watch_->mark_end(how.stream);
    how.captured ? watch_->note_captured(*plan.engine) : order_->leave_mark(how.stream);
  } catch (const DeviceError& error) {
    raise(error, plan.call.sequence, plan.call.signature);
  }
  if (watch_->was_asleep()) job_.look_again();
  if (meets) [[unlikely]]
    meet(Meeting::kAfter, plan.call.sequence, how);
}

// Limits a program that never waits to the available memory and stream entries.
void DeviceCalls::make_room() {
  owner_.runner().advance_until([this] { return !staging_->is_full(); });
  owner_.require_usable();
}

std::shared_ptr<call::Operation> DeviceCalls::stage(DevicePlan& plan,
                                                    const Launch& how,
                                                    call::CallStorage storage,
                                                    Wants wants) {
  // Other streams of this thread may be captured. Allocations here must not be part of that.
  const cuda::OutsideCapture outside(device_->driver());
  if (stays_in_call(how)) {
    carry_in_place(plan, how, std::move(storage));
    return nullptr;
  }
  make_room();
  std::shared_ptr<StagedCall> staged;
  std::shared_ptr<DeviceWork> end;
  try {
    const call::LentTurn lent(owner_);
    staged = staging_->prepare(plan.call, owner_.rank(), owner_.size());
    order_->follow(how.stream);
    staging_->give(*staged, how.stream);
    if (wants == Wants::kWork) end = std::make_shared<DeviceWork>(events_, how.stream);
  } catch (const DeviceError& error) {
    raise(error, owner_.ledger().last() + 1, plan.call.signature);
  }
  call::Plan host = host_plan(plan, *staged);
  // The positions of the parts are this rank's own again.
  auto operation =
      owner_.enqueue(host, plan.call.signature, std::move(storage), how.allowed, staged, end);
  try {
    const call::LentTurn lent(owner_);
    staging_->land(*staged, how.stream);
    order_->leave_mark(how.stream);
    if (end) end->put(how.stream);
  } catch (const DeviceError& error) {
    raise(error, operation->sequence(), plan.call.signature);
  }
  if (watch_->was_asleep()) job_.look_again();
  return operation;
}

call::Plan DeviceCalls::host_plan(const DevicePlan& plan, const StagedCall& staged) {
  return {.call = staged.call(),
          .engine = &owner_.planner().choose(staged.call().signature),
          .hash = plan.hash};
}

// Returns whether the host waits inside the call, between the copies, for threads that share a GPU.
// A stream that waits for another rank blocks the driver when any thread loads a program, allocates
// or frees. That would also block the other rank. So no stream may wait.
bool DeviceCalls::stays_in_call(const Launch& how) const noexcept {
  if (how.captured || owner_.size() == 1 || !job_.threads()) return false;
  return !engines_ || engines_->by_crowded_threads();
}

// Waits in this call until the ranks have finished. Only copies remain on the stream. The call gets
// its number before any wait, because a refusal refers to it.
void DeviceCalls::carry_in_place(DevicePlan& plan, const Launch& how, call::CallStorage storage) {
  const std::uint64_t sequence = owner_.ledger().last() + 1;
  std::shared_ptr<StagedCall> staged;
  const auto on_gpu = [&](const auto& put) {
    try {
      const call::LentTurn lent(owner_);
      put();
    } catch (const DeviceError& error) {
      raise(error, sequence, plan.call.signature);
    }
  };
  on_gpu([&] {
    staged = staging_->prepare(plan.call, owner_.rank(), owner_.size());
    order_->follow(how.stream);
    staging_->bring(*staged, how.stream);
  });
  const auto operation = owner_.enqueue(
      host_plan(plan, *staged), plan.call.signature, std::move(storage), how.allowed, staged);
  owner_.runner().advance_until([&] { return operation->done(); });
  operation->rethrow();
  plan.call.sequence = operation->sequence();
  on_gpu([&] {
    staging_->take_back(*staged, how.stream);
    order_->leave_mark(how.stream);
  });
}

// Finishes calls that the host carries first, because they were made earlier.
void DeviceCalls::finish_queue() {
  owner_.runner().advance_until([this] { return owner_.runner().queue().empty(); });
  watch_->look_at_result();  // for calls that have just ended, before the watch's own next look
  owner_.require_usable();
}

bool DeviceCalls::meets_other_hosts() const noexcept {
  if (!engines_ || !engines_->any_meets()) return false;
  const control::GroupControl& group = owner_.group();
  for (int i = 0; i < group.size(); ++i) {
    if (!group.is_here(i)) return true;
  }
  return false;
}

bool DeviceCalls::awaits_gpu() const noexcept {
  const auto& queue = owner_.runner().queue();
  return awaits_word_ || !relay_.is_idle() || (!queue.empty() && queue.front()->carrying);
}

}  // namespace hocket::device
