// Messages between threads, each copied into a letter for its receiver.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/point_to_point.h"

namespace hocket::engines::mail {

// A message in the post. A value.
struct Letter {
  engine::Envelope from;  // with the sender as peer
  std::vector<std::byte> bytes;
};

// A resource, shared by the ranks of a group: a box for each. Safe from any thread.
class PostOffice {
 public:
  explicit PostOffice(int size) : boxes_(static_cast<std::size_t>(size)) {}
  void post(int to, Letter letter);
  // New messages for `rank` since the last call, in order.
  std::vector<Letter> collect(int rank);

 private:
  std::mutex mutex_;
  std::vector<std::vector<Letter>> boxes_;
};

// See engine::PointToPoint. A send is done at once.
class MailMessages final : public engine::PointToPoint {
 public:
  // `ring`: wakes the rank that a letter is for.
  MailMessages(std::shared_ptr<PostOffice> office, int rank, std::function<void(int)> ring);

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  void cancel(engine::MessageId message) noexcept override;
  bool withdraw(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;

 private:
  // A receive.
  struct Slot {
    enum class State : std::uint8_t { kFree, kWaiting, kFilled, kRefused };
    State state = State::kFree;
    engine::Envelope from;
    engine::Envelope received;
    std::span<std::byte> bytes;
  };
  bool match(Slot& slot);

  const std::shared_ptr<PostOffice> office_;
  const int rank_;
  const std::function<void(int)> ring_;
  std::deque<Letter> come_;            // that no receive has taken, in order
  std::deque<Slot> slots_;             // by MessageId
  std::deque<std::uint32_t> waiting_;  // of `slots_`, in the order of posting
};

}  // namespace hocket::engines::mail
