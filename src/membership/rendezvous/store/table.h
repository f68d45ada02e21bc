// The contents of a store, and the clients that wait: the logic of every store, without sockets or
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/deadline.h"
#include "membership/rendezvous/store/request.h"

namespace hocket::rendezvous {

// A resource; one thread at a time. Requests are answered by a callback: at once, when the awaited
// event happens, or by `expire`. Nothing throws; errors are answers, too.
class Table {
 public:
  using ClientId = std::uint64_t;
  // Must not call the table.
  using Answer = std::function<void(Reply&&)>;

  explicit Table(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void execute(ClientId client, StoreRequest&& request, Answer answer);
  // `rank` of `size` will not come. A client that waits for it in a room of that size, now or
  // later, is refused with `how`. So is every watch of that many ranks.
  void rank_ended(int rank, int size, std::string how);
  // The client is gone: its waits end unanswered and do not count.
  void drop(ClientId client);
  // Answers the waits whose time has run out.
  void expire(base::Deadline::Clock::time_point now);
  base::Deadline next_deadline() const;
  std::size_t waiting() const noexcept { return waiters_.size(); }

 private:
  using Value = std::shared_ptr<const Bytes>;
  using WaiterId = std::uint64_t;
  struct Waiter {
    ClientId client = 0;
    base::Deadline deadline;
    StoreRequest request;
    Answer answer;
    std::set<std::string> missing;  // keys, for get and wait
  };
  using RoomId = std::pair<Op, std::string>;
  // A meeting of ranks that wait for each other. Exists while a rank is in it.
  struct Room {
    int size = 0;
    std::map<int, WaiterId> by_rank;  // ranks that are there
    std::set<int> gave_up;            // ranks that ran out of time, and did not return
  };

  struct Ended {
    int rank, size;
    std::string how;
  };

  Reply set(StoreRequest&& request);
  Reply add(const StoreRequest& request);
  Reply compare_and_set(StoreRequest&& request);
  Reply erase(const StoreRequest& request);
  Reply find(const std::string& key) const;
  void wait_for_keys(ClientId client, StoreRequest&& request, Answer&& answer);
  void enter_room(ClientId client, StoreRequest&& request, Answer&& answer);
  void watch(ClientId client, StoreRequest&& request, Answer&& answer);
  void complete(const RoomId& id);
  // Answers clients that wait in a room for a rank that will not come.
  void refuse_where_missing(const RoomId& id);

  bool put(const std::string& key, Bytes&& bytes);
  Reply full() const;
  bool has_room_for(const StoreRequest& waiting) const;
  void announce(const std::string& key);
  WaiterId add_waiter(ClientId client, StoreRequest&& request, Answer&& answer);
  Waiter take_waiter(WaiterId id);
  Reply timeout_of(const Waiter& waiter) const;

  std::size_t max_bytes_;
  std::size_t used_bytes_ = 0;
  std::unordered_map<std::string, Value> values_;
  WaiterId next_waiter_ = 1;
  std::unordered_map<WaiterId, Waiter> waiters_;
  std::set<std::pair<ClientId, WaiterId>> by_client_;
  std::set<std::pair<base::Deadline::Clock::time_point, WaiterId>> by_deadline_;
  std::unordered_map<std::string, std::set<WaiterId>> by_key_;
  std::map<RoomId, Room> rooms_;
  std::vector<Ended> ended_;  // in the order of their ends
};

}  // namespace hocket::rendezvous
