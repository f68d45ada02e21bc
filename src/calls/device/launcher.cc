#include "calls/device/launcher.h"

#include <fmt/format.h>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"

namespace hocket::device {

using base::Deadline;

namespace {

// Ends when `follow` returns true. Until then, each step calls `move`, which moves other calls in
// progress that peers may wait for.
engine::Task until_others(std::function<bool()> follow, std::function<void()> move) {
  co_await engine::until([&] {
    move();
    return follow();
  });
}

}  // namespace

DeviceLauncher::Launch DeviceLauncher::opened(const call::Request& request) {
  try {
    return open(request);
  } catch (...) {
    owner_.refuse_caught(request.kind);
  }
}

DeviceLauncher::Launch DeviceLauncher::open(const call::Request& request) {
  const cuda::DeviceGuard guard(*session_.gpu());
  Launch how{.stream = request.stream.value_or(StreamRef()).handle(),
             .allowed = request.deadline.value_or(owner_.deadline())};
  cuda::Capture capture;
  try {
    const call::LentTurn lent(owner_);
    capture = cuda::capture_of(session_.gpu()->driver(), how.stream);
  } catch (const DeviceError& error) {  // earlier work has broken the GPU's context
    session_.raise(error);
  }
  if (capture == cuda::Capture::kBroken) {
    throw InvalidArgument(
        "stream cannot be used: its capture into a graph has been broken off, or it is the legacy "
        "default stream while another is captured");
  }
  how.captured = capture == cuda::Capture::kActive;
  return how;
}

// Throws for the default stream if ranks that are threads share a GPU, because they also share its
// default stream. There one rank's kernel would wait for another rank's kernel behind it.
void DeviceLauncher::require_own_stream(const Launch& how) const {
  const bool is_default = reinterpret_cast<std::uintptr_t>(how.stream) <= 1;  // by either name
  if (!is_default || !session_.engines().by_crowded_threads() || owner_.size() == 1) return;
  throw InvalidArgument(
      "stream is the default one, which all threads of a process share, and so do several ranks "
      "here their GPU: each needs a stream of its own, such as cupy.cuda.Stream(non_blocking=True) "
      "or torch.cuda.Stream(), as the current one or as stream=");
}

// Returns whether the host waits in the call until it is complete. It waits for ranks that are
// threads, if they share a GPU or if this is not known yet.
// A stream that waits for another rank blocks the driver when any thread loads a program, allocates
// or frees. That would also block the other rank, so no stream may wait.
bool DeviceLauncher::stays_in_call(const Launch& how) const noexcept {
  if (how.captured || owner_.size() == 1 || !job_.threads()) return false;
  return !session_.has_engines() || session_.engines().by_crowded_threads();
}

// True if the call's time on the stream is recorded. Replays of a graph are not announced, so
// captured calls are left out. A call that returns when it is done is timed as a host call.
bool DeviceLauncher::is_timed(const engine::DeviceEngine& engine,
                              const Launch& how) const noexcept {
  return session_.streams().times && !how.captured && !engine.returns_when_done();
}

std::shared_ptr<DeviceWork> DeviceLauncher::mark_end(const Launch& how) {
  const cuda::DeviceGuard guard(*session_.gpu());
  auto end = std::make_shared<DeviceWork>(session_.streams().events, how.stream);
  end->put(how.stream);
  return end;
}

std::shared_ptr<call::Operation> DeviceLauncher::with_work(
    const DevicePlan& plan, const Launch& how, std::shared_ptr<call::Operation> operation) {
  if (operation) return operation;
  operation = call::make_operation(owner_.shared_from_this(), Deadline::never(), how.allowed);
  operation->call.awaited.sequence = plan.call.sequence;
  operation->call.shown = plan.call.signature;
  operation->finish(nullptr);
  if (how.captured) return operation;
  try {
    const call::LentTurn lent(owner_);
    operation->mark = mark_end(how);
  } catch (const DeviceError& error) {  // the call is in progress, and its end would not be seen
    session_.raise(error, operation->sequence(), plan.call.signature);
  }
  return operation;
}

std::shared_ptr<call::Operation> DeviceLauncher::mark(StreamRef stream) {
  if (!session_.has_streams()) {
    throw InvalidArgument(
        fmt::format("communicator {} has had no call on GPUs so far", owner_.membership().name));
  }
  return with_work({}, open({.stream = stream}), nullptr);
}

void DeviceLauncher::await_others(std::uint64_t sequence,
                                  Duration allowed,
                                  std::function<bool()> follow) {
  engine::Task task = until_others(std::move(follow), [this] {
    if (owner_.runner().busy()) owner_.runner().advance(false);
  });
  struct Looks {
    bool& looks;
    ~Looks() { looks = false; }
  } const looks{awaits_word_ = true};
  call::CallProgress wait{.task = std::move(task),
                          .message = nullptr,
                          .awaited = {.sequence = sequence},
                          .allowed = allowed,
                          .deadline = {},
                          .doubt = {},
                          .shown = {}};
  owner_.runner().drive({&wait, 1});
}

void DeviceLauncher::keep_pace(std::uint64_t sequence, const Launch& how) {
  if (session_.watch().is_ahead()) [[unlikely]]
    await_others(sequence, how.allowed, [this] { return !session_.watch().is_ahead(); });
}

void DeviceLauncher::make_room() {
  owner_.runner().advance_until([this] { return !session_.streams().staging->is_full(); });
  owner_.require_usable();
}

bool DeviceLauncher::awaits_gpu() const noexcept {
  const auto& queue = owner_.runner().queue();
  return awaits_word_ || !session_.relay().is_idle() || (!queue.empty() && queue.front()->carrying);
}

}  // namespace hocket::device
