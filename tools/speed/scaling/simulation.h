// Simulates many ranks of many hosts in one thread. The algorithms' own code runs, over a model of
// the network. Only time is simulated.
//
// A rank is a processor with its own clock. A message takes this way:
//
//   sender's processor   sender's port   network   receiver's port   receiver's processor
//   `overhead`           beta a byte     latency   beta a byte       `overhead`
//
// It waits for its turn at each port. Alone in the network it takes alpha + beta * bytes in all, as
// in engines/algorithm/cost_model.h. All ranks of a host share its port to the network. Among
// themselves each has its own port. Memory that is folded or copied costs gamma a byte, if core is
// the one of sizes_core.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/point_to_point.h"
#include "engine/task.h"
#include "engines/algorithm/cost_model.h"
#include "event_queue.h"

namespace hocket::scaling {

// A value.
struct Cluster {
  std::vector<int> hosts;  // of each rank, from 0
  algorithm::NetworkCosts within = algorithm::kSharedMemory;
  algorithm::NetworkCosts across = algorithm::kTcp;
};

// `ranks` in blocks of `per_host`.
Cluster cluster_of(int ranks, int per_host);

// More messages than were allowed.
struct TooLong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A resource, for one run. Used by one thread.
class Simulation {
 public:
  enum class Bytes : bool {
    kMove,   // messages carry what their senders' memory holds
    kCount,  // memory is never touched
  };
  Simulation(const Cluster& cluster, Bytes bytes);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  int ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  engine::PointToPoint& carrier(int rank);

  // Runs `start(rank)` of all ranks from time 0 to their ends; microseconds until the last one.
  // Throws TooLong after `most_messages`, std::logic_error where ranks wait for each other.
  double run(const std::function<engine::Task(int)>& start, std::uint64_t most_messages = ~0ull);

  std::uint64_t messages() const noexcept { return messages_; }
  // Bytes that went between hosts.
  std::uint64_t bytes_between_hosts() const noexcept { return between_hosts_; }
  // Messages of one rank that were under way or waited for at one time, at most.
  std::uint32_t most_of_a_rank() const noexcept { return most_slots_; }

  // Charges the cost of folding or copying to the rank that runs in this thread, if there is one.
  static void charge(std::size_t bytes) noexcept;

 private:
  class Carrier;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A rank's message, until `test` says that it is complete.
  struct Slot {
    engine::Tag tag = 0;
    std::uint64_t bytes = 0;
    std::byte* to = nullptr;  // of a receive
    int rank = 0;
    int peer = 0;
    std::uint32_t next = kNone;  // receive that this rank posted after it
    bool complete = false;
    bool costs = false;    // overhead that the rank has yet to pay
    bool awaited = false;  // the rank sleeps until it is complete
  };
  // A message in the network, or waiting at its receiver.
  struct Flight {
    engine::Tag tag = 0;
    std::uint64_t bytes = 0;
    int from = 0;
    int to = 0;
    std::uint32_t slot = kNone;  // of a sender that waits until it has left
    std::uint32_t next = kNone;
    std::vector<std::byte> payload;
  };
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Rank {
    Time clock = 0;
    engine::Task task;
    std::uint32_t awaited = 0;
    std::uint32_t slots = 0;
    List posted;  // receives without a message
    List early;   // messages without a receive
  };
  // One way of one port.
  struct Port {
    Time free = 0;
  };
  struct Costs {
    Time latency = 0;
    Time overhead = 0;
    Time per_byte = 0;
  };
  static Costs costs_of(const algorithm::NetworkCosts& network);

  bool same_host(int a, int b) const noexcept { return host(a) == host(b); }
  int host(int rank) const noexcept { return hosts_[static_cast<std::size_t>(rank)]; }
  Rank& rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
  const Costs& costs(int a, int b) const noexcept { return same_host(a, b) ? within_ : across_; }
  std::uint32_t take_slot(int rank);
  void free_slot(std::uint32_t id);
  std::uint32_t take_flight();
  template <typename Pool>
  static void append(Pool& pool, List& list, std::uint32_t id);
  template <typename Pool, typename Fits>
  static std::uint32_t remove(Pool& pool, List& list, const Fits& fits);

  std::uint32_t send(int from, const engine::Envelope& to, std::span<const std::byte> bytes);
  std::uint32_t recv(int to, const engine::Envelope& from, std::span<std::byte> bytes);
  bool test(std::uint32_t id);
  void cancel(std::uint32_t id);

  void step(int number);
  void inject(std::uint32_t id, Time now);
  void reach(std::uint32_t id, Time now);
  void arrive(std::uint32_t id, Time now);
  void complete(std::uint32_t slot, Time now, bool costs);
  void fill(Slot& slot, Flight& flight) const;
  void handle(const Event& event);

  std::vector<int> hosts_;
  Costs within_;
  Costs across_;
  Time gamma_;
  bool moves_;
  std::vector<std::unique_ptr<Carrier>> carriers_;
  std::vector<Rank> ranks_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::vector<Port> out_, in_;            // of the hosts
  std::vector<Port> near_out_, near_in_;  // of the ranks, within their hosts
  EventQueue events_;
  int running_ = -1;
  int unfinished_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t most_messages_ = 0;
  std::uint64_t between_hosts_ = 0;
  std::uint32_t most_slots_ = 0;
};

}  // namespace hocket::scaling
