#include "arrays/pool/crew.h"

#include <algorithm>

#include "foundation/base/interrupt.h"
#include "foundation/base/threads.h"
#include "hocket/error.h"

namespace hocket::pool {
namespace {

constexpr int kNobody = -1;

}  // namespace

Crew::Crew(int size, const Job& begin)
    : jobs_(static_cast<std::size_t>(size)), next_(static_cast<std::size_t>(size), kNobody) {
  pending_ = size;
  threads_ = base::start_threads(size, [this, &begin](int i) { work(i, begin); });
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return pending_ == 0; });
  if (!first_) return;
  closing_ = true;
  lock.unlock();
  start_.notify_all();
  threads_.clear();
  std::rethrow_exception(first_);
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  start_.notify_all();
  threads_.clear();  // ends the threads before the objects that they use
}

bool Crew::is_member(std::thread::id thread) const noexcept {
  return std::any_of(
      threads_.begin(), threads_.end(), [&](const auto& t) { return t.get_id() == thread; });
}

void Crew::work(int member, const Job& begin) {
  do_one(member, begin);
  const auto index = static_cast<std::size_t>(member);
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [&] { return closing_ || jobs_[index] != nullptr; });
    if (jobs_[index] == nullptr) return;
    const Job& job = *std::exchange(jobs_[index], nullptr);
    lock.unlock();
    do_one(member, job);
    lock.lock();
  }
}

void Crew::do_one(int member, const Job& job) {
  std::exception_ptr error;
  try {
    job(member);
  } catch (...) {
    error = std::current_exception();
  }
  const std::function<void(const std::string&)>* stop = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (error && !first_) first_ = std::move(error);
    if (first_ && !std::exchange(stopped_, true)) stop = stop_;
  }
  // Calls `stop` before the run ends, because `stop` belongs to the caller of `run`.
  if (stop != nullptr) (*stop)("an exception left worker " + std::to_string(member));
  error = nullptr;
  const std::lock_guard lock(mutex_);
  start_next(member);
  if (--pending_ == 0) end_.notify_all();
}

void Crew::begun(int member) {
  const std::lock_guard lock(mutex_);
  start_next(member);
}

// Call it with `mutex_` held.
void Crew::start_next(int member) {
  const int next = std::exchange(next_[static_cast<std::size_t>(member)], kNobody);
  if (next == kNobody) return;
  jobs_[static_cast<std::size_t>(next)] = job_;
  start_.notify_all();
}

bool Crew::wait() {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return pending_ == 0; };
  while (!ended()) {
    const auto until = base::until_asked(base::Deadline::never());
    if (until.is_never()) {
      end_.wait(lock, ended);
    } else if (!end_.wait_until(lock, until.when(), ended) && !stopped_) {
      lock.unlock();
      const bool interrupted = base::interrupted();
      lock.lock();
      if (!interrupted) continue;
      if (!std::exchange(stopped_, true)) {
        lock.unlock();
        (*stop_)("interrupted");
        lock.lock();
      }
      end_.wait(lock, ended);
      return false;
    }
  }
  return true;
}

void Crew::run(std::span<const int> members,
               const Job& job,
               const std::function<void(const std::string&)>& stop,
               Start start) {
  const std::lock_guard call(calls_);
  {
    const std::lock_guard lock(mutex_);
    first_ = nullptr;
    stopped_ = false;
    stop_ = &stop;
    pending_ = static_cast<int>(members.size());
    job_ = &job;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (start == Start::kInTurn && i > 0) {
        next_[static_cast<std::size_t>(members[i - 1])] = members[i];
      } else {
        jobs_[static_cast<std::size_t>(members[i])] = &job;
      }
    }
  }
  start_.notify_all();
  const bool undisturbed = wait();
  std::exception_ptr first;
  {
    const std::lock_guard lock(mutex_);
    first = std::exchange(first_, nullptr);
  }
  if (!undisturbed) {
    throw Aborted({.code = ErrorCode::kAborted, .message = "the pool's workers were interrupted"});
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace hocket::pool
