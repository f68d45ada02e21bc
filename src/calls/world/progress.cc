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

// The sleep between two checks whether the program still moves all its calls itself.
constexpr std::chrono::microseconds kAttendedNap{200};

}  // namespace

// The thread's data. Fields belong to the thread, unless their comments say so.
class ProgressThread::State {
 public:
  State(std::shared_ptr<control::HostControl> host, std::shared_ptr<failure::Witness> witness)
      : host_(std::move(host)), witness_(std::move(witness)), watches_(witness_ != nullptr) {}

  void run();
  // Any thread may call the functions of this section.
  void add(std::shared_ptr<call::Core> communicator);
  void add_periodic_task(std::weak_ptr<call::PeriodicTask> task);
  void set_tick_word(os::FutexWord& word) noexcept;
  void stop() noexcept;
  void wake() noexcept;
  void look_again() noexcept;
  bool is_idle() const noexcept { return calls_.load(std::memory_order_acquire) == 0; }
  void await_ready() const noexcept { ready_.wait(); }
  // The error that ended the thread. Call it once the thread is ready.
  const std::exception_ptr& refusal() const noexcept { return refusal_; }

 private:
  bool stopped() const noexcept { return stop_.load(std::memory_order_acquire); }
  void sleep_idle() noexcept;
  void sleep_attended() noexcept;
  void look_around();
  void watch_peers();
  bool has_tick_word_changed() const noexcept {
    const os::FutexWord* const word = tick_word_.load(std::memory_order_acquire);
    return word != nullptr && word->load(std::memory_order_acquire) != tick_word_seen_;
  }
  bool move_calls();
  bool wants_tick() const noexcept {
    return asked_.load(std::memory_order_relaxed) || next_tick_.has_passed() ||
           has_tick_word_changed() || host_->liveness.losses() != losses_at_tick_ ||
           host_->doorbells.network_bell().load(std::memory_order_acquire) != bell_at_tick_;
  }
  void tick();
  base::Deadline next_look() const noexcept { return std::min(next_end_, next_tick_); }

  const std::shared_ptr<control::HostControl> host_;
  const std::shared_ptr<failure::Witness> witness_;
  const bool watches_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<call::Core>> added_;  // guarded by mutex_
  std::atomic<std::size_t> calls_{0};               // number of communicators with pending calls
  std::atomic<bool> wakes_{false};                  // something was added
  std::latch ready_{1};
  std::exception_ptr refusal_;  // written before ready_
  std::atomic<bool> stop_{false};
  std::atomic<bool> idle_{false};  // sleeps, or is about to, on bell_
  os::FutexWord bell_{0};
  std::vector<std::shared_ptr<call::Core>> moving_;
  bool awaits_gpu_ = false;
  bool is_attended_ = false;          // threads of the program move all pending calls
  std::vector<os::FutexWait> waits_;  // words of living peers
  base::Deadline next_end_ = base::Deadline::never();  // when to find out how dead peers ended
  std::vector<std::weak_ptr<call::PeriodicTask>> periodic_tasks_;  // guarded by mutex_
  base::Deadline next_tick_ = base::Deadline::never();
  std::uint32_t losses_at_tick_ = 0;
  std::uint32_t bell_at_tick_ = 0;                  // value of the network's doorbell
  std::atomic<bool> asked_{false};                  // a tick is requested
  std::atomic<os::FutexWord*> tick_word_{nullptr};  // null: see `set_tick_word`
  std::uint32_t tick_word_seen_ = 0;
};

ProgressThread::ProgressThread(std::shared_ptr<control::HostControl> host,
                               std::shared_ptr<failure::Witness> witness)
    : state_(std::make_shared<State>(std::move(host), std::move(witness))) {
  thread_ = base::start_thread("hocket", [state = state_] { state->run(); });
  // From this rank's arrival on, peers rely on its robust words. So the thread must hold them
  // first.
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

void ProgressThread::set_tick_word(os::FutexWord& word) { state_->set_tick_word(word); }

bool ProgressThread::is_idle() const noexcept { return state_->is_idle(); }

void ProgressThread::look_again() noexcept { state_->look_again(); }

void ProgressThread::State::set_tick_word(os::FutexWord& word) noexcept {
  tick_word_.store(&word, std::memory_order_release);
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
  if (const os::FutexWord* const word = tick_word_.load(std::memory_order_acquire)) {
    tick_word_seen_ = word->load(std::memory_order_acquire);
  }
  losses_at_tick_ = host_->liveness.losses();
  bell_at_tick_ = host_->doorbells.network_bell().load(std::memory_order_acquire);
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
  host_->doorbells.ring(host_->self());  // the thread may sleep on the rank's doorbell
}

// Sleeps until a communicator is added, a peer ends, or this thread must stop. It does not sleep on
// the doorbell, because peers would pay for waking a thread that has nothing to do.
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

// Sleeps for kAttendedNap, while the program's threads move all pending calls. It sleeps on the
// bell alone, because a sleep on all peers' words takes longer to prepare. So it sees peers' ends
// only afterwards.
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
      if (peer != host_->self()) hold->add(host_->liveness.robust_word(host_->self(), peer));
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

// Checks the peers, and lists the futex words to sleep on.
void ProgressThread::State::look_around() {
  waits_.clear();
  if (os::FutexWord* const word = tick_word_.load(std::memory_order_acquire)) {
    waits_.push_back({word, tick_word_seen_});
  }
  if (watches_) watch_peers();
}

// Checks the words of all peers, and lists those that are still held, to sleep on. If there are
// more peers than one sleep takes, each rank watches the ranks that follow it. A recorded death is
// visible to all ranks.
void ProgressThread::State::watch_peers() {
  if (!host_->groups.entries().empty())
    waits_.push_back({&host_->doorbells.network_bell(), bell_at_tick_});
  const int ranks = host_->ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (host_->self() + i) % ranks;
    if (host_->liveness.state(peer) != control::RankState::kAlive) continue;
    os::RobustWord& word = host_->liveness.robust_word(peer, host_->self());
    const std::uint32_t value = word.word.load(std::memory_order_acquire);
    if ((value & os::RobustWord::kOwnerDied) != 0) {
      host_->liveness.record_death(peer);
    } else if (value != 0 && waits_.size() < os::kMaxFutexWaits) {
      waits_.push_back({&word.word, value});
    }
  }
  // Comes last, so that the witness sees the deaths recorded above.
  next_end_ = witness_->look();
}

// Returns true if any call moved. If this thread is the last owner of a communicator, it destroys
// the communicator at the end of this function.
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
  std::vector<std::shared_ptr<call::Core>> finished;
  std::erase_if(moving_, [&](const std::shared_ptr<call::Core>& communicator) {
    const auto turn = communicator->pending.progress();
    moved |= turn == call::PendingCalls::Progress::kMoved ||
             turn == call::PendingCalls::Progress::kNothingLeft;
    awaits_gpu_ |= turn == call::PendingCalls::Progress::kAwaitsGpu;
    is_attended_ &= turn == call::PendingCalls::Progress::kAttended;
    if (turn == call::PendingCalls::Progress::kNothingLeft) finished.push_back(communicator);
    return turn == call::PendingCalls::Progress::kNothingLeft;
  });
  calls_.fetch_sub(finished.size(), std::memory_order_acq_rel);
  return moved;
}

}  // namespace hocket::world
