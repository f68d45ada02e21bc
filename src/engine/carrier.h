// The interface of a carrier: it brings messages from other hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foundation/base/deadline.h"

namespace hocket::engine {

// The known state of another rank of the job.
enum class Fate : std::uint8_t { kHere, kLeft, kDied, kCutOff };

// The job's functions that a carrier calls. A value. Any thread may call them, until the carrier is
// retired.
struct CarrierLinks {
  std::function<void()> wake;  // something has arrived: wakes the threads that wait on this rank
  std::function<void()> help;  // asks some thread to call `progress` or `take_broken`
  std::function<Fate(int rank)> fate;
};

// Why there is no way to a rank. A value.
struct ClosedWay {
  std::string text;         // "by NAME: the reason; what to do"; empty: the rank may be reachable
  bool is_awaited = false;  // all that is known is that no message has come from there
};

// A resource, one for each process and job, for all of its groups. Any thread may use it.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Called once, after the ranks have met.
  virtual void attach(CarrierLinks links) = 0;
  // Returns why that rank cannot be reached. A trial, see below, counts as failed until it ends.
  virtual ClosedWay why_unreachable(int rank) = 0;

  // Returns a descriptor that becomes readable when something may have arrived since `arm` returned
  // true.
  virtual int event_fd() const noexcept = 0;
  // Returns false if something has arrived already.
  virtual bool arm() noexcept = 0;
  // Moves operations in progress. Returns true if something moved.
  virtual bool progress() noexcept = 0;
  // Returns whether some thread has to call `progress`, because messages that count as sent have
  // not left.
  virtual bool pending() const noexcept = 0;
  // Returns the ranks that it can no longer reach. Each rank is returned once.
  virtual std::vector<int> take_broken() = 0;

  // Waits until all messages have left. Returns false at the deadline.
  virtual bool flush(base::Deadline deadline) noexcept = 0;
  // Stops all activity.
  virtual void retire() noexcept = 0;
  // Does the same if no thread uses the carrier and no rank can be reached. Returns false to be
  // asked again.
  virtual bool try_retire() noexcept = 0;

  // Begins to send a trial message to each of these ranks, which do the same with `own_rank`, this
  // one.
  virtual void try_ways(int own_rank, const std::vector<int>& ranks) = 0;
  // Moves the trials. Returns true once all have ended: the messages have left and the other ranks'
  // have come, or a way has turned out to be closed.
  virtual bool are_ways_tried() = 0;
};

}  // namespace hocket::engine
