// Threads that wait for jobs, and do them at once, or each begins when the one before has begun.
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

// A resource: `size` threads, numbered from 0. `run` from any thread but its own, one call after
// the other. Destroying it waits for the threads.
class Crew {
 public:
  using Job = std::function<void(int member)>;
  using Start = PoolCallOptions::Start;

  // `begin` is the first that each thread does; what it throws, the constructor throws.
  Crew(int size, const Job& begin);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const noexcept { return static_cast<int>(threads_.size()); }
  bool is_member(std::thread::id thread) const noexcept;
  // Runs `job` in each thread of `members`; returns when all have ended, and throws what the first
  // that failed threw. `stop` is called once, as soon as one fails or the user interrupts, in
  // whichever thread finds that; it should end what the others wait for. With Start::kInTurn the
  // first begins, and each of the others when the one before it has called `begun`, or has ended.
  void run(std::span<const int> members,
           const Job& job,
           const std::function<void(const std::string& reason)>& stop,
           Start start = Start::kTogether);
  // By a member, within its job.
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
  std::vector<int> next_;         // by member: who begins after it; kNobody: none, or it has
  const Job* job_ = nullptr;      // of the run
  const std::function<void(const std::string&)>* stop_ = nullptr;
  std::exception_ptr first_;
  int pending_ = 0;
  bool stopped_ = false;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace hocket::pool
