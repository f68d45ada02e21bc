#include "calls/device/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "calls/call/operation.h"
#include "foundation/base/hash.h"
#include "foundation/cuda/launch_gate.h"

namespace hocket::device {

using engine::Call;

namespace {

constexpr const char* kNeedsHost = "no engine of GPUs carries it by itself, so the host has to";

}  // namespace

DevicePlan DeviceCollectives::checked(const call::Request& request, call::CallStorage& storage) {
  try {
    return prepare(request, storage);
  } catch (...) {
    owner_.refuse_caught(request.kind);
  }
}

DevicePlan DeviceCollectives::prepare(const call::Request& request, call::CallStorage& storage) {
  DevicePlan plan{.call = call::check(request, owner_.place(), storage),
                  .epoch = job_.device_blocks().epoch()};
  session_.require_device(request);
  {
    const call::LentTurn lent(owner_);
    session_.check_device(request.in, "in");
    session_.check_device(request.out, "out");
  }
  find_symmetric(plan);
  plan.hash = call::Ledger::hash_of(plan.call.signature);
  return plan;
}

// Finds symmetric arrays by their address. Peers write to the same place of the same block on all
// ranks. So the result is part of the signature, on which all ranks agree.
void DeviceCollectives::find_symmetric(DevicePlan& plan) const {
  const engine::Kind kind = plan.call.signature.kind;
  if (!engine::all_take_alike(kind)) return;
  // In place, peers would overwrite data that has not been sent yet.
  if (engine::swaps_parts(kind) && plan.call.in == plan.call.out) return;
  auto block = job_.device_blocks().find(plan.call.out);
  if (!block || !block->is_direct() || plan.call.signature.count == 0) return;
  const std::size_t offset = *block->offset_of(plan.call.out);
  for (const int world_rank : owner_.membership().world_ranks) {
    std::byte* piece = block->piece_of_world(world_rank);
    if (piece == nullptr) {
      plan.outs.clear();
      return;
    }
    plan.outs.push_back(piece + offset);
  }
  plan.call.signature.symmetric = base::mix(block->id(), offset) | 1;
  plan.block = std::move(block);
}

bool DeviceCollectives::is_current(const DevicePlan& plan) const noexcept {
  return plan.epoch == job_.device_blocks().epoch();
}

void DeviceCollectives::run(DevicePlan& plan,
                            const call::Request& request,
                            call::CallStorage storage) {
  go(plan, launcher_.opened(request), std::move(storage));
}

std::shared_ptr<call::Operation> DeviceCollectives::start(DevicePlan& plan,
                                                          const call::Request& request,
                                                          call::CallStorage storage) {
  const Launch how = launcher_.opened(request);
  return launcher_.with_work(plan, how, go(plan, how, std::move(storage), Wants::kWork));
}

void DeviceCollectives::choose(DevicePlan& plan, bool captured) {
  do {
    plan.engine = session_.engines().choose(plan.call.signature, captured);
  } while (plan.engine != nullptr && !session_.engines().is_connected(*plan.engine) &&
           !session_.connect(*plan.engine, plan.call.signature));
  plan.chosen = true;
  plan.captured = captured;
  plan.steps = plan.engine == nullptr ? nullptr : plan.engine->steps_of(plan.call, plan.outs);
}

std::shared_ptr<call::Operation> DeviceCollectives::go(DevicePlan& plan,
                                                       const Launch& how,
                                                       call::CallStorage storage,
                                                       Wants wants) {
  const cuda::DeviceGuard guard(*session_.gpu());
  try {
    session_.require_engines(plan.call.signature);
  } catch (const DeviceError& error) {  // the other ranks get an error of their own
    session_.raise(error, owner_.ledger().last() + 1, plan.call.signature);
  }
  if (!plan.chosen || plan.captured != how.captured ||
      (plan.engine != nullptr && !session_.engines().is_connected(*plan.engine))) {
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
        launcher_.require_own_stream(how);
      } catch (const InvalidArgument& reason) {
        owner_.refuse(plan.call.signature.kind, reason);
      }
    }
    launch(plan, how);
    return nullptr;
  }
  return stage(plan, how, std::move(storage), wants);
}

