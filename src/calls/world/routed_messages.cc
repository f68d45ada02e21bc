#include "calls/world/routed_messages.h"

#include <algorithm>
#include <utility>

namespace hocket::world {

using engine::Envelope;
using engine::MessageId;

RoutedMessages::RoutedMessages(std::unique_ptr<engine::PointToPoint> near,
                               std::vector<int> near_ranks,
                               std::unique_ptr<engine::PointToPoint> far)
    : near_(std::move(near)), far_(std::move(far)), near_ranks_(std::move(near_ranks)) {
  for (std::size_t i = 0; i < near_ranks_.size(); ++i) {
    if (near_ranks_[i] < 0) continue;
    const auto at = static_cast<std::size_t>(near_ranks_[i]);
    if (members_.size() <= at) members_.resize(at + 1, -1);
    members_[at] = static_cast<int>(i);
  }
}

RoutedMessages::Way RoutedMessages::way_to(int peer) const {
  return near_ranks_[static_cast<std::size_t>(peer)] >= 0 ? Way::kNear : Way::kFar;
}

Envelope RoutedMessages::inward(const Envelope& envelope, Way way) const {
  Envelope inner = envelope;
  if (way == Way::kNear) inner.peer = near_ranks_[static_cast<std::size_t>(envelope.peer)];
  return inner;
}

Envelope RoutedMessages::outward(const Envelope& envelope, Way way) const {
  Envelope outer = envelope;
  if (way == Way::kNear && envelope.peer >= 0) {
    outer.peer = members_[static_cast<std::size_t>(envelope.peer)];
  }
  return outer;
}

MessageId RoutedMessages::take_slot() {
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);  // so that releasing a slot never allocates
    slots_.emplace_back();
    return static_cast<MessageId>(slots_.size() - 1);
  }
  const MessageId id = free_.back();
  free_.pop_back();
  return id;
}

MessageId RoutedMessages::send(const Envelope& to, std::span<const std::byte> bytes) {
  const Way way = way_to(to.peer);
  const MessageId inner = carrier(way).send(inward(to, way), bytes);
  sent_near_ |= way == Way::kNear;
  if (inner == engine::kComplete) return inner;
  const MessageId id = take_slot();
  slot(id) = {.way = way, .inner = inner, .from = {}, .bytes = {}};
  if (way == Way::kNear) ++near_messages_;
  return id;
}

void RoutedMessages::post(Slot& slot, int peer, engine::Tag tag) {
  Envelope from = slot.from;
  from.peer = peer;
  from.tag = tag;
  slot.way = way_to(peer);
  slot.inner = carrier(slot.way).recv(inward(from, slot.way), slot.bytes);
  if (slot.way == Way::kNear) ++near_messages_;
}

// Returns whether a receive must wait for earlier held receives that may match the same message.
bool RoutedMessages::has_to_wait(const Envelope& from) {
  return from.peer == engine::kAnyPeer ||
         std::any_of(held_.begin(), held_.end(), [&](MessageId other) {
           return engine::may_compete(slot(other).from, from);
         });
}

std::optional<MessageId> RoutedMessages::recv_to(const Envelope& from,
                                                 std::size_t bytes,
                                                 engine::Taker& taker) {
  if (has_to_wait(from)) return std::nullopt;
  const Way way = way_to(from.peer);
  const auto inner = carrier(way).recv_to(inward(from, way), bytes, taker);
  if (!inner) return std::nullopt;
  const MessageId id = take_slot();
  slot(id) = {.way = way, .inner = *inner, .from = from, .bytes = {}};
  if (way == Way::kNear) ++near_messages_;
  return id;
}

MessageId RoutedMessages::recv(const Envelope& from, std::span<std::byte> bytes) {
  const MessageId id = take_slot();
  slot(id) = {.way = Way::kHeld, .inner = {}, .from = from, .bytes = bytes};
  if (!has_to_wait(from)) {
    post(slot(id), from.peer, from.tag);
  } else {
    held_.push_back(id);
    post_held();
  }
  return id;
}

