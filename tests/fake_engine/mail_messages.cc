#include "fake_engine/mail_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hocket::engines::mail {

void PostOffice::post(int to, Letter letter) {
  const std::lock_guard lock(mutex_);
  boxes_[static_cast<std::size_t>(to)].push_back(std::move(letter));
}

std::vector<Letter> PostOffice::collect(int rank) {
  const std::lock_guard lock(mutex_);
  return std::exchange(boxes_[static_cast<std::size_t>(rank)], {});
}

MailMessages::MailMessages(std::shared_ptr<PostOffice> office,
                           int rank,
                           std::function<void(int)> ring)
    : office_(std::move(office)), rank_(rank), ring_(std::move(ring)) {}

engine::MessageId MailMessages::send(const engine::Envelope& to, std::span<const std::byte> bytes) {
  Letter letter{.from = to, .bytes = {bytes.begin(), bytes.end()}};
  letter.from.peer = rank_;
  office_->post(to.peer, std::move(letter));
  ring_(to.peer);
  return engine::kComplete;
}

engine::MessageId MailMessages::recv(const engine::Envelope& from, std::span<std::byte> bytes) {
  const auto free =
      std::ranges::find(slots_, Slot::State::kFree, [](const Slot& slot) { return slot.state; });
  const auto index = static_cast<std::uint32_t>(free - slots_.begin());
  if (free == slots_.end()) slots_.emplace_back();
  slots_[index] = {.state = Slot::State::kWaiting, .from = from, .received = {}, .bytes = bytes};
  waiting_.push_back(index);
  return engine::MessageId{index};
}

bool MailMessages::match(Slot& slot) {
  const auto letter = std::ranges::find_if(come_, [&](const Letter& each) {
    return engine::is_for(slot.from, each.from.peer, each.from.tag);
  });
  if (letter == come_.end()) return false;
  slot.received = letter->from;
  const bool alike = engine::is_alike(slot.from, letter->from);
  slot.state = alike ? Slot::State::kFilled : Slot::State::kRefused;
  const std::size_t kept = std::min(letter->bytes.size(), slot.bytes.size());
  if (alike && kept != 0) std::memcpy(slot.bytes.data(), letter->bytes.data(), kept);
  come_.erase(letter);
  return true;
}

bool MailMessages::progress() {
  for (Letter& letter : office_->collect(rank_)) come_.push_back(std::move(letter));
  const std::size_t before = waiting_.size();
  std::erase_if(waiting_, [this](std::uint32_t index) { return match(slots_[index]); });
  return waiting_.size() != before;
}

std::optional<engine::Envelope> MailMessages::waiting(const engine::Envelope& wanted) {
  std::erase_if(waiting_, [this](std::uint32_t index) { return match(slots_[index]); });
  const auto letter = std::ranges::find_if(come_, [&](const Letter& each) {
    return engine::is_for(wanted, each.from.peer, each.from.tag);
  });
  if (letter == come_.end()) return std::nullopt;
  return letter->from;
}

bool MailMessages::test(engine::MessageId message, engine::Envelope* received) {
  if (message == engine::kComplete) return true;
  Slot& slot = slots_[static_cast<std::uint32_t>(message)];
  if (slot.state == Slot::State::kWaiting) return false;
  const bool refused = slot.state == Slot::State::kRefused;
  slot.state = Slot::State::kFree;
  if (refused) throw engine::EnvelopeMismatch{.expected = slot.from, .received = slot.received};
  if (received != nullptr) *received = slot.received;
  return true;
}

void MailMessages::cancel(engine::MessageId message) noexcept {
  if (message == engine::kComplete) return;
  std::erase(waiting_, static_cast<std::uint32_t>(message));
  slots_[static_cast<std::uint32_t>(message)].state = Slot::State::kFree;
}

bool MailMessages::withdraw(engine::MessageId message) noexcept {
  const bool waits = std::erase(waiting_, static_cast<std::uint32_t>(message)) != 0;
  if (waits) slots_[static_cast<std::uint32_t>(message)].state = Slot::State::kFree;
  return waits;
}

}  // namespace hocket::engines::mail
