// Coroutines that await calls: several conversations of one rank, in one thread.
//
//     hocket run -n 4 -- coroutines
//
// A callback of a Work must not use the communicator of that Work. So the callback here puts the
// coroutine into a queue, and the thread that empties the queue resumes it.
#include <hocket/hocket.h>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "check.h"

namespace {

// The coroutines that can go on. A resource; any thread may post, and one runs.
class Loop {
 public:
  void post(std::coroutine_handle<> coroutine) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(coroutine);
    changed_.notify_one();
  }
  // Resumes coroutines until `count` conversations have ended, those before this call included.
  void run(int count) {
    while (ended_ < count) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !ready_.empty(); });
      const auto coroutine = ready_.front();
      ready_.pop_front();
      lock.unlock();
      coroutine.resume();
    }
  }
  void count_end() { ++ended_; }  // in the thread that runs

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::coroutine_handle<>> ready_;
  int ended_ = 0;
};

// `co_await Ended(loop, work)` goes on when the call has ended, and throws its error.
class Ended {
 public:
  Ended(Loop& loop, hocket::Work& work) : loop_(loop), work_(work) {}
  bool await_ready() { return work_.test(); }
  void await_suspend(std::coroutine_handle<> coroutine) {
    work_.on_done([&loop = loop_, coroutine] { loop.post(coroutine); });
  }
  void await_resume() { work_.wait(); }

 private:
  Loop& loop_;
  hocket::Work& work_;
};

// A coroutine that the loop counts when it ends. It begins at once.
class Conversation {
 public:
  struct promise_type {
    template <typename... Others>
    explicit promise_type(Loop& loop, Others&...) : loop(loop) {}
    Conversation get_return_object() {
      return Conversation(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept {
      loop.count_end();
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }

    Loop& loop;
    std::exception_ptr error;
  };

  explicit Conversation(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Conversation(Conversation&& other) noexcept
      : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Conversation& operator=(Conversation&&) = delete;
  ~Conversation() {
    if (coroutine_) coroutine_.destroy();
  }
  // Throws the error that ended it.
  void result() const {
    if (coroutine_.promise().error) std::rethrow_exception(coroutine_.promise().error);
  }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

// Sums numbers over all ranks, round after round. Each round needs the last one's result.
Conversation converse(Loop& loop, hocket::Communicator& comm, std::vector<double>& x) {
  for (int round = 0; round < 5; ++round) {
    hocket::Work work = comm.all_reduce_async(x, {.op = hocket::ReduceOp::kAvg});
    co_await Ended(loop, work);
    for (double& element : x) element += comm.rank();
  }
}

}  // namespace

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();

  // One communicator for each conversation, as their calls have no order among themselves.
  constexpr int kConversations = 3;
  std::vector<hocket::Communicator> comms;
  std::vector<std::vector<double>> arrays;
  for (int i = 0; i < kConversations; ++i) {
    comms.push_back(comm.duplicate());
    arrays.emplace_back(1000, i);
  }
  Loop loop;
  std::vector<Conversation> conversations;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    conversations.push_back(converse(loop, comms[i], arrays[i]));
  }
  loop.run(kConversations);
  for (const Conversation& each : conversations) each.result();

  // Each round but the last adds the mean of the ranks; the last one adds the rank.
  const double mean = (comm.size() - 1) / 2.0;
  for (int i = 0; i < kConversations; ++i) {
    examples::expect_equal(arrays[static_cast<std::size_t>(i)][999],
                           i + 4 * mean + comm.rank(),
                           "the number after five rounds");
  }
  if (comm.rank() == 0)
    std::printf("%d conversations of 5 rounds, in one thread\n", kConversations);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
