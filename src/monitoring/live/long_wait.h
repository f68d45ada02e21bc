// Early warnings: a wait that lasts unusually long says who has not come, long before a deadline
// ends it.
//
// Many ranks wait for one: one of them speaks, who has claimed that one's line of the segment. A
// rank that others wait for, and that waits itself, is not to blame: each rank shows whom it waits
// for, and whoever waits for the last of such a chain speaks. Ranks that wait for each other in a
// circle have their lowest speak.
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
#include "monitoring/live/holdup.h"

namespace hocket::live {

// What the long waits of one rank's group have in common. A view: what it is made of outlives it.
struct LongWaits {
  control::GroupControl& group;
  const failure::Texts& texts;
  std::string communicator;
  Duration after = kForever;  // when a wait counts as long; kForever: never
  // Says what has come in place of what is waited for; empty: nothing.
  std::function<std::string(const failure::Awaited&)> beside = {};
};

// A value for the length of one wait. Costs nothing before the wait looks at the clock for the
// first time.
class LongWait {
 public:
  // Who waits: the thread that looks, or a stream of a GPU, which may have other work before the
  // call. Of that nothing is said once all ranks have come.
  enum class Of : std::uint8_t { kThread, kStream };
  explicit LongWait(LongWaits& waits, Of of = Of::kThread) noexcept : waits_(waits), of_(of) {}
  // Gives up its claims, and says nothing.
  ~LongWait();
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  // To be called when the wait looks at other things, too: now and then, and at least ten times a
  // second. `shown`: what the call is called.
  void look(const failure::Awaited& awaited, const engine::Signature& shown) noexcept;
  // The wait is over: says so, where something was said.
  enum class End : std::uint8_t { kWell, kFailed };
  void over(End how) noexcept;

 private:
  using Clock = base::Deadline::Clock;
  // Who holds the wait up, and what is known of that rank: equal while it does not move.
  struct Seen {
    int place = -1;
    std::uint64_t sequence = 0;
    std::uint64_t last = 0;
    std::uint64_t finished = 0;
    bool one_suffices = false;  // no single place; the sums of all members' numbers
    bool operator==(const Seen&) const = default;
  };
  void sample(const failure::Awaited& awaited, const engine::Signature& shown);
  void ask_places(const Holdup& holdup) noexcept;
  bool may_speak(const Holdup& holdup, int place);
  bool is_spoken_for_elsewhere(int place) const;
  bool claim(int place) noexcept;
  void give_up_claim() noexcept;
  void hide() noexcept;
  std::string sentence(const Holdup& holdup, const failure::Awaited& awaited) const;
  std::string of_member(const Holdup& holdup, int member) const;
  std::string of_circle() const;

  LongWaits& waits_;
  Of of_;
  std::optional<Clock::time_point> begun_;  // the first look
  Clock::time_point now_;
  Clock::time_point next_;
  Clock::time_point still_since_;  // `seen_` has not changed
  Duration speaks_at_{};           // since `begun_`
  Seen seen_;
  bool shows_ = false;      // whom it waits for
  int claimed_ = -1;        // a place
  int circle_ = 0;          // ranks in a circle of such as wait for each other, this one among them
  std::string call_ = {};  // what was said to wait
};

}  // namespace hocket::live
