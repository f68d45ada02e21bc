// Calls that only the host can make, on copies of any number of GPUs' arrays.
#include <algorithm>

#include "calls/device/collectives.h"
#include "calls/device/host_copies.h"
#include "hocket/error.h"

namespace hocket::device {
namespace {

// The copies of one call's arrays. The stream continues when the last owner of the copies is gone.
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

std::shared_ptr<call::Operation> DeviceCollectives::start_on_copies(const Copies& copies,
                                                                    const PlanOnCopies& plan) {
  const engine::Signature& shown = copies.shown;
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  try {
    for (const ConstArrayView& in : copies.in) outgoing.push_back({.in = in});
    for (const ArrayView& out : copies.out) incoming.push_back({.out = out});
    session_.require_device({.in = copies.in.front()});
    const call::LentTurn lent(owner_);
    for (const Outgoing& one : outgoing) session_.check_device(one.in, "what goes in");
    for (const Incoming& one : incoming) session_.check_device(one.out, "what comes out");
  } catch (...) {
    owner_.refuse_caught(shown.kind);
  }
  const cuda::DeviceGuard guard(*session_.gpu());
  const Launch how = launcher_.opened(
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
      session_.raise(error, sequence, shown);
    }
  };
  on_gpu([&] { session_.require_engines(shown); });
  const cuda::OutsideCapture outside(session_.gpu()->driver());
  const bool in_place = launcher_.stays_in_call(how);
  launcher_.make_room();
  std::shared_ptr<StagedExchange> given, taken;
  std::shared_ptr<DeviceWork> end;
  on_gpu([&] {
    const call::LentTurn lent(owner_);
    session_.streams().order.follow(how.stream);
    given = session_.streams().staging->give(
        outgoing, in_place ? std::span<const Incoming>() : incoming, how.stream);
    taken = in_place ? session_.streams().staging->bring(incoming, how.stream) : given;
    if (!in_place && copies.wants_work)
      end = std::make_shared<DeviceWork>(session_.streams().events, how.stream);
  });
  const StagedExchange::ReceiveBuffers received = taken->receive_buffers();
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
      session_.streams().staging->wait_and_copy_back(received, incoming, how.stream);
      session_.streams().order.leave_mark(how.stream);
      if (end) end->put(how.stream);
    });
  }
  if (session_.watch().was_asleep()) job_.look_again();
  if (!in_place) return operation;
  owner_.runner().advance_until([&] { return operation->done(); });
  operation->rethrow();
  on_gpu([&] {
    const call::LentTurn lent(owner_);
    session_.streams().staging->take_back(*taken, incoming, how.stream);
    session_.streams().order.leave_mark(how.stream);
  });
  if (!copies.wants_work) return operation;
  DevicePlan ended;
  ended.call = planned.plan.call;
  ended.call.sequence = operation->sequence();
  return launcher_.with_work(ended, how, nullptr);
}

std::unique_ptr<HostCopies> DeviceCollectives::copy_to_host(
    ConstArrayView in, ArrayView out, const std::optional<StreamRef>& stream) {
  if (in.memory() != out.memory() && in.count() != 0 && out.count() != 0) {
    throw InvalidArgument("in and out lie in different kinds of memory");
  }
  session_.require_device({.in = in, .out = out, .stream = stream});
  const Launch how = launcher_.open({.stream = stream});
  if (how.captured) throw InvalidArgument("the host carries this call, which no graph captures");
  const call::LentTurn lent(owner_);
  session_.check_device(in, "in");
  session_.check_device(out, "out");
  return std::make_unique<HostCopies>(session_.gpu(), in, out, how.stream);
}

HostCopies::HostCopies(const std::shared_ptr<const cuda::DeviceContext>& gpu,
                       ConstArrayView in,
                       ArrayView out,
                       cuda::Stream stream)
    : current_(*gpu),
      outside_(gpu->driver()),
      driver_(gpu->driver()),
      on_gpu_(out),
      stream_(stream),
      in_buffer_(gpu, std::max<std::size_t>(in.bytes(), 1)),
      in_(in_buffer_.data(), in.count(), in.dtype()) {
  const bool in_place = in.data() == out.data() && in.bytes() == out.bytes();
  if (!in_place) out_buffer_.emplace(gpu, std::max<std::size_t>(out.bytes(), 1));
  out_ = {(in_place ? in_buffer_ : *out_buffer_).data(), out.count(), out.dtype()};
  cuda::copy(driver_, in_buffer_.data(), in.data(), in.bytes(), stream_);
  cuda::check(driver_, driver_.stream_synchronize(stream_), "wait for a stream");
}

void HostCopies::finish() {
  cuda::copy(driver_, on_gpu_.data(), out_.data(), out_.bytes(), stream_);
  cuda::check(driver_, driver_.stream_synchronize(stream_), "wait for a stream");
}

}  // namespace hocket::device
