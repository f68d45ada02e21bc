// Early warnings: an unusually long wait reports which ranks have not come, long before its
// deadline.
//
// Several ranks may wait for the same late rank. Only one of them warns: the rank that has claimed
// the late rank's line in the segment.
// A rank that waits itself is not the cause. So each rank shows the rank for which it waits, and
// the last waiting rank of such a chain warns. In a circle of waits the lowest rank warns.
//
//     rank 0 -> rank 1 -> rank 2 (late): rank 1 warns about rank 2
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "foundation/base/deadline.h"
#include "membership/control/group.h"
#include "membership/failure/inquiry.h"
#include "membership/failure/texts.h"
#include "monitoring/live/stragglers.h"

namespace hocket::live {

// Data that the long waits of one rank's group share. A view: its references outlive it.
struct LongWaits {
  control::GroupControl& group;
  const failure::Texts& texts;
  std::string communicator;
  Duration after = kForever;           // when a wait counts as long; kForever: never
  Duration deadlock_after = kForever;  // when a wait looks for deadlocks; see failure/deadlock.h
  // Describes a message that arrived instead of the awaited one. Returns "" if there is none.
  std::function<std::string(const failure::Awaited&)> beside = {};
};

// A value for the length of one wait. Costs nothing before the wait first looks at the clock.
class LongWait {
 public:
  // The waiter: the calling thread, or a GPU's stream. A stream may have other work before the
  // call, so once all ranks have come it gives no warning.
  enum class Of : std::uint8_t { kThread, kStream };
  explicit LongWait(LongWaits& waits, Of of = Of::kThread) noexcept : waits_(waits), of_(of) {}
  // Gives up its claims, and logs nothing.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // Call it where the wait also checks for failures, at least ten times a second. It warns when the
  // time has come. `shown` is the call as error texts name it.
  void look(const failure::Awaited& awaited, const engine::Signature& shown) noexcept;
  // Ends the wait. If a warning was given, logs how the wait ended.
  enum class End : std::uint8_t { kWell, kFailed };
  void over(End how) noexcept;

 private:
  using Clock = base::Deadline::Clock;
  // The rank that holds the wait up, and its progress. Two looks give equal values if that rank did
  // not move between them.
  struct Seen {
    int place = -1;
    std::uint64_t sequence = 0;
    std::uint64_t last = 0;
    std::uint64_t finished = 0;
    bool one_suffices = false;  // true: no `place`, and the numbers are sums over all members
    bool operator==(const Seen&) const = default;
  };
  void sample(const failure::Awaited& awaited, const engine::Signature& shown);
  void ask_places(const Stragglers& stragglers) noexcept;
  bool may_speak(const Stragglers& stragglers, int place);
  bool is_spoken_for_elsewhere(int place) const;
  bool claim(int place) noexcept;
  void give_up_claim() noexcept;
  void hide() noexcept;
  std::string sentence(const Stragglers& stragglers, const failure::Awaited& awaited) const;
  std::string of_member(const Stragglers& stragglers, int member) const;
  std::string of_circle() const;

  LongWaits& waits_;
  Of of_;
  std::optional<Clock::time_point> begun_;  // the first look
  Clock::time_point now_;
  Clock::time_point next_;
  Clock::time_point still_since_;  // since then `seen_` has not changed
  Duration speaks_at_{};           // time of the next warning, since `begun_`
  Seen seen_;
  bool shows_ = false;     // shows the rank that it waits for
  int claimed_ = -1;       // place of the rank whose warning it has claimed
  int circle_ = 0;         // number of ranks in a circle of waits that includes this one
  std::string call_ = {};  // the call that the warning named
};

}  // namespace hocket::live
