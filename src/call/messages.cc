#include "call/messages.h"

#include <algorithm>
#include <functional>

namespace hocket::call {

using engine::Envelope;
using engine::Task;

Task finish(OwnedMessage message, std::shared_ptr<Received> received) {
  Envelope sender;
  co_await engine::until([&] {
    message.via().progress();
    return message.done(&sender);
  });
  if (received != nullptr) {
    *received = {sender.peer, static_cast<int>(sender.tag), sender.count};
  }
}

Task finish_both(OwnedMessage outgoing, OwnedMessage incoming) {
  co_await engine::until([&] {
    outgoing.via().progress();
    return static_cast<int>(outgoing.done()) + static_cast<int>(incoming.done()) == 2;
  });
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
