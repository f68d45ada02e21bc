// Finds out why a wait has not ended: a rank is lost, refused the call, made a different one, or
// has not come.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/point_to_point.h"
#include "foundation/base/deadline.h"
#include "membership/control/group.h"
#include "membership/failure/core_dumps.h"
#include "membership/failure/records.h"

namespace hocket::failure {

// A message between two ranks. A value.
struct MessageCall {
  engine::Envelope envelope{.peer = engine::kAnyPeer};
  bool sends = false;
  bool probes = false;
  bool is_object = false;  // the envelope is that of its first part
};
// The description in texts: "recv of float32[3] from rank 1 tag 0".
std::string describe(const MessageCall& call);

// The collective or message that a wait waits for. A value for the length of the wait.
struct Awaited {
  std::uint64_t sequence = 0;               // a collective's number; 0: a message
  engine::Kind kind = engine::Kind::kNone;  // of a collective that has no record yet
  int peer = -1;                            // a message's
  const MessageCall* message = nullptr;
};

// The time until which one wait ignores the loss of a rank, as its last messages may still arrive.
// A value.
struct Doubt {
  std::optional<base::Deadline> until;
  std::uint64_t came = 0;  // see engine::PointToPoint::owed
};

// A resource: one rank's view of its group, for the group's life. One thread at a time.
class Inquiry {
 public:
  // True if the user wants the waiting thread to stop; false in threads that are not the user's.
  using Interrupted = std::function<bool()>;

  Inquiry(control::GroupControl& group, engine::PointToPoint& messages, Interrupted interrupted)
      : group_(group),
        messages_(messages),
        interrupted_(std::move(interrupted)),
        core_dumps_(group) {}

  // Checks everything once. A loss is reported when the time in `doubt` is over.
  Verdict look(const Awaited& awaited, Doubt& doubt);

  // The time of the next look, even without a ring of the doorbell.
  static base::Deadline next_look() noexcept { return CoreDumps::next(); }

  // Finds a rank that has ended and is needed for this wait. Absent, and cheap, if no rank has
  // ended since the last look that found all alive.
  std::optional<control::Failure> find_loss(const Awaited& awaited) {
    if (group_.host().losses() == losses_seen_) return std::nullopt;
    return find_new_loss(awaited);
  }
  // True if `find_loss` has anything to check.
  bool has_news() const noexcept { return group_.host().losses() != losses_seen_; }

  // Finds a rank that is needed for a call that the program waits for, and that has ended the task
  // in which this rank is.
  std::optional<control::Failure> find_returned(const Awaited& awaited) const;

  // The failure of a call or message that took longer than `allowed`. It names a missing rank.
  control::Failure lateness(const Awaited& awaited, Duration allowed) const;
  // The failure of a wait that this rank's user interrupted.
  control::Failure interruption() const;

 private:
  Verdict find(const Awaited& awaited);
  std::optional<control::Failure> find_new_loss(const Awaited& awaited);
  control::Failure loss_in(const Awaited& awaited, control::Cause cause, int member) const;
  bool has_finished(const Awaited& awaited, int member) const;
  bool is_needed(const Awaited& awaited, int member, bool sudden, int living_before) const;

  control::GroupControl& group_;
  engine::PointToPoint& messages_;
  const Interrupted interrupted_;
  CoreDumps core_dumps_;
  std::uint32_t losses_seen_ = 0;
};

// Describes a message from the expected source that waits under another tag: "a message with tag 5
// from rank 1 waits"; empty: none. Only the thread that may use the messages calls it.
std::string under_another_tag(const Awaited& awaited, engine::PointToPoint& messages);

}  // namespace hocket::failure
