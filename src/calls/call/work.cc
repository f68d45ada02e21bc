// The public handle of a call in progress.
#include "hocket/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "calls/call/core.h"
#include "calls/call/operation.h"
#include "foundation/base/limit.h"

namespace hocket {

Work::Work(std::shared_ptr<call::Operation> operation) noexcept
    : operation_(std::move(operation)) {}
Work::Work(std::shared_ptr<call::Operation> ended, const Received& received) noexcept
    : operation_(std::move(ended)), received_(received) {}

void Work::drop() noexcept {
  const auto operation = std::move(operation_);
  if (operation->mark) {
    // Either the thread that ends the call sees `dropped`, or this thread sees that it is done.
    operation->dropped.store(true, std::memory_order_seq_cst);
    if (operation->done() && operation->error() && !operation->is_error_seen()) {
      operation->owner().failures.fail_dropped(*operation);
    }
    return;
  }
  if (!operation->done()) operation->owner().pending.abandon(*operation);
}

void Work::wait() {
  if (!operation_) return;
  if (!operation_->mark && operation_->done()) return operation_->rethrow();
  const auto operation = operation_;  // a callback may destroy this Work
  if (operation->mark) return operation->owner().stream_waits.check(*operation);
  operation->owner().pending.wait(*operation, base::Deadline::never());
  operation->rethrow();
}

void Work::wait(StreamRef stream) {
  wait();
  if (operation_ && operation_->mark) operation_->mark->hold(stream);
}

bool Work::wait_for(Duration timeout) {
  base::require_patience(timeout, "timeout");
  const auto operation = operation_;  // a callback may destroy this Work
  if (!operation) return true;
  const auto until = base::Deadline::in(timeout);
  if (operation->mark) return operation->owner().stream_waits.wait(*operation, until);
  if (!operation->owner().pending.wait(*operation, until)) return false;
  operation->rethrow();
  return true;
}

bool Work::test() {
  if (!operation_) return true;
  const auto operation = operation_;  // a callback may destroy this Work
  if (operation->mark) return operation->owner().stream_waits.test(*operation);
  if (!operation->done()) operation->owner().pending.poke();
  return operation->done();
}

bool Work::withdraw() {
  const auto operation = operation_;  // a callback may destroy this Work
  if (!operation || operation->mark || operation->done()) return false;
  return operation->owner().pending.withdraw(*operation);
}

std::optional<Status> Work::error() const {
  if (operation_ && operation_->mark) return operation_->owner().failures.status();
  if (!operation_ || !operation_->done() || !operation_->error()) return std::nullopt;
  try {
    operation_->rethrow();
    return std::nullopt;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {
    return Status{.code = ErrorCode::kSystem, .message = error.what()};
  }
}

std::optional<Received> Work::received() const {
  if (operation_ && received_) return received_;
  if (!operation_ || !operation_->received) return std::nullopt;
  if (!operation_->mark && (!operation_->done() || operation_->error())) return std::nullopt;
  return *operation_->received;
}

void Work::on_done(std::function<void()> f) {
  if (!f) throw InvalidArgument("f is empty; on_done takes the function to call");
  const auto operation = operation_;  // a callback may destroy this Work
  if (operation) {
    operation->on_done(std::move(f));
  } else {
    f();
  }
}

// --- Several ------------------------------------------------------------------------------------

namespace {

std::vector<Work*> each_of(std::span<Work> works) {
  std::vector<Work*> each;
  each.reserve(works.size());
  for (Work& work : works) each.push_back(&work);
  return each;
}

void require_works(std::span<Work* const> works) {
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i] == nullptr) throw InvalidArgument(fmt::format("works[{}] is null", i));
  }
}

}  // namespace

std::vector<std::size_t> wait_some_of(std::span<Work* const> works, Duration timeout) {
  // The longest times between two tests of the calls. A call on a GPU rings no bell when it ends.
  // Other calls do, but the thread that moves them may be busy, so this thread tests them as well.
  constexpr Duration kLookAtGpus = std::chrono::milliseconds(1);
  constexpr Duration kLook = std::chrono::milliseconds(50);
  base::require_patience(timeout, "timeout");
  if (works.empty()) throw InvalidArgument("works is empty, so that nothing can end");
  require_works(works);
  const auto until = base::Deadline::in(timeout);
  const auto find_ended = [&] {
    std::vector<std::size_t> ended;
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (works[i]->test()) ended.push_back(i);
    }
    return ended;
  };
  std::vector<std::size_t> ended = find_ended();
  if (!ended.empty() || until.has_passed()) return ended;

  call::Bell bell;
  std::deque<call::Listening> listenings;
  Duration look = kLook;
  for (const Work* work : works) {
    work->operation_->owner().reentry.refuse_in_callback();
    if (work->operation_->mark) look = kLookAtGpus;
    listenings.emplace_back(work->operation_, bell);
  }
  do {
    bell.wait(std::min(look, until.left()));
    ended = find_ended();
  } while (ended.empty() && !until.has_passed());
  return ended;
}

std::optional<std::size_t> wait_any_of(std::span<Work* const> works, Duration timeout) {
  const std::vector<std::size_t> ended = wait_some_of(works, timeout);
  return ended.empty() ? std::nullopt : std::optional(ended.front());
}

bool wait_all_of(std::span<Work* const> works, Duration timeout) {
  base::require_patience(timeout, "timeout");
  require_works(works);
  const auto until = base::Deadline::in(timeout);
  return std::ranges::all_of(works, [&](Work* work) { return work->wait_for(until.left()); });
}

std::vector<std::size_t> wait_some(std::span<Work> works, Duration timeout) {
  return wait_some_of(each_of(works), timeout);
}
std::optional<std::size_t> wait_any(std::span<Work> works, Duration timeout) {
  return wait_any_of(each_of(works), timeout);
}
bool wait_all(std::span<Work> works, Duration timeout) {
  return wait_all_of(each_of(works), timeout);
}

}  // namespace hocket
