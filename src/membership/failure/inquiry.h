// Finds out why a wait has not ended: a rank is lost, has refused the call, has made a different
// call, or has not come.
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
  bool is_object = false;  // it has several parts; the envelope is that of the first one
};
// Describes a message in a text for people, such as "recv of float32[3] from rank 1 tag 0".
std::string describe(const MessageCall& call);

// The collective or message that a rank waits for. A value, valid during the wait.
struct Awaited {
  std::uint64_t sequence = 0;               // a collective's number; 0: a message
  engine::Kind kind = engine::Kind::kNone;  // of a collective without a record
  int peer = -1;                            // of a message: the other rank, or engine::kAnyPeer
  const MessageCall* message = nullptr;
};

// The time until which one wait does not report the loss of a rank, because the rank's last
// messages may still arrive. A value.
struct Doubt {
  std::optional<base::Deadline> until;
  std::uint64_t came = 0;  // see engine::PointToPoint::owed
};

// A resource: one rank's view of its group, which lives as long as the group. One thread at a time
// uses it.
class Inquiry {
 public:
  // Returns whether the user wants the waiting thread to stop. Always false in hocket's own
  // threads.
  using Interrupted = std::function<bool()>;

  Inquiry(control::GroupControl& group, engine::PointToPoint& messages, Interrupted interrupted)
      : group_(group),
        messages_(messages),
        interrupted_(std::move(interrupted)),
        core_dumps_(group) {}

  // Checks once whether anything prevents the end of the wait. A loss is reported only after the
  // time in `doubt`.
  Verdict look(const Awaited& awaited, Doubt& doubt);

  // Returns the time at which a waiting thread should look again, even if no doorbell rings.
  static base::Deadline next_look() noexcept { return CoreDumps::next(); }

  // Finds a lost rank that this wait needs. Absent if there is none. It is cheap if no rank was
  // lost since the last call that found all members alive.
  std::optional<control::Failure> find_loss(const Awaited& awaited) {
    if (group_.host().liveness.losses() == losses_seen_) return std::nullopt;
    return find_new_loss(awaited);
  }
  // Returns whether there may be a loss for `find_loss` to find.
  bool has_news() const noexcept { return group_.host().liveness.losses() != losses_seen_; }

  // Finds a rank that this wait needs, but that has already ended the task in which this rank is.
  std::optional<control::Failure> find_returned(const Awaited& awaited) const;

  // Makes the failure of a call or message that took longer than `allowed`. It names the ranks that
  // are missing.
  control::Failure lateness(const Awaited& awaited, Duration allowed) const;
  // Makes the failure of a wait that the user of this rank has interrupted.
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

// Describes a message from the expected source that waits under another tag, such as "a message
// with tag 5 from rank 1 waits". Empty if there is none. Only the thread that may use `messages`
// calls it.
std::string under_another_tag(const Awaited& awaited, engine::PointToPoint& messages);

}  // namespace hocket::failure
