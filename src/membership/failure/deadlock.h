// Ranks that wait for each other, so that none of their calls can end.
//
// A rank in a blocking call starts nothing else on the communicator before that call ends. After
// some milliseconds it shows what it waits for, under a number. The number changes with every call,
// and whenever the rank's carrier has moved anything. A set of ranks that wait for nobody outside
// it is a deadlock if nothing is under way between them:
//
//   rank 0   recv from 1    number 7    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//   rank 1   recv from 2    number 5    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//   rank 2   barrier        number 9    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//
// Equal votes prove it. Each voter read every number before its vote, so all calls had begun before
// the first vote. Whatever the ranks sent before, a voter would have found, as it looked
// afterwards. The first rank to move anything after its vote would need another's move, made after
// the first rank had looked. That move changes the other's number, which its own vote holds: the
// votes differ.
//
// Only ranks of one host are seen, and only carriers that know what is under way take part.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/point_to_point.h"
#include "foundation/base/deadline.h"
#include "membership/control/group.h"
#include "membership/failure/inquiry.h"

namespace hocket::failure {

// A resource of one blocking wait of a rank. Costs nothing before the wait has lasted `after`.
class DeadlockSearch {
 public:
  // `after`: how long the wait lasts before the first look; kForever: there is none.
  DeadlockSearch(control::GroupControl& group,
                 engine::PointToPoint& messages,
                 Duration after) noexcept
      : group_(group), messages_(messages), after_(after) {}
  ~DeadlockSearch() { hide(); }
  DeadlockSearch(const DeadlockSearch&) = delete;
  DeadlockSearch& operator=(const DeadlockSearch&) = delete;

  // Whether it is time for `look`.
  bool is_due() noexcept;
  // Looks once. `awaited`: everything that this thread waits for, of which all must end. To be
  // called after a step of these calls.
  std::optional<control::Failure> look(std::span<const Awaited> awaited);
  // The latest time for the next look.
  base::Deadline next() const noexcept { return next_; }
  // This rank takes no part at present.
  void hide() noexcept;

 private:
  // Adds to the wait that this rank shows a message that waits under another tag.
  void show_other_tag(const Awaited& awaited);

  static constexpr std::chrono::milliseconds kPause{10};  // the first ones; each is longer
  static constexpr std::chrono::milliseconds kLongestPause{100};

  control::GroupControl& group_;
  engine::PointToPoint& messages_;
  const Duration after_;
  base::Deadline next_ = base::Deadline::never();
  Duration pause_ = kPause;
  std::optional<std::uint64_t> moves_;  // shown for; absent: nothing is shown
};

}  // namespace hocket::failure
