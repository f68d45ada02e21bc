#include "simulation.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

namespace hocket::scaling {

using engine::Envelope;
using engine::MessageId;

namespace {

// Messages up to this size are copied when they are sent, so that their sender need not wait. The
// real carriers do the same.
constexpr std::uint64_t kCopiedBytes = 32 * 1024;

// The simulation that runs in this thread, or null. The stand-ins in sizes_core.cc charge their
// time to it, because the signatures of core have no parameter for a simulation.
thread_local Simulation* the_running = nullptr;

Time picoseconds(double microseconds) {
  return static_cast<Time>(std::llround(microseconds * 1e6));
}

}  // namespace

Cluster cluster_of(int ranks, int per_host) {
  Cluster cluster;
  for (int rank = 0; rank < ranks; ++rank) cluster.hosts.push_back(rank / per_host);
  return cluster;
}

// The carrier of one rank: it passes each call to the simulation, with the rank. See
// engine::PointToPoint.
class Simulation::Carrier final : public engine::PointToPoint {
 public:
  Carrier(Simulation& all, int rank) : all_(all), rank_(rank) {}
  MessageId send(const Envelope& to, std::span<const std::byte> bytes) override {
    return MessageId{all_.send(rank_, to, bytes)};
  }
  MessageId recv(const Envelope& from, std::span<std::byte> bytes) override {
    return MessageId{all_.recv(rank_, from, bytes)};
  }
  bool test(MessageId message, Envelope*) override {
    return all_.test(static_cast<std::uint32_t>(message));
  }
  bool progress() override { return false; }
  void cancel(MessageId message) noexcept override {
    all_.cancel(static_cast<std::uint32_t>(message));
  }

