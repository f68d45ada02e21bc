// The service of a window: a thread for ranks that cannot reach this rank's memory directly.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "interfaces/mpi/windows/access.h"

namespace hocket::mpi {

// A resource: the thread of one rank and window. It sleeps until a request comes. While a rank
// waits for a lock, it checks the lock every 50 us. It ends with the window, or when a rank of the
// window dies.
class AccessService {
 public:
  explicit AccessService(Window& window);
  AccessService(const AccessService&) = delete;
  AccessService& operator=(const AccessService&) = delete;
  ~AccessService();

 private:
  // A lock that a rank waits for. An exclusive lock first keeps new holders out, then waits until
  // the present holders have released it.
  struct Waiting {
    int origin;
    std::int32_t number;
    Held kind;
    bool keeps_out = false;
  };

  void run() noexcept;
  void serve();
  Work receive(AccessRequest& into);
  // Waits until the request has come. Meanwhile it grants locks to the ranks that wait for them.
  void await_request(Work& request);
  void carry_out(const AccessRequest& asked, int origin);
  AccessAnswer use_memory(const AccessRequest& asked,
                          int origin,
                          const Runs& runs,
                          const std::vector<std::byte>& data,
                          std::vector<std::byte>& wanted);
  void combine(const AccessRequest& asked,
               int origin,
               const Runs& runs,
               const std::vector<std::byte>& data,
               std::vector<std::byte>& old);
  void require_attached(const Runs& runs) const;
  void grant_locks();
  bool try_to_lock(Waiting& waiting);
  Check check();
  void answer(int origin,
              std::int32_t number,
              const AccessAnswer& answer,
              std::span<std::byte> data);

  Window& window_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_come_ = false;  // guarded by mutex_
  std::deque<Waiting> waiting_;
  std::thread thread_;
};

}  // namespace hocket::mpi
