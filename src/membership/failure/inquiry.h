// Why a wait has not ended: who is lost, who refused the call or called another, who has not come.
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
};
// What texts call it: "recv of float32[3] from rank 1 tag 0".
std::string describe(const MessageCall& call);

// What a wait waits for. A value for the length of the wait.
struct Awaited {
  std::uint64_t sequence = 0;  // a collective's number; 0: a message
  int peer = -1;               // a message's
  const MessageCall* message = nullptr;
};

// Until when one wait does not believe a loss that it has heard of: what was sent before may still
// come. A value.
struct Doubt {
  std::optional<base::Deadline> until;
  std::uint64_t came = 0;  // see engine::PointToPoint::owed
};

// A resource: one rank's view of its group, for the group's life. One thread at a time.
class Inquiry {
 public:
  // Whether the user wants the waiting thread to stop; false in threads that are not the user's.
  using Interrupted = std::function<bool()>;

  Inquiry(control::GroupControl& group, engine::PointToPoint& messages, Interrupted interrupted)
      : group_(group),
        messages_(messages),
        interrupted_(std::move(interrupted)),
        core_dumps_(group) {}

  // Looks at everything once. What `doubt` has been told of is believed when its time is over.
  Verdict look(const Awaited& awaited, Doubt& doubt);

  // When to look again though nobody has rung.
  static base::Deadline next_look() noexcept { return CoreDumps::next(); }

  // A rank that has ended and is needed for this. Absent, and cheap, where none has ended since all
  // were last found to be there.
  std::optional<control::Failure> find_loss(const Awaited& awaited) {
    if (group_.host().losses() == losses_seen_) return std::nullopt;
    return find_new_loss(awaited);
  }
  // Whether `find_loss` has anything to look at.
  bool has_news() const noexcept { return group_.host().losses() != losses_seen_; }

  // A rank that is needed for this, which the program waits for, and has ended the task that this
  // rank is in.
  std::optional<control::Failure> find_returned(const Awaited& awaited) const;

  // That the call or message has taken longer than `allowed`: who is missing.
  control::Failure lateness(const Awaited& awaited, Duration allowed) const;
  // A message that waits to be received, from where this one is to come, under another tag: "a
  // message with tag 5 from rank 1 waits"; empty: none. By the thread that may use the messages.
  std::string under_another_tag(const Awaited& awaited) const;
  // That this rank was interrupted.
  control::Failure interruption() const;

 private:
  Verdict find(const Awaited& awaited);
  std::optional<control::Failure> find_new_loss(const Awaited& awaited);
  bool has_finished(const Awaited& awaited, int member) const;
  bool is_needed(const Awaited& awaited, int member, bool sudden, int living_before) const;

  control::GroupControl& group_;
  engine::PointToPoint& messages_;
  const Interrupted interrupted_;
  CoreDumps core_dumps_;
  std::uint32_t losses_seen_ = 0;
};

}  // namespace hocket::failure
