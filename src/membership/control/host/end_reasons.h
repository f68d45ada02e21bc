// The reasons why ranks end, as they announce them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "membership/control/host/view.h"

namespace hocket::control {

struct SharedEndReason;

// The reason why a rank ends, or has ended its task, if it does not do so in good order. A value.
struct EndReason {
  // True: the reason concerns a part of the rank's process, such as a thread; the rank itself has
  // not failed.
  bool of_a_part = false;
  // True: the rank had seen the loss of another rank before, which may be why it ends.
  bool follows_loss = false;
  std::string text;  // such as "raised RuntimeError: ..."; at most kTextBytes
  static constexpr std::size_t kTextBytes = 200;
};

// How a rank ends, by its own announcement: in good order, for a reason of its own, or after the
// loss of another rank.
enum class Ending : std::uint32_t { kInOrder, kByItself, kAfterALoss };

// The reasons of all ranks, as one rank announces its own and reads the others'. A view of the
// segment, which outlives it. Any thread.
class EndReasons : public HostView {
 public:
  EndReasons(const HostView& view, SharedEndReason* reasons) noexcept
      : HostView(view), reasons_(reasons) {}

  // Announces why this rank is about to leave, to die or to end its task. Others consider the
  // reason only after the rank has done so.
  void tell(Ending ending, std::string_view text) noexcept;
  // Announces that a part of this rank's process has failed. Does nothing if the rank itself has
  // announced a failure.
  void tell_trouble(std::string_view text) noexcept;
  // Withdraws this rank's reason, because the rank goes on, or ends in good order.
  void withdraw() noexcept;
  // Returns how the rank at `place` ends, by its announcement so far. Costs one load.
  Ending ending(int place) const noexcept;
  // Returns the reason that the rank at `place` has announced. Absent: none.
  std::optional<EndReason> of(int place) const;
  // Records the reason of a rank of another host. Does nothing if a reason is known.
  void record_remote(int place, const EndReason& reason) noexcept;

 private:
  SharedEndReason* reasons_;
};

}  // namespace hocket::control