// Returns a message that has arrived at either carrier, whether or not a held receive matches it.
std::optional<Envelope> RoutedMessages::arrived(const Envelope& wanted) {
  const bool any = wanted.peer == engine::kAnyPeer;
  for (const Way way : {Way::kNear, Way::kFar}) {
    if (!any && way_to(wanted.peer) != way) continue;
    if (const auto found = carrier(way).waiting(any ? wanted : inward(wanted, way))) {
      return outward(*found, way);
    }
  }
  return std::nullopt;
}

// A message may arrive after `post_held` has looked and before `arrived` looks. If a held receive
// will take that message, it is not reported.
std::optional<Envelope> RoutedMessages::waiting(const Envelope& wanted) {
  post_held();
  const auto found = arrived(wanted);
  const bool is_held = found && std::ranges::any_of(held_, [&](MessageId id) {
                         return engine::is_for(slot(id).from, found->peer, found->tag);
                       });
  return is_held ? std::nullopt : found;
}

// Posts the held receives whose carrier is known. Returns true if it has posted any.
// A receive may compete with an earlier held receive. It may still take an arrived message that the
// earlier receive does not match, because of its tag or source.
bool RoutedMessages::post_held() {
  std::vector<Envelope> blocked;
  const auto try_to_post = [&](MessageId id) {
    Slot& receive = slot(id);
    const Envelope& from = receive.from;
    const bool competes = std::ranges::any_of(
        blocked, [&](const Envelope& other) { return engine::may_compete(other, from); });
    if (!competes && from.peer != engine::kAnyPeer) {
      post(receive, from.peer, from.tag);
      return true;
    }
    const auto found = arrived(from);
    const bool is_free = found && std::ranges::none_of(blocked, [&](const Envelope& other) {
                           return engine::is_for(other, found->peer, found->tag);
                         });
    if (is_free) {
      post(receive, found->peer, found->tag);
    } else {
      blocked.push_back(from);
    }
    return is_free;
  };
  return std::erase_if(held_, try_to_post) != 0;
}

bool RoutedMessages::test(MessageId id, Envelope* received) {
  if (id == engine::kComplete) return true;
  Slot& message = slot(id);
  if (message.way == Way::kHeld) return false;
  try {
    if (!carrier(message.way).test(message.inner, received)) return false;
  } catch (const engine::EnvelopeMismatch& found) {
    throw engine::EnvelopeMismatch{outward(found.expected, message.way),
                                   outward(found.received, message.way)};
  }
  if (received != nullptr) *received = outward(*received, message.way);
  give_back(id);
  return true;
}

void RoutedMessages::give_back(MessageId id) noexcept {
  if (std::exchange(slot(id).way, Way::kNone) == Way::kNear) --near_messages_;
  free_.push_back(id);
}

bool RoutedMessages::progress() {
  // A member that is alone on its host gets near messages only from itself.
  const bool may_come = members_.size() > 1 || sent_near_ || near_messages_ != 0 || !held_.empty();
  const bool near = may_come && near_->progress();
  const bool far = far_->progress();
  const bool posted = !held_.empty() && post_held();
  return near || far || posted;
}

std::optional<std::uint64_t> RoutedMessages::owed(int peer) {
  const Way way = way_to(peer);
  return carrier(way).owed(inward({.peer = peer}, way).peer);
}

void RoutedMessages::cancel(MessageId id) noexcept {
  if (id == engine::kComplete) return;
  Slot& message = slot(id);
  if (message.way == Way::kNone) return;
  if (message.way == Way::kHeld) {
    std::erase(held_, id);
  } else {
    carrier(message.way).cancel(message.inner);
  }
  give_back(id);
}

bool RoutedMessages::withdraw(MessageId id) noexcept {
  if (id == engine::kComplete) return false;
  Slot& message = slot(id);
  if (message.way == Way::kNone) return false;
  if (message.way == Way::kHeld) {
    std::erase(held_, id);
  } else if (!carrier(message.way).withdraw(message.inner)) {
    return false;
  }
  give_back(id);
  return true;
}

}  // namespace hocket::world
