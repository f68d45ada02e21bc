#include "calls/world/progress.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <vector>

#include "calls/call/core.h"
#include "calls/call/waiter.h"
#include "foundation/base/poll.h"
#include "foundation/base/threads.h"
#include "foundation/os/process/scheduling.h"
#include "hocket/error.h"
#include "membership/failure/witness.h"

namespace hocket::world {
namespace {

// While the program moves its calls itself: how soon to see whether it still does.
constexpr std::chrono::microseconds kAttendedNap{200};

}  // namespace

// The thread's data. Fields belong to the thread, unless their comments say so.
class ProgressThread::State {
 public:
  State(std::shared_ptr<control::HostControl> host, std::shared_ptr<failure::Witness> witness)
      : host_(std::move(host)), witness_(std::move(witness)), watches_(witness_ != nullptr) {}

  void run();
  // From any thread.
  void add(std::shared_ptr<call::Core> communicator);
  void add_periodic_task(std::weak_ptr<call::PeriodicTask> task);
  void listen(os::FutexWord& word) noexcept;
  void stop() noexcept;
  void wake() noexcept;
  void look_again() noexcept;
  bool is_idle() const noexcept { return calls_.load(std::memory_order_acquire) == 0; }
  void await_ready() const noexcept { ready_.wait(); }
  // Why it has ended already; to be asked once it is ready.
  const std::exception_ptr& refusal() const noexcept { return refusal_; }

 private:
  bool stopped() const noexcept { return stop_.load(std::memory_order_acquire); }
  void sleep_idle() noexcept;
  void sleep_attended() noexcept;
  void look_around();
  void watch_peers();
  bool is_called() const noexcept {
    const os::FutexWord* const call = call_.load(std::memory_order_acquire);
    return call != nullptr && call->load(std::memory_order_acquire) != call_at_tick_;
  }
  bool move_calls();
  bool wants_tick() const noexcept {
    return asked_.load(std::memory_order_relaxed) || next_tick_.has_passed() || is_called() ||
           host_->losses() != losses_at_tick_ ||
           host_->network_bell().load(std::memory_order_acquire) != bell_at_tick_;
  }
  void tick();
  base::Deadline next_look() const noexcept { return std::min(next_end_, next_tick_); }