// Synchronizes threads that share a GPU and whose kernels may wait for each other. Such threads may
// load programs and allocate memory between calls. So no thread enqueues anything before all are in
// the call, and no thread leaves before all have enqueued their parts.

void DeviceCollectives::meet(Meeting meeting, std::uint64_t sequence, const Launch& how) {
  const std::uint64_t step = 2 * sequence + static_cast<std::uint64_t>(meeting);
  control::GroupControl& control = owner_.group();
  control.come_to(step);
  launcher_.await_others(sequence, how.allowed, [&control, step] { return control.all_at(step); });
}

// Gives the call its number and fingerprint, and announces them. From here on the other ranks rely
// on this rank. `meets`: the ranks' kernels wait for each other, so all ranks meet on the host
// first.
void DeviceCollectives::number(Call& call, std::uint64_t hash, const Launch& how, bool meets) {
  call.sequence = owner_.ledger().next();
  owner_.ledger().announce(call, hash, call.signature);
  for (const auto& engine : owner_.engines().collectives) engine->skip(call.sequence);
  if (meets) [[unlikely]]
    meet(Meeting::kBefore, call.sequence, how);
  launcher_.keep_pace(call.sequence, how);
  owner_.runner().end(call.sequence);
  if (owner_.group().refused(call.sequence)) [[unlikely]]
    hear_refusal(call.sequence);
  const auto other = session_.watch().announce(
      {.sequence = call.sequence, .fingerprint = call.fingerprint}, how.allowed);
  if (other) [[unlikely]]
    answer(*other);
}

// Handles a refusal. It ends this call alone, because this rank has not enqueued it.
void DeviceCollectives::hear_refusal(std::uint64_t sequence) {
  const auto refusal = failure::find_refusal(owner_.group(), sequence);
  if (!refusal)
    return;  // too old to be found: a rank that enqueued the call has ended the
             // communicator
  owner_.ledger().begin_anew_after(sequence);
  owner_.failures.raise_any(*refusal);
}

// Handles another rank's call that has the same position on its GPU as a call of this rank. If
// their numbers are equal, it compares the calls. Otherwise a rank has refused a call, and the
// communicator fails: GPUs know no numbers, and would match one call with the other.
void DeviceCollectives::answer(const DeviceWatch::Other& other) {
  if (other.own == other.theirs) return owner_.failures.confirm(other.member, other.own);
  owner_.failures.raise(
      failure::refused_on_gpu(owner_.group(), other.member, std::min(other.own, other.theirs)));
}

void DeviceCollectives::launch(DevicePlan& plan, const Launch& how) {
  session_.finish_queue();
  call::TracedLaunch traced =
      owner_.tracing().device(plan.call.signature, owner_.ledger().last() + 1, plan.engine->name());
  call::trace_during(traced, [&] { put_on_stream(plan, how); });
}

void DeviceCollectives::put_on_stream(DevicePlan& plan, const Launch& how) {
  const bool meets = launcher_.stays_in_call(how) && plan.engine->meets_on_device();
  number(plan.call, plan.hash, how, meets);
  std::optional<cuda::LaunchRound> round;  // all ranks have arrived, and none has launched
  if (meets) [[unlikely]]
    round.emplace(*session_.gpu());
  try {
    const bool keeps_time =
        plan.engine->keeps_time(how.allowed, how.captured ? 0 : plan.call.sequence);
    const bool marks = !keeps_time && !how.captured;
    // An engine that returns when the call is done works in this thread, and keeps the turn.
    std::optional<call::LentTurn> lent;
    if (plan.engine->returns_when_done()) {
      session_.finish_relayed();
    } else {
      lent.emplace(owner_);
    }
    if (!how.captured) session_.streams().order.follow(how.stream);
    if (marks) {
      session_.watch().mark_begin(how.stream,
                                  {.sequence = plan.call.sequence, .allowed = how.allowed});
    }
    if (plan.engine->returns_when_done() && session_.watch().was_asleep()) job_.look_again();
    const auto put = [&] {
      plan.steps ? plan.steps->enqueue(how.stream) : plan.engine->enqueue(plan.call, how.stream);
    };
    if (launcher_.is_timed(*plan.engine, how)) {
      session_.streams().times->take(
          how.stream, owner_.tracing().on_stream(plan.call.signature, plan.engine->name()), put);
    } else {
      put();
    }
    if (marks) session_.watch().mark_end(how.stream);
    how.captured ? session_.watch().note_captured(*plan.engine)
                 : session_.streams().order.leave_mark(how.stream);
  } catch (const DeviceError& error) {
    session_.raise(error, plan.call.sequence, plan.call.signature);
  }
  if (session_.watch().was_asleep()) job_.look_again();
  if (meets) [[unlikely]]
    meet(Meeting::kAfter, plan.call.sequence, how);
}

