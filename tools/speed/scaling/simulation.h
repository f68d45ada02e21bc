// Simulates many ranks of many hosts in one thread. The algorithms' real code runs over a model of
// the network. Only time is simulated.
//
// A rank is a processor with its own clock. A message passes through these stages, each of which
// adds the time in the second line:
//
//   sender's processor   sender's port   network   receiver's port   receiver's processor
//   `overhead`           beta a byte     latency   beta a byte       `overhead`
//
// At each port a message waits until the earlier messages have passed. If no other message is under
// way, the stages take alpha + beta * bytes together, as in engines/algorithm/cost_model.h. All
// ranks of a host share the host's port to the network. For messages within a host, each rank has a
// port of its own. If the program is linked with sizes_core.cc instead of core, each byte that is
// folded or copied costs gamma.
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

// The placement of the ranks, and the costs of messages within and between hosts. A value.
struct Cluster {
  std::vector<int> hosts;  // the host of each rank; hosts are numbered from 0
  algorithm::NetworkCosts within = algorithm::kSharedMemory;
  algorithm::NetworkCosts across = algorithm::kTcp;
};

// Places the first `per_host` ranks on host 0, the next ones on host 1, and so on.
Cluster cluster_of(int ranks, int per_host);

// Thrown if a run needs more messages than its caller allows.
struct TooLong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A resource, for one run. One thread uses it.
class Simulation {
 public:
  enum class Bytes : bool {
    kMove,   // messages carry the bytes of their senders' memory
    kCount,  // messages have only a size; memory is never touched
  };
  Simulation(const Cluster& cluster, Bytes bytes);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  int ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  engine::PointToPoint& carrier(int rank);

  // Starts the task `start(rank)` of each rank at time 0, and runs all tasks to their ends. Returns
  // the microseconds until the last one ends. Throws TooLong if they send more than
  // `most_messages`, and std::logic_error if ranks wait for each other for ever.
  double run(const std::function<engine::Task(int)>& start, std::uint64_t most_messages = ~0ull);

  std::uint64_t messages() const noexcept { return messages_; }
  // Bytes of all messages between hosts.
  std::uint64_t bytes_between_hosts() const noexcept { return between_hosts_; }
  // The largest number of unfinished messages that one rank had at one time.
  std::uint32_t most_of_a_rank() const noexcept { return most_slots_; }

  // Charges the cost of folding or copying `bytes` to the rank whose task this thread runs. Does
  // nothing outside of a run.
  static void charge(std::size_t bytes) noexcept;

 private:
  class Carrier;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // A rank's send or receive, until `test` reports its completion or `cancel` ends it.
  struct Slot {
    engine::Tag tag = 0;
    std::uint64_t bytes = 0;
    std::byte* to = nullptr;     // a receive's memory
    int rank = 0;                // the rank that sends or receives
    int peer = 0;                // a receive's sender
    std::uint32_t next = kNone;  // the next receive in `Rank::posted`
    bool complete = false;
    bool costs = false;    // `test` still charges the overhead of the receive to the rank
    bool awaited = false;  // the rank sleeps until this message is complete
  };
  // A message in the network, or a message that waits for its receive.
  struct Flight {
    engine::Tag tag = 0;
    std::uint64_t bytes = 0;
    int from = 0;
    int to = 0;
    std::uint32_t slot = kNone;  // the send's slot, if the sender waits until the message has left
    std::uint32_t next = kNone;  // the next message in `Rank::early`
    std::vector<std::byte> payload;
  };
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Rank {
    Time clock = 0;
    engine::Task task;
    std::uint32_t awaited = 0;  // slots that the rank sleeps for
    std::uint32_t slots = 0;    // slots in use
    List posted;                // receives without a message
    List early;                 // messages without a receive
  };
  // One direction of a port.
  struct Port {
    Time free = 0;  // when the last message so far has passed
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
  std::vector<Port> out_, in_;            // the hosts' ports to the network
  std::vector<Port> near_out_, near_in_;  // the ranks' ports within their hosts
  EventQueue events_;
  int running_ = -1;
  int unfinished_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t most_messages_ = 0;
  std::uint64_t between_hosts_ = 0;
  std::uint32_t most_slots_ = 0;
};

}  // namespace hocket::scaling