  const std::shared_ptr<control::HostControl> host_;
  const std::shared_ptr<failure::Witness> witness_;
  const bool watches_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<call::Core>> added_;  // guarded by mutex_
  std::atomic<std::size_t> calls_{0};  // of communicators that were added and still move
  std::atomic<bool> wakes_{false};     // something was added
  std::latch ready_{1};
  std::exception_ptr refusal_;  // written before ready_
  std::atomic<bool> stop_{false};
  std::atomic<bool> idle_{false};  // sleeps, or is about to, on bell_
  os::FutexWord bell_{0};
  std::vector<std::shared_ptr<call::Core>> moving_;
  bool awaits_gpu_ = false;
  bool is_attended_ = false;          // threads of the program move all that is under way
  std::vector<os::FutexWait> waits_;  // on the peers that live
  base::Deadline next_end_ = base::Deadline::never();  // when to look how those ended who died
  std::vector<std::weak_ptr<call::PeriodicTask>> periodic_tasks_;  // guarded by mutex_
  base::Deadline next_tick_ = base::Deadline::never();
  std::uint32_t losses_at_tick_ = 0;
  std::uint32_t bell_at_tick_ = 0;             // the network's
  std::atomic<bool> asked_{false};             // for a tick
  std::atomic<os::FutexWord*> call_{nullptr};  // null: see `listen`
  std::uint32_t call_at_tick_ = 0;
};

ProgressThread::ProgressThread(std::shared_ptr<control::HostControl> host,
                               std::shared_ptr<failure::Witness> witness)
    : state_(std::make_shared<State>(std::move(host), std::move(witness))) {
  thread_ = base::start_thread("hocket", [state = state_] { state->run(); });
  // Others may rely on this rank's words from the moment it arrives.
  state_->await_ready();
  if (!state_->refusal()) return;
  thread_.join();
  std::rethrow_exception(state_->refusal());
}

ProgressThread::~ProgressThread() {
  state_->stop();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void ProgressThread::add(std::shared_ptr<call::Core> communicator) {
  state_->add(std::move(communicator));
}

void ProgressThread::add_periodic_task(std::weak_ptr<call::PeriodicTask> task) {
  state_->add_periodic_task(std::move(task));
}

void ProgressThread::listen(os::FutexWord& word) { state_->listen(word); }

bool ProgressThread::is_idle() const noexcept { return state_->is_idle(); }

void ProgressThread::look_again() noexcept { state_->look_again(); }

void ProgressThread::State::listen(os::FutexWord& word) noexcept {
  call_.store(&word, std::memory_order_release);
  look_again();
}

void ProgressThread::State::add(std::shared_ptr<call::Core> communicator) {
  try {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(communicator));
    calls_.fetch_add(1, std::memory_order_acq_rel);
  } catch (const std::bad_alloc&) {
    return;  // the thread that waits for the call moves it
  }
  wakes_.store(true, std::memory_order_release);
  wake();
}

void ProgressThread::State::add_periodic_task(std::weak_ptr<call::PeriodicTask> task) {
  {
    const std::lock_guard lock(mutex_);
    periodic_tasks_.push_back(std::move(task));
  }
  look_again();
}

void ProgressThread::State::tick() {
  asked_.store(false, std::memory_order_seq_cst);
  if (const os::FutexWord* const call = call_.load(std::memory_order_acquire)) {
    call_at_tick_ = call->load(std::memory_order_acquire);
  }
  losses_at_tick_ = host_->losses();
  bell_at_tick_ = host_->network_bell().load(std::memory_order_acquire);
  next_tick_ = base::Deadline::never();
  std::vector<std::shared_ptr<call::PeriodicTask>> living;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(periodic_tasks_, [&living](const std::weak_ptr<call::PeriodicTask>& task) {
      auto held = task.lock();
      if (held) living.push_back(std::move(held));
      return task.expired();
    });
  }
  for (const auto& task : living) next_tick_ = std::min(next_tick_, task->tick());
}

void ProgressThread::State::stop() noexcept {
  stop_.store(true, std::memory_order_release);
  wake();
}

void ProgressThread::State::look_again() noexcept {
  asked_.store(true, std::memory_order_seq_cst);
  wake();
}

void ProgressThread::State::wake() noexcept {
  bell_.fetch_add(1, std::memory_order_seq_cst);
  if (idle_.load(std::memory_order_seq_cst)) os::futex_wake_all(bell_);
  host_->ring(host_->self());  // it may sleep as one who waits for peers
}

// Sleeps until something is added, a peer ends, or the end. The doorbell is not used, as ringing it
// would pay for waking a thread that has nothing to do.
void ProgressThread::State::sleep_idle() noexcept {
  idle_.store(true, std::memory_order_seq_cst);
  const std::uint32_t ticket = bell_.load(std::memory_order_seq_cst);
  look_around();
  tick();
  if (!stopped() && !wakes_.load(std::memory_order_acquire)) {
    std::array<os::FutexWait, os::kMaxFutexWaits + 1> all;
    all[0] = {&bell_, ticket};
    const auto end = std::copy(waits_.begin(), waits_.end(), all.begin() + 1);
    os::futex_wait_any({all.begin(), end}, next_look());
  }
  idle_.store(false, std::memory_order_relaxed);
}

