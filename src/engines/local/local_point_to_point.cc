#include "engines/local/local_point_to_point.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::engines::local {

using engine::Envelope;
using engine::MessageId;

namespace {

// Returns the first message that a receive with this envelope accepts, or null if there is none.
SentQueue::Entry* find(SentQueue& queue, const Envelope& wanted) {
  if (wanted.peer != engine::kAnyPeer && wanted.tag != engine::kAnyTag) {
    return queue.find({wanted.peer, wanted.tag});
  }
  return queue.find_if([&](const SentQueue::Entry& entry) {
    return engine::is_for(wanted, entry.key.peer, entry.key.tag);
  });
}

}  // namespace

LocalFabric::LocalFabric(int size) {
  for (int i = 0; i < size; ++i) mailboxes_.push_back(std::make_unique<Mailbox>());
}

LocalPointToPoint::LocalPointToPoint(std::shared_ptr<LocalFabric> fabric, int rank, Notify notify)
    : fabric_(std::move(fabric)), rank_(rank), notify_(std::move(notify)) {}

LocalPointToPoint::~LocalPointToPoint() {
  for (std::size_t i = 0; i < slots_.size(); ++i) cancel(static_cast<MessageId>(i));
}

MessageId LocalPointToPoint::take_slot(Slot::Use use) {
  if (free_.empty()) {
    free_.reserve(slots_.size() + 1);  // so that free_slot never allocates
    slots_.emplace_back();
    free_.push_back(static_cast<MessageId>(slots_.size() - 1));
  }
  const MessageId id = free_.back();
  free_.pop_back();
  slot(id).use = use;
  return id;
}

void LocalPointToPoint::free_slot(MessageId id) noexcept {
  slot(id).use = Slot::Use::kFree;
  free_.push_back(id);
}

MessageId LocalPointToPoint::send(const Envelope& to, std::span<const std::byte> bytes) {
  const MessageId id = take_slot(Slot::Use::kSend);
  Sent& sent = slot(id).sent;
  sent.source = rank_;
  sent.to = to;
  sent.bytes = bytes;
  sent.state.store(Sent::State::kWaiting, std::memory_order_relaxed);  // the mutex publishes it
  LocalFabric::Mailbox& mailbox = fabric_->mailbox(to.peer);
  {
    const std::lock_guard lock(mailbox.mutex);
    mailbox.fresh.push_back(&sent);
    mailbox.arrivals.fetch_add(1, std::memory_order_release);  // pairs with progress
  }
  notify(to.peer);
  return id;
}

MessageId LocalPointToPoint::recv(const Envelope& from, std::span<std::byte> bytes) {
  const MessageId id = take_slot(Slot::Use::kReceive);
  slot(id).expected = {.from = from, .bytes = bytes, .received = {}};
  match([&](SentQueue& sent) {
    if (auto* const found = find(sent, from)) {
      fill(slot(id).expected, *sent.pop(*found));
    } else {
      expected_.push(from, id);
    }
  });
  return id;
}

bool LocalPointToPoint::progress() {
  const auto arrivals = fabric_->mailbox(rank_).arrivals.load(std::memory_order_acquire);
  return arrivals != arrivals_seen_ && match([](SentQueue&) {});
}

std::optional<std::uint64_t> LocalPointToPoint::ended() const noexcept {
  return receives_ended_ +
         fabric_->mailbox(rank_).sends_ended.load(std::memory_order_acquire);  // pairs with fill
}

template <typename Then>
bool LocalPointToPoint::match(Then then) {
  LocalFabric::Mailbox& mailbox = fabric_->mailbox(rank_);
  taken_from_.clear();
  {
    const std::lock_guard lock(mailbox.mutex);
    arrivals_seen_ = mailbox.arrivals.load(std::memory_order_relaxed);
    for (; !mailbox.fresh.empty(); mailbox.fresh.pop_front()) {
      Sent* const sent = mailbox.fresh.front();
      if (auto* const receive = expected_.find(sent->source, sent->to.tag)) {
        fill(slot(expected_.pop(*receive)).expected, *sent);
      } else {
        mailbox.sent.push({sent->source, sent->to.tag}, sent);
      }
    }
    then(mailbox.sent);
  }
  for (const int source : taken_from_) notify(source);
  return !taken_from_.empty();
}

