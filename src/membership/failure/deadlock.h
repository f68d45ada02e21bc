// Finds deadlocks: ranks that wait for each other, so that none of their calls can end.
//
// A rank in a blocking call starts nothing else on the communicator before this call ends. If the
// call lasts some milliseconds, the rank shows the other ranks what it waits for, under a number.
// The number changes with every call, and whenever the rank's carrier has moved anything. Ranks
// that wait only for each other are deadlocked if no message between them is on its way:
//
//   rank 0   recv from 1    number 7    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//   rank 1   recv from 2    number 5    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//   rank 2   barrier        number 9    reads 7, 5, 9   looks for messages: none   votes (7, 5, 9)
//
// Equal votes prove the deadlock. Each voter read every number before its vote, so all calls had
// begun before the first vote. After that the voter looked for messages, and would have found any
// that had been sent before. Suppose that rank A is the first to move anything after its vote. Then
// A needs a move that another rank B made after A had looked, and before B's vote. That move
// changed B's number after A had read it. So the votes of A and B differ.
//
// The search covers only ranks of one host, and only carriers that know which messages are on their
// way.
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

// The search during one blocking wait of a rank. A resource. It costs nothing before the wait has
// lasted `after`.
class DeadlockSearch {
 public:
  // `after` is the time until the first look; kForever: no search.
  DeadlockSearch(control::GroupControl& group,
                 engine::PointToPoint& messages,
                 Duration after) noexcept
      : group_(group), messages_(messages), after_(after) {}
  ~DeadlockSearch() { hide(); }
  DeadlockSearch(const DeadlockSearch&) = delete;
  DeadlockSearch& operator=(const DeadlockSearch&) = delete;

  // Returns whether it is time for `look`.
  bool is_due() noexcept;
  // Looks once, and returns the failure if there is a deadlock. `awaited` has everything that this
  // thread waits for; the wait ends only when all of it has ended. Called after a step of these
  // calls.
  std::optional<control::Failure> look(std::span<const Awaited> awaited);
  // Returns the time of the next look.
  base::Deadline next() const noexcept { return next_; }
  // Stops showing the other ranks what this rank waits for.
  void hide() noexcept;

 private:
  // If a message waits under another tag than the awaited one, adds this to the text that this rank
  // shows.
  void show_other_tag(const Awaited& awaited);

  static constexpr std::chrono::milliseconds kPause{10};  // the first pause; later ones are longer
  static constexpr std::chrono::milliseconds kLongestPause{100};

  control::GroupControl& group_;
  engine::PointToPoint& messages_;
  const Duration after_;
  base::Deadline next_ = base::Deadline::never();
  Duration pause_ = kPause;
  // PointToPoint::moves_at_rest when the wait was shown. Absent: the wait is not shown.
  std::optional<std::uint64_t> moves_;
};

}  // namespace hocket::failure
