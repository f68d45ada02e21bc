// The interface of a carrier, which moves messages between hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foundation/base/deadline.h"

namespace hocket::engine {

// The state of another rank of the job, as far as this process knows.
enum class Fate : std::uint8_t { kHere, kLeft, kDied, kCutOff };

// The functions of the job that a carrier calls, on any thread, until it is retired. A value.
struct CarrierLinks {
  std::function<void()> wake;  // after an arrival: wakes the waiting threads of this rank
  std::function<void()> help;  // asks some thread to call `progress` or `take_broken`
  std::function<Fate(int rank)> fate;
};

// The reason why messages cannot reach a rank. A value.
struct ClosedWay {
  std::string text;         // "by NAME: the reason; what to do"; empty: the rank may be reachable
  bool is_awaited = false;  // the only reason: no message of the rank has arrived
};

// Moves messages between this rank and the ranks of other hosts. A resource: a process has one for
// each job, and all groups use it. Any thread may use it.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Called once, after the ranks have met.
  virtual void attach(CarrierLinks links) = 0;
  // Returns why that rank cannot be reached. Before its trial has ended (see `try_ways`), the rank
  // counts as unreachable.
  virtual ClosedWay why_unreachable(int rank) = 0;

  // Returns a descriptor for poll(2). A thread calls `arm` before it sleeps on the descriptor. The
  // descriptor becomes readable when something may have arrived since `arm` returned true.
  virtual int event_fd() const noexcept = 0;
  // Prepares the descriptor for a sleep. Returns false if something has arrived already.
  virtual bool arm() noexcept = 0;
  // Moves operations in progress. Returns true if something moved.
  virtual bool progress() noexcept = 0;
  // Returns whether some thread has to call `progress`. This is so while a message that counts as
  // sent has not yet left this rank.
  virtual bool pending() const noexcept = 0;
  // Returns the ranks whose connection has broken. Each rank is returned once.
  virtual std::vector<int> take_broken() = 0;

  // Waits until all messages have left. Returns false at the deadline.
  virtual bool flush(base::Deadline deadline) noexcept = 0;
  // Stops all activity.
  virtual void retire() noexcept = 0;
  // Like `retire`, for a rank whose peers have all died. Does nothing and returns false if another
  // thread uses the carrier; the caller then tries again.
  virtual bool try_retire() noexcept = 0;

  // Starts a trial of the connection to each of `ranks`, by sending it a message. Each of these
  // ranks sends a message to this rank too. `own_rank` is the number of this rank.
  virtual void try_ways(int own_rank, const std::vector<int>& ranks) = 0;
  // Makes progress on the trials. Returns true once all have ended. A trial ends when this rank's
  // message has left and the other rank's message has arrived. It also ends when the other rank
  // proves unreachable.
  virtual bool are_ways_tried() = 0;
};

}  // namespace hocket::engine
