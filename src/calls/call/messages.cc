#include "calls/call/messages.h"

#include <algorithm>
#include <functional>

namespace hocket::call {

using engine::Envelope;
using engine::Task;

void MessageInFlight::end(bool failed) noexcept {
  if (!failed && !call.sends) traced.set_sender(received_of(sender));
  traced.end(failed);
}

Task await(engine::PointToPoint& via, Envelope wanted, Received& found) {
  co_await engine::until([&] {
    via.progress();
    const auto waiting = via.waiting(wanted);
    if (waiting) found = received_of(*waiting);
    return waiting.has_value();
  });
}

Received received_of(const Envelope& sent) noexcept {
  return {.source = sent.peer,
          .tag = static_cast<int>(sent.tag),
          .count = sent.count,
          .dtype = sent.dtype};
}

bool is_received_into(ConstArrayView in, std::span<const Incoming> incoming) noexcept {
  const auto* first = static_cast<const std::byte*>(in.data());
  return in.bytes() != 0 && std::any_of(incoming.begin(), incoming.end(), [&](const Incoming& one) {
           const auto* other = static_cast<const std::byte*>(one.out.data());
           return std::less<>()(first, other + one.out.bytes()) &&
                  std::less<>()(other, first + in.bytes());
         });
}

}  // namespace hocket::call
