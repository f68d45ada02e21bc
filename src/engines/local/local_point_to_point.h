// Messages between ranks that are threads of one process. This is the simplest carrier, and the
// reference for the other carriers.
//
// The receiver's thread copies a message directly from the sender's array into the receiver's
// array. For each receiver, the ranks share only a mailbox: a list of sent messages with a mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/keyed_queue.h"
#include "engine/point_to_point.h"

namespace hocket::engines::local {

// A sent message. It exists until the sender's `test` or `cancel` frees its handle. The sender owns
// it, and writes all members before it puts a pointer to it into the receiver's mailbox. Afterwards
// only the receiver writes: first `wanted`, then the atomic `state`, which publishes `wanted`.
struct Sent {
  enum class State : std::uint8_t { kWaiting, kTaken, kRefused };

  int source = 0;
  engine::Envelope to;
  std::span<const std::byte> bytes;
  engine::Envelope wanted;  // if the receiver refused the message: the envelope that it expected
  std::atomic<State> state{State::kWaiting};
};

// A queue of sent messages. Keys are source and tag.
using SentQueue = engine::KeyedQueue<Sent*>;

// Called when something has changed for `rank`: a message to this rank was sent, or a message from
// this rank was received. It runs in the thread of the rank that caused the change, holds no locks,
// and must not block.
using Notify = std::function<void(int rank)>;

// The mailboxes of a group. Its ranks share it. Any thread may use it. It owns no thread and never
// fails. A resource.
class LocalFabric {
 public:
  explicit LocalFabric(int size);
  int size() const noexcept { return static_cast<int>(mailboxes_.size()); }

 private:
  friend class LocalPointToPoint;
  struct Mailbox {
    std::mutex mutex;
    std::deque<Sent*> fresh;  // guarded by the mutex: messages since the receiver's last look
    SentQueue sent;           // guarded by the mutex: earlier messages without a receive
    std::atomic<std::uint64_t> arrivals{0};     // messages so far; written under the mutex
    std::atomic<std::uint64_t> sends_ended{0};  // messages from this rank that have ended
  };
  Mailbox& mailbox(int rank) { return *mailboxes_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // indexed by receiver
};

// See engine::PointToPoint. Each rank has one, which keeps the fabric alive. The destructor cancels
// messages that have not ended. Ranks may send messages to themselves. A resource.
class LocalPointToPoint final : public engine::PointToPoint {
 public:
  // Only this object calls `notify`. It does not call it after its destruction has begun.
  LocalPointToPoint(std::shared_ptr<LocalFabric> fabric, int rank, Notify notify = {});
  ~LocalPointToPoint() override;
  LocalPointToPoint(const LocalPointToPoint&) = delete;
  LocalPointToPoint& operator=(const LocalPointToPoint&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  std::optional<std::uint64_t> ended() const noexcept override;
  // A message is copied in one step, so no message is ever partly moved.
  std::optional<std::uint64_t> moves_at_rest() const noexcept override { return ended(); }
  void cancel(engine::MessageId message) noexcept override;
  bool withdraw(engine::MessageId message) noexcept override;
  std::optional<engine::Envelope> waiting(const engine::Envelope& wanted) override;

 private:
  // A receive. No other rank sees it.
  struct Expected {
    enum class State : std::uint8_t { kWaiting, kFilled, kRefused };
    engine::Envelope from;
    std::span<std::byte> bytes;
    engine::Envelope received;  // with the sender's rank as peer
    State state = State::kWaiting;
  };
  // The object that a MessageId names.
  struct Slot {
    enum class Use : std::uint8_t { kFree, kSend, kReceive };
    Use use = Use::kFree;
    Sent sent;
    Expected expected;
  };

  engine::MessageId take_slot(Slot::Use use);
  Slot& slot(engine::MessageId id) { return slots_[static_cast<std::size_t>(id)]; }
  void free_slot(engine::MessageId id) noexcept;
  void notify(int rank) const {
    if (notify_) notify_(rank);
  }
  // Matches recently sent messages with posted receives. Then calls `then` with the messages that
  // remain. Returns true if any message was matched.
  template <typename Then>
  bool match(Then then);
  void fill(Expected& expected, Sent& message);

  std::shared_ptr<LocalFabric> fabric_;
  int rank_;
  Notify notify_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<engine::MessageId> free_;
  engine::Receives<engine::MessageId> expected_;  // posted receives without a message
  std::vector<int> taken_from_;                   // used by `match`: the ranks to notify
  std::uint64_t arrivals_seen_ = 0;
  std::uint64_t receives_ended_ = 0;
};

}  // namespace hocket::engines::local
