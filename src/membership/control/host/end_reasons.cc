#include "membership/control/host/end_reasons.h"

#include "membership/control/host/layout.h"

namespace hocket::control {

void EndReasons::tell(Ending ending, std::string_view text) noexcept {
  reasons_[self_].write(ending, text);
}

void EndReasons::tell_trouble(std::string_view text) noexcept {
  if (ending(self_) == Ending::kInOrder) reasons_[self_].write(Ending::kInOrder, text);
}

void EndReasons::withdraw() noexcept {
  if (ending(self_) != Ending::kInOrder) reasons_[self_].write(Ending::kInOrder, "");
}

Ending EndReasons::ending(int place) const noexcept {
  const Ending said = reasons_[place].ending.load(std::memory_order_relaxed);
  return said == Ending::kInOrder || said == Ending::kAfterALoss ? said : Ending::kByItself;
}

std::optional<EndReason> EndReasons::of(int place) const { return reasons_[place].read(); }

void EndReasons::record_remote(int place, const EndReason& reason) noexcept {
  if (ending(place) != Ending::kInOrder) return;
  reasons_[place].write(reason.of_a_part      ? Ending::kInOrder
                        : reason.follows_loss ? Ending::kAfterALoss
                                              : Ending::kByItself,
                        reason.text);
}

}  // namespace hocket::control
