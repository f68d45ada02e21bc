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

// A resource. One thread at a time uses it. A callback gets the reply to a request: at once, when
// the awaited event happens, or from `expire`. Nothing throws, because errors are replies too.
class Table {
 public:
  using ClientId = std::uint64_t;
  // Gets the reply to a request. It must not call the table.
  using Answer = std::function<void(Reply&&)>;

  explicit Table(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  void execute(ClientId client, StoreRequest&& request, Answer answer);
  // Records that `rank` of `size` will not come. A client that waits for it in a room of that size,
  // now or later, is refused with `how`. So is every watch of that many ranks.
  void rank_ended(int rank, int size, std::string how);
  // Removes the waits of a client that is gone. They get no answers.
  void drop(ClientId client);
  // Answers the waits whose deadline has passed.
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
    std::set<std::string> missing;  // for get and wait: the keys that are not set yet
  };
  using RoomId = std::pair<Op, std::string>;
  // An exchange or a barrier in which ranks wait for each other. It exists while some rank waits.
  struct Room {
    int size = 0;
    std::map<int, WaiterId> by_rank;  // the ranks that wait
    std::set<int> gave_up;            // ranks whose deadline passed, and that have not come again
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
  // Refuses all clients in a room if the room waits for a rank that will not come.
  void refuse_where_missing(const RoomId& id);

  bool put(const std::string& key, Bytes&& bytes);
  Reply full() const;
  bool has_room_for(const StoreRequest& waiting) const;
  void announce(const std::string& key);
  WaiterId add_waiter(ClientId client, StoreRequest&& request, Answer&& answer);
  Waiter take_waiter(WaiterId id);
  std::vector<Waiter> take_members(const RoomId& id);
  static void answer_all(const std::vector<Waiter>& waiters, const Reply& reply);
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
