// Threads that wait for jobs, and do them all at once.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace hocket::pool {

// A resource: `size` threads, numbered from 0. `run` from any thread but its own, one call after
// the other. Destroying it waits for the threads.
class Crew {
 public:
  using Job = std::function<void(int member)>;

  // `begin` is the first that each thread does; what it throws, the constructor throws.
  Crew(int size, const Job& begin);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const noexcept { return static_cast<int>(threads_.size()); }
  bool is_member(std::thread::id thread) const noexcept;
  // Runs `job` in each thread of `members`; returns when all have ended, and throws what the first
  // that failed threw. `stop` is called once, as soon as one fails or the user interrupts, in
  // whichever thread finds that; it should end what the others wait for.
  void run(std::span<const int> members,
           const Job& job,
           const std::function<void(const std::string& reason)>& stop);

 private:
  void work(int member, const Job& begin);
  void do_one(int member, const Job& job);
  bool wait();

  std::mutex calls_;  // held for a whole run
  std::mutex mutex_;  // guards all below
  std::condition_variable start_, end_;
  std::vector<const Job*> jobs_;  // by member; null: none
  const std::function<void(const std::string&)>* stop_ = nullptr;
  std::exception_ptr first_;
  int pending_ = 0;
  bool stopped_ = false;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace hocket::pool
