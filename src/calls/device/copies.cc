// Calls that only the host can make, on copies of any number of GPUs' arrays.
#include "calls/device/calls.h"
#include "hocket/error.h"

namespace hocket::device {
namespace {

// The copies of one call. The stream continues when the last owner is gone.
class OnCopies final : public call::Carrying {
 public:
  OnCopies(std::shared_ptr<StagedExchange> given,
           std::shared_ptr<StagedExchange> taken,
           std::shared_ptr<void> keep,
           bool awaited)
      : given_(std::move(given)),
        taken_(std::move(taken)),
        keep_(std::move(keep)),
        awaited_(awaited) {}

  engine::Task carry(engine::CollectiveEngine& engine,
                     const engine::Call& call,
                     std::function<void()> arrived) override {
    const auto given = given_;
    co_await engine::until([&given] { return given->is_here(); });
    arrived();
    co_await engine.start(call);
  }
  bool is_awaited() const noexcept override { return awaited_; }

 private:
  std::shared_ptr<StagedExchange> given_;
  std::shared_ptr<StagedExchange> taken_;
  std::shared_ptr<void> keep_;
  bool awaited_;
};

}  // namespace

std::shared_ptr<call::Operation> DeviceCalls::start_on_copies(const Copies& copies,
                                                              const PlanOnCopies& plan) {
  const engine::Signature& shown = copies.shown;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  try {
    for (const ConstArrayView& in : copies.in) outgoing.push_back({.in = in});
    for (const ArrayView& out : copies.out) incoming.push_back({.out = out});
    require_device({.in = copies.in.front()});
    const call::LentTurn lent(owner_);
    for (const Outgoing& one : outgoing) check_device(one.in, "what goes in");
    for (const Incoming& one : incoming) check_device(one.out, "what comes out");
  } catch (...) {
    owner_.refuse_caught(shown.kind);
  }
  const cuda::DeviceGuard guard(*device_);
  const Launch how = opened(
      {.kind = shown.kind, .deadline = copies.options.deadline, .stream = copies.options.stream});
  if (how.captured) {
    owner_.refuse(shown.kind,
                  InvalidArgument("the host carries this call, which no graph captures"));
  }
  const std::uint64_t sequence = owner_.ledger().last() + 1;
  const auto on_gpu = [&](const auto& put) {
    try {
      put();
    } catch (const DeviceError& error) {
      raise(error, sequence, shown);
    }
  };
  on_gpu([&] { require_engines(shown); });
  const cuda::OutsideCapture outside(device_->driver());
  const bool in_place = stays_in_call(how);
  make_room();
  std::shared_ptr<StagedExchange> given, taken;
  std::shared_ptr<DeviceWork> end;
  on_gpu([&] {
    const call::LentTurn lent(owner_);
    order_->follow(how.stream);
    given = staging_->give(outgoing, in_place ? std::span<const Incoming>() : incoming, how.stream);
    taken = in_place ? staging_->bring(incoming, how.stream) : given;
    if (!in_place && copies.wants_work) end = std::make_shared<DeviceWork>(events_, how.stream);
  });
  const StagedExchange::Landing landing = taken->landing();
  PlannedOnCopies planned;
  try {
    planned = plan(given->outgoing(), taken->incoming());
  } catch (...) {
    owner_.refuse_caught(shown.kind);
  }
  auto carrying = std::make_shared<OnCopies>(
      std::move(given), in_place ? taken : std::move(taken), std::move(planned.keep), in_place);
  auto operation = owner_.enqueue(planned.plan, shown, {}, how.allowed, std::move(carrying), end);
  if (!in_place) {
    on_gpu([&] {
      const call::LentTurn lent(owner_);
      staging_->land(landing, incoming, how.stream);
      order_->leave_mark(how.stream);
      if (end) end->put(how.stream);
    });
  }
  if (watch_->was_asleep()) job_.look_again();
  if (!in_place) return operation;
  owner_.runner().advance_until([&] { return operation->done(); });
  operation->rethrow();
  on_gpu([&] {
    const call::LentTurn lent(owner_);
    staging_->take_back(*taken, incoming, how.stream);
    order_->leave_mark(how.stream);
  });
  if (!copies.wants_work) return operation;
  DevicePlan ended;
  ended.call = planned.plan.call;
  ended.call.sequence = operation->sequence();
  return with_work(ended, how, nullptr);
}

}  // namespace hocket::device
