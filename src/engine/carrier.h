// What brings messages from other hosts, as the job sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "foundation/base/deadline.h"

namespace hocket::engine {

// What is known of another rank of the job.
enum class Fate : std::uint8_t { kHere, kLeft, kDied, kCutOff };

// What a carrier is given of the job once that is there. A value; any thread may call all of it,
// and it holds until the carrier is retired.
struct CarrierLinks {
  std::function<void()> wake;  // something has come in: whoever waits on this rank is to look
  std::function<void()> help;  // somebody has to call `progress`, or to ask `take_broken`
  std::function<Fate(int rank)> fate;
};

// A resource, one a process and job, for all of its groups. Any thread.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Once, after the ranks have met.
  virtual void attach(CarrierLinks links) = 0;
  // "by NAME: why there is no way to that rank; what to do": the end of "cannot reach rank 3 ...".
  // Empty: there may be one.
  virtual std::string why_unreachable(int rank) = 0;

  // A descriptor that is readable when something may have come since `arm` said true.
  virtual int event_fd() const noexcept = 0;
  // False where something has come already.
  virtual bool arm() noexcept = 0;
  // Moves what is under way; true when something moved.
  virtual bool progress() noexcept = 0;
  // Whether somebody has to call `progress`, for what counts as sent and has not left.
  virtual bool pending() const noexcept = 0;
  // The ranks that it cannot reach any more, each once.
  virtual std::vector<int> take_broken() = 0;

  // Waits until what was sent has left; false at the deadline.
  virtual bool flush(base::Deadline deadline) noexcept = 0;
  // From now on nothing happens any more.
  virtual void retire() noexcept = 0;
  // The same where nobody is at work in it, and nobody can be reached any more; false: ask again.
  virtual bool try_retire() noexcept = 0;
};

}  // namespace hocket::engine