std::shared_ptr<call::Operation> DeviceCollectives::stage(DevicePlan& plan,
                                                          const Launch& how,
                                                          call::CallStorage storage,
                                                          Wants wants) {
  // Other streams of this thread may be captured. Allocations here must not be part of that.
  const cuda::OutsideCapture outside(session_.gpu()->driver());
  if (launcher_.stays_in_call(how)) {
    carry_in_place(plan, how, std::move(storage));
    return nullptr;
  }
  launcher_.make_room();
  std::shared_ptr<StagedCall> staged;
  std::shared_ptr<DeviceWork> end;
  try {
    const call::LentTurn lent(owner_);
    staged = session_.streams().staging->prepare(plan.call, owner_.rank(), owner_.size());
    session_.streams().order.follow(how.stream);
    session_.streams().staging->give(*staged, how.stream);
    if (wants == Wants::kWork)
      end = std::make_shared<DeviceWork>(session_.streams().events, how.stream);
  } catch (const DeviceError& error) {
    session_.raise(error, owner_.ledger().last() + 1, plan.call.signature);
  }
  call::Plan host = host_plan(plan, *staged);
  // The record shows the call on the GPU's arrays, not the call on the host's copies.
  auto operation =
      owner_.enqueue(host, plan.call.signature, std::move(storage), how.allowed, staged, end);
  try {
    const call::LentTurn lent(owner_);
    session_.streams().staging->wait_and_copy_back(*staged, how.stream);
    session_.streams().order.leave_mark(how.stream);
    if (end) end->put(how.stream);
  } catch (const DeviceError& error) {
    session_.raise(error, operation->sequence(), plan.call.signature);
  }
  if (session_.watch().was_asleep()) job_.look_again();
  return operation;
}

call::Plan DeviceCollectives::host_plan(const DevicePlan& plan, const StagedCall& staged) {
  return {.call = staged.call(),
          .engine = &owner_.planner().choose(staged.call().signature),
          .hash = plan.hash};
}

// Carries a call by the host, and waits here until the ranks have finished. Only copies are put on
// the stream. The call gets its number before any wait, because a refusal refers to the number.
void DeviceCollectives::carry_in_place(DevicePlan& plan,
                                       const Launch& how,
                                       call::CallStorage storage) {
  const std::uint64_t sequence = owner_.ledger().last() + 1;
  std::shared_ptr<StagedCall> staged;
  const auto on_gpu = [&](const auto& put) {
    try {
      const call::LentTurn lent(owner_);
      put();
    } catch (const DeviceError& error) {
      session_.raise(error, sequence, plan.call.signature);
    }
  };
  on_gpu([&] {
    staged = session_.streams().staging->prepare(plan.call, owner_.rank(), owner_.size());
    session_.streams().order.follow(how.stream);
    session_.streams().staging->bring(*staged, how.stream);
  });
  const auto operation = owner_.enqueue(
      host_plan(plan, *staged), plan.call.signature, std::move(storage), how.allowed, staged);
  owner_.runner().advance_until([&] { return operation->done(); });
  operation->rethrow();
  plan.call.sequence = operation->sequence();
  on_gpu([&] {
    session_.streams().staging->take_back(*staged, how.stream);
    session_.streams().order.leave_mark(how.stream);
  });
}

}  // namespace hocket::device
