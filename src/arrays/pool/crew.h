// Threads that wait for jobs. All start a job together, or each starts when the thread before has
// begun.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "hocket/device_pool.h"

namespace hocket::pool {

// A resource: `size` threads, numbered from 0. Call `run` from any other thread, one call at a
// time. The destructor waits for the threads.
class Crew {
 public:
  using Job = std::function<void(int member)>;
  using Start = PoolCallOptions::Start;

  // Each thread first calls `begin`; the constructor throws its errors.
  Crew(int size, const Job& begin);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const noexcept { return static_cast<int>(threads_.size()); }
  bool is_member(std::thread::id thread) const noexcept;
  // Runs `job` in each thread of `members`. Returns when all have ended, and throws the first
  // failure. `stop` is called once, when a member fails or the user interrupts, in the thread that
  // notices it. It should end the calls in which the other members wait. With Start::kInTurn each
  // member begins when the member before it has called `begun` or ended.
  void run(std::span<const int> members,
           const Job& job,
           const std::function<void(const std::string& reason)>& stop,
           Start start = Start::kTogether);
  // Lets the next member begin. Called by a member, within its job.
  void begun(int member);

 private:
  void work(int member, const Job& begin);
  void do_one(int member, const Job& job);
  void start_next(int member);
  bool wait();

  std::mutex calls_;  // held for a whole run
  std::mutex mutex_;  // guards all below
  std::condition_variable start_, end_;
  std::vector<const Job*> jobs_;  // by member; null: none
  // by member: the member that begins after this one; kNobody: none, or it has begun
  std::vector<int> next_;
  const Job* job_ = nullptr;  // job of the current run
  const std::function<void(const std::string&)>* stop_ = nullptr;
  std::exception_ptr first_;
  int pending_ = 0;
  bool stopped_ = false;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace hocket::pool