 private:
  Simulation& all_;
  int rank_;
};

Simulation::Costs Simulation::costs_of(const algorithm::NetworkCosts& network) {
  return {.latency = picoseconds(network.alpha - 2 * network.overhead),
          .overhead = picoseconds(network.overhead),
          .per_byte = picoseconds(network.beta)};
}

Simulation::Simulation(const Cluster& cluster, Bytes bytes)
    : hosts_(cluster.hosts),
      within_(costs_of(cluster.within)),
      across_(costs_of(cluster.across)),
      gamma_(picoseconds(cluster.across.gamma)),
      moves_(bytes == Bytes::kMove),
      ranks_(cluster.hosts.size()),
      near_out_(cluster.hosts.size()),
      near_in_(cluster.hosts.size()) {
  int hosts = 0;
  for (const int host : hosts_) hosts = std::max(hosts, host + 1);
  out_.resize(static_cast<std::size_t>(hosts));
  in_.resize(static_cast<std::size_t>(hosts));
  for (int r = 0; r < ranks(); ++r) carriers_.push_back(std::make_unique<Carrier>(*this, r));
}

Simulation::~Simulation() = default;

engine::PointToPoint& Simulation::carrier(int rank) {
  return *carriers_[static_cast<std::size_t>(rank)];
}

void Simulation::charge(std::size_t bytes) noexcept {
  if (the_running == nullptr) return;
  Simulation& self = *the_running;
  self.rank(self.running_).clock += bytes * self.gamma_;
}

// --- Slots, flights and lists of them -----------------------------------------------------------

std::uint32_t Simulation::take_slot(int number) {
  Rank& owner = rank(number);
  most_slots_ = std::max(most_slots_, ++owner.slots);
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t id = free_slots_.back();
  free_slots_.pop_back();
  slots_[id] = Slot{};
  return id;
}

void Simulation::free_slot(std::uint32_t id) {
  --rank(slots_[id].rank).slots;
  free_slots_.push_back(id);
}

std::uint32_t Simulation::take_flight() {
  if (free_flights_.empty()) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t id = free_flights_.back();
  free_flights_.pop_back();
  return id;
}

template <typename Pool>
void Simulation::append(Pool& pool, List& list, std::uint32_t id) {
  pool[id].next = kNone;
  if (list.first == kNone) {
    list.first = id;
  } else {
    pool[list.last].next = id;
  }
  list.last = id;
}

// Removes the first entry of `list` for which `fits` is true, and returns its index. Returns kNone
// if there is no such entry.
template <typename Pool, typename Fits>
std::uint32_t Simulation::remove(Pool& pool, List& list, const Fits& fits) {
  std::uint32_t before = kNone;
  for (std::uint32_t id = list.first; id != kNone; before = id, id = pool[id].next) {
    if (!fits(pool[id])) continue;
    const std::uint32_t after = pool[id].next;
    (before == kNone ? list.first : pool[before].next) = after;
    if (list.last == id) list.last = before;
    return id;
  }
  return kNone;
}

// --- Actions of ranks ---------------------------------------------------------------------------

std::uint32_t Simulation::send(int from, const Envelope& to, std::span<const std::byte> bytes) {
  if (++messages_ > most_messages_) throw TooLong("more messages than were allowed");
  const Costs& cost = costs(from, to.peer);
  Rank& sender = rank(from);
  sender.clock += cost.overhead;
  const std::uint32_t id = take_slot(from);
  Slot& slot = slots_[id];
  slot.rank = from;
  slot.complete = bytes.size() <= kCopiedBytes;
  const std::uint32_t flight = take_flight();
  Flight& moving = flights_[flight];
  moving.tag = to.tag;
  moving.bytes = bytes.size();
  moving.from = from;
  moving.to = to.peer;
  moving.slot = slot.complete ? kNone : id;
  if (moves_) moving.payload.assign(bytes.begin(), bytes.end());
  events_.push({sender.clock, flight, What::kInject});
  return id;
}

std::uint32_t Simulation::recv(int to, const Envelope& from, std::span<std::byte> bytes) {
  const std::uint32_t id = take_slot(to);
  Slot& slot = slots_[id];
  slot.tag = from.tag;
  slot.bytes = bytes.size();
  slot.to = bytes.data();
  slot.rank = to;
  slot.peer = from.peer;
  Rank& receiver = rank(to);
  const std::uint32_t flight = remove(flights_, receiver.early, [&](const Flight& message) {
    return message.from == from.peer && message.tag == from.tag;
  });
  if (flight == kNone) {
    append(slots_, receiver.posted, id);
    return id;
  }
  fill(slot, flights_[flight]);
  free_flights_.push_back(flight);
  slot.complete = slot.costs = true;
  return id;
}

bool Simulation::test(std::uint32_t id) {
  Slot& slot = slots_[id];
  Rank& owner = rank(slot.rank);
  if (!slot.complete) {
    if (!std::exchange(slot.awaited, true)) ++owner.awaited;
    return false;
  }
  if (slot.costs) owner.clock += costs(slot.rank, slot.peer).overhead;
  free_slot(id);
  return true;
}

// Called if an error ends a rank before its message is complete.
void Simulation::cancel(std::uint32_t id) {
  remove(
      slots_, rank(slots_[id].rank).posted, [&](const Slot& slot) { return &slot == &slots_[id]; });
  free_slot(id);
}

void Simulation::fill(Slot& slot, Flight& flight) const {
  if (slot.bytes != flight.bytes) {
    throw std::logic_error(fmt::format("rank {} sent rank {} {} bytes, which expected {}",
                                       flight.from,
                                       flight.to,
                                       flight.bytes,
                                       slot.bytes));
  }
  if (!flight.payload.empty()) std::memcpy(slot.to, flight.payload.data(), flight.bytes);
  flight.payload.clear();
}

// --- Actions of the network ---------------------------------------------------------------------

void Simulation::inject(std::uint32_t id, Time now) {
  const Flight& message = flights_[id];
  const bool near = same_host(message.from, message.to);
  const Costs& cost = near ? within_ : across_;
  Port& port = near ? near_out_[static_cast<std::size_t>(message.from)]
                    : out_[static_cast<std::size_t>(host(message.from))];
  if (!near) between_hosts_ += message.bytes;
  const Time begin = std::max(now, port.free);
  port.free = begin + message.bytes * cost.per_byte;
  if (message.slot != kNone) events_.push({port.free, message.slot, What::kSent});
  events_.push({begin + cost.latency, id, What::kHead});
}

void Simulation::reach(std::uint32_t id, Time now) {
  const Flight& message = flights_[id];
  const bool near = same_host(message.from, message.to);
  Port& port = near ? near_in_[static_cast<std::size_t>(message.to)]
                    : in_[static_cast<std::size_t>(host(message.to))];
  port.free = std::max(now, port.free) + message.bytes * (near ? within_ : across_).per_byte;
  if (port.free == now) {
    arrive(id, now);
  } else {
    events_.push({port.free, id, What::kArrive});
  }
}

void Simulation::arrive(std::uint32_t id, Time now) {
  Flight& message = flights_[id];
  Rank& receiver = rank(message.to);
  const std::uint32_t slot = remove(slots_, receiver.posted, [&](const Slot& posted) {
    return posted.peer == message.from && posted.tag == message.tag;
  });
  if (slot == kNone) {
    append(flights_, receiver.early, id);
    return;
  }
  fill(slots_[slot], message);
  free_flights_.push_back(id);
  complete(slot, now, true);
}

// A sleeping rank handles completions in the order of their arrival. It continues after the last
// one that it waits for.
void Simulation::complete(std::uint32_t id, Time now, bool costs_overhead) {
  Slot& slot = slots_[id];
  slot.complete = true;
  if (!slot.awaited) {
    slot.costs = costs_overhead;
    return;
  }
  Rank& owner = rank(slot.rank);
  owner.clock = std::max(owner.clock, now);
  if (costs_overhead) owner.clock += costs(slot.rank, slot.peer).overhead;
  if (--owner.awaited == 0) {
    events_.push({owner.clock, static_cast<std::uint32_t>(slot.rank), What::kStep});
  }
}

// Runs the rank's task until it waits or ends. An algorithm always waits until all of several
// messages are complete, see completed() in engines/algorithm/messages.h. So the rank continues
// when `awaited` is 0.
void Simulation::step(int number) {
  running_ = number;
  Rank& self = rank(number);
  if (self.task.step() == engine::Poll::kDone) {
    self.task = {};
    --unfinished_;
  } else if (self.awaited == 0) {
    events_.push({self.clock, static_cast<std::uint32_t>(number), What::kStep});
  }
}

void Simulation::handle(const Event& event) {
  switch (event.what) {
    case What::kStep:
      return step(static_cast<int>(event.id));
    case What::kInject:
      return inject(event.id, event.time);
    case What::kHead:
      return reach(event.id, event.time);
    case What::kArrive:
      return arrive(event.id, event.time);
    case What::kSent:
      return complete(event.id, event.time, false);
  }
}

double Simulation::run(const std::function<engine::Task(int)>& start, std::uint64_t most_messages) {
  most_messages_ = most_messages;
  unfinished_ = ranks();
  for (int r = 0; r < ranks(); ++r) {
    rank(r).task = start(r);
    events_.push({0, static_cast<std::uint32_t>(r), What::kStep});
  }
  struct Running {
    explicit Running(Simulation* self) { the_running = self; }
    ~Running() {
      // If an error has ended the run, some tasks are left.
      for (Rank& each : the_running->ranks_) each.task = {};
      the_running = nullptr;
    }
  } const running(this);
  while (!events_.empty()) handle(events_.pop());
  if (unfinished_ != 0) {
    throw std::logic_error(fmt::format("{} ranks wait for each other for ever", unfinished_));
  }
  Time last = 0;
  for (const Rank& each : ranks_) last = std::max(last, each.clock);
  return static_cast<double>(last) / 1e6;
}

}  // namespace hocket::scaling