// Copies a message into its receive. The caller holds the mailbox's mutex, so a sender that cancels
// waits for the end of the copy.
void LocalPointToPoint::fill(Expected& expected, Sent& message) {
  const Envelope& from = expected.from;
  taken_from_.push_back(message.source);
  expected.received = message.to;
  expected.received.peer = message.source;
  const std::size_t bytes = std::min(message.bytes.size(), expected.bytes.size());
  const bool whole = (from.allows_longer || bytes == message.bytes.size()) &&
                     (from.allows_shorter || bytes == expected.bytes.size());
  const bool fits = engine::is_alike(from, message.to) && whole;
  if (fits && bytes != 0) std::memcpy(expected.bytes.data(), message.bytes.data(), bytes);
  if (!fits) message.wanted = from;
  expected.state = fits ? Expected::State::kFilled : Expected::State::kRefused;
  // After this store the sender may reuse `message`. Pairs with test.
  const int source = message.source;
  message.state.store(fits ? Sent::State::kTaken : Sent::State::kRefused,
                      std::memory_order_release);
  ++receives_ended_;
  fabric_->mailbox(source).sends_ended.fetch_add(1, std::memory_order_release);
}

std::optional<Envelope> LocalPointToPoint::waiting(const Envelope& wanted) {
  std::optional<Envelope> left;
  match([&](SentQueue& sent) {
    const auto* const found = find(sent, wanted);
    if (found == nullptr) return;
    left = found->value->to;
    left->peer = found->value->source;
  });
  return left;
}

bool LocalPointToPoint::test(MessageId id, Envelope* received) {
  Slot& s = slot(id);
  if (s.use == Slot::Use::kSend) {
    const auto state = s.sent.state.load(std::memory_order_acquire);  // pairs with fill
    if (state == Sent::State::kWaiting) return false;
    if (state == Sent::State::kRefused) {
      Envelope wanted = s.sent.wanted;
      wanted.peer = s.sent.to.peer;
      throw engine::EnvelopeMismatch{.expected = s.sent.to, .received = wanted};
    }
    if (received != nullptr) *received = s.sent.to;
  } else {
    if (s.expected.state == Expected::State::kWaiting) return false;
    if (s.expected.state == Expected::State::kRefused) {
      throw engine::EnvelopeMismatch{.expected = s.expected.from, .received = s.expected.received};
    }
    if (received != nullptr) *received = s.expected.received;
  }
  free_slot(id);
  return true;
}

void LocalPointToPoint::cancel(MessageId id) noexcept {
  Slot& s = slot(id);
  if (s.use == Slot::Use::kFree) return;
  if (s.use == Slot::Use::kSend) {
    LocalFabric::Mailbox& mailbox = fabric_->mailbox(s.sent.to.peer);
    const std::lock_guard lock(mailbox.mutex);
    const auto is_this = [&](const SentQueue::Entry& entry) { return entry.value == &s.sent; };
    if (auto* const found = mailbox.sent.find_if(is_this)) mailbox.sent.pop(*found);
    std::erase(mailbox.fresh, &s.sent);
  } else {
    if (s.expected.state == Expected::State::kWaiting) expected_.erase(id);
  }
  free_slot(id);
}

bool LocalPointToPoint::withdraw(MessageId id) noexcept {
  const Slot& s = slot(id);
  if (s.use != Slot::Use::kReceive || s.expected.state != Expected::State::kWaiting) return false;
  cancel(id);
  return true;
}

}  // namespace hocket::engines::local
