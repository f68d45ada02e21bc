#include "comm/progress.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "comm/communicator_impl.h"
#include "comm/waiter.h"

namespace hocket::comm {
namespace {

// The thread takes no signals: they belong to the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

ProgressThread::ProgressThread(control::HostControl& host, bool watches) : host_(host) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this, watches] { run(watches); });
  pthread_setname_np(thread_.native_handle(), "hocket");
  // Others may rely on this rank's words from the moment it arrives.
  while (!ready_.load(std::memory_order_acquire)) relax();
}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_release);
  host_.wake_self();
  thread_.join();
}

void ProgressThread::add(std::shared_ptr<CommunicatorImpl> communicator) {
  {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(communicator));
  }
  wakes_.store(true, std::memory_order_release);
  host_.wake_self();
}

void ProgressThread::run(bool watches) {
  std::optional<os::RobustHold> hold;
  if (watches) {
    hold.emplace();
    for (int peer = 0; peer < host_.ranks(); ++peer) {
      if (peer != host_.self()) hold->add(host_.robust_word(host_.self(), peer));
    }
  }
  ready_.store(true, std::memory_order_release);

  std::vector<os::FutexWait> waits;
  while (!stop_.load(std::memory_order_acquire)) {
    Waiter waiter(host_);
    bool any_left = true;
    while (any_left && !stop_.load(std::memory_order_acquire)) {
      if (watches) watch_peers(waits);
      if (move_calls(&any_left)) {
        waiter.moved();
      } else if (any_left) {
        waiter.also(waits);
        waiter.pause();
      }
    }
    // Nothing under way: sleep until something is added, a peer ends, or the end.
    const auto ticket = host_.before_sleep();
    if (watches) watch_peers(waits);
    if (!stop_.load(std::memory_order_acquire) && !wakes_.load(std::memory_order_acquire)) {
      host_.sleep(ticket, base::Deadline::in(std::chrono::seconds(1)), waits);
    }
    host_.after_sleep();
  }
}

// Looks at the words of all peers, and lists those that are still held, to sleep on. With more
// peers than one sleep takes, each rank watches those that follow it; they tell the others.
void ProgressThread::watch_peers(std::vector<os::FutexWait>& waits) {
  waits.clear();
  const int ranks = host_.ranks();
  for (int i = 1; i < ranks; ++i) {
    const int peer = (host_.self() + i) % ranks;
    if (host_.state(peer) != control::RankState::kAlive) continue;
    os::RobustWord& word = host_.robust_word(peer, host_.self());
    const std::uint32_t value = word.word.load(std::memory_order_acquire);
    if ((value & os::RobustWord::kOwnerDied) != 0) {
      host_.record_death(peer);
    } else if (value != 0 && waits.size() < os::kMaxFutexWaits) {
      waits.push_back({&word.word, value});
    }
  }
}

// True when something moved.
bool ProgressThread::move_calls(bool* any_left) {
  if (wakes_.exchange(false, std::memory_order_acq_rel)) {
    const std::lock_guard lock(mutex_);
    for (auto& communicator : added_) {
      if (std::find(watched_.begin(), watched_.end(), communicator) == watched_.end()) {
        watched_.push_back(std::move(communicator));
      }
    }
    added_.clear();
  }
  bool moved = false;
  std::erase_if(watched_, [&](const std::shared_ptr<CommunicatorImpl>& communicator) {
    const auto turn = communicator->progress();
    moved |= turn != CommunicatorImpl::Turn::kIdle;
    return turn == CommunicatorImpl::Turn::kNothingLeft;
  });
  *any_left = !watched_.empty();
  return moved;
}

}  // namespace hocket::comm