// Sleeps for a moment, while threads of the program move all pending calls. Ends of peers are seen
// afterwards: sleeping on all their words takes longer than the moment.
void ProgressThread::State::sleep_attended() noexcept {
  idle_.store(true, std::memory_order_seq_cst);
  const os::FutexWait bell{&bell_, bell_.load(std::memory_order_seq_cst)};
  if (!stopped() && !wakes_.load(std::memory_order_acquire) && !wants_tick()) {
    os::futex_wait_any({&bell, 1}, base::Deadline::in(kAttendedNap));
  }
  idle_.store(false, std::memory_order_relaxed);
}

void ProgressThread::State::run() {
  std::optional<os::RobustHold> hold;
  os::take_short_turns();
  try {
    if (watches_) hold.emplace();
  } catch (const Error&) {
    refusal_ = std::current_exception();
    return ready_.count_down();
  }
  if (watches_) {
    for (int peer = 0; peer < host_->ranks(); ++peer) {
      if (peer != host_->self()) hold->add(host_->robust_word(host_->self(), peer));
    }
  }
  ready_.count_down();

  while (!stopped()) {
    call::Waiter waiter(*host_, call::Waiter::Patience::kBackground);
    const auto is_idle = [&](bool) {
      look_around();
      if (wants_tick()) tick();
      if (move_calls()) waiter.moved();
      if (is_attended_) {
        waiter.moved();
        sleep_attended();
      }
      waiter.also(waits_);
      waiter.wake_by(awaits_gpu_ ? std::min(next_look(), base::Deadline::in(call::kGpuLook))
                                 : next_look());
      return moving_.empty() || stopped();
    };
    base::wait_until(is_idle, waiter);
    sleep_idle();
  }
}

// Lists the words to sleep on.
void ProgressThread::State::look_around() {
  waits_.clear();
  if (os::FutexWord* const call = call_.load(std::memory_order_acquire)) {
    waits_.push_back({call, call_at_tick_});
  }
  if (watches_) watch_peers();
}

// Looks at the words of all peers, and lists those still held, to sleep on. If there are more peers
// than one sleep takes, each rank watches those that follow it, and tells the others.
void ProgressThread::State::watch_peers() {
  if (!host_->groups().empty()) waits_.push_back({&host_->network_bell(), bell_at_tick_});
  const int ranks = host_->ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (host_->self() + i) % ranks;
    if (host_->state(peer) != control::RankState::kAlive) continue;
    os::RobustWord& word = host_->robust_word(peer, host_->self());
    const std::uint32_t value = word.word.load(std::memory_order_acquire);
    if ((value & os::RobustWord::kOwnerDied) != 0) {
      host_->record_death(peer);
    } else if (value != 0 && waits_.size() < os::kMaxFutexWaits) {
      waits_.push_back({&word.word, value});
    }
  }
  // After the deaths have been made known.
  next_end_ = witness_->look();
}

// True when something moved. A communicator whose last user this thread turns out to be is
// destroyed here, at the end.
bool ProgressThread::State::move_calls() {
  if (wakes_.exchange(false, std::memory_order_acq_rel)) {
    const std::lock_guard lock(mutex_);
    for (auto& communicator : added_) {
      if (std::find(moving_.begin(), moving_.end(), communicator) == moving_.end()) {
        moving_.push_back(std::move(communicator));
      } else {
        calls_.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
    added_.clear();
  }
  bool moved = false;
  awaits_gpu_ = false;
  is_attended_ = !moving_.empty();
  std::vector<std::shared_ptr<call::Core>> through;
  std::erase_if(moving_, [&](const std::shared_ptr<call::Core>& communicator) {
    const auto turn = communicator->progress();
    moved |= turn == call::Core::Progress::kMoved || turn == call::Core::Progress::kNothingLeft;
    awaits_gpu_ |= turn == call::Core::Progress::kAwaitsGpu;
    is_attended_ &= turn == call::Core::Progress::kAttended;
    if (turn == call::Core::Progress::kNothingLeft) through.push_back(communicator);
    return turn == call::Core::Progress::kNothingLeft;
  });
  calls_.fetch_sub(through.size(), std::memory_order_acq_rel);
  return moved;
}

}  // namespace hocket::world
