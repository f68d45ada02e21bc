// Waits for the Work of calls on streams. A call has ended when its stream has passed it.
#pragma once

#include <memory>
#include <optional>

#include "foundation/base/deadline.h"
#include "monitoring/live/long_wait.h"

namespace hocket::call {

class Core;
class Operation;

// A part of a communicator's Core. Any thread of the program may wait. The progress thread calls
// `look_at_streams`.
class StreamWaits {
 public:
  explicit StreamWaits(Core& core) noexcept : core_(core) {}
  StreamWaits(const StreamWaits&) = delete;
  StreamWaits& operator=(const StreamWaits&) = delete;

  // Throws the failure that ended the call, if there is one.
  void check(Operation& operation);
  // Returns whether the stream has passed the call.
  bool test(Operation& operation);
  // Waits until the stream has passed the call. Returns false if the deadline passes first.
  bool wait(Operation& operation, base::Deadline until);
  // Warns if a stream has waited long for a call, because the program may wait for that stream. The
  // caller has the turn.
  void look_at_streams() noexcept;

 private:
  bool has_passed(Operation& operation);
  void await_failed(const Operation& operation) noexcept;

  Core& core_;
  // The operation for which a stream was last seen to wait.
  std::weak_ptr<Operation> held_;
  std::optional<live::LongWait> held_wait_;
};

}  // namespace hocket::call
