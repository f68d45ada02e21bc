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

// A resource, one for each process and job, for all of its groups. Any thread may use it.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Called once, after the ranks have met.
  virtual void attach(CarrierLinks links) = 0;
  // Returns the end of the message "cannot reach rank 3 ...": "by NAME: the reason; what to do".
  // Empty: the rank may be reachable.
  virtual std::string why_unreachable(int rank) = 0;

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
};

}  // namespace hocket::engine
