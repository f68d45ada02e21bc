// Messages between ranks that are threads of one process. This is the simplest carrier, and the
// reference for the others.
//
// The receiver's thread copies a message straight from the sender's memory into its own. The ranks
// share only a list of sent messages for each receiver, and its mutex.
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

// A message from `send` until the sender has returned its handle. The sender owns it. The sender
// writes all members before it lists the message. After that the receiver writes `wanted` under the
// mailbox's mutex, and `state` is atomic.
struct Sent {
  enum class State : std::uint8_t { kWaiting, kTaken, kRefused };

  int source = 0;
  engine::Envelope to;
  std::span<const std::byte> bytes;
  engine::Envelope wanted;  // what a receiver that refused it had expected
  std::atomic<State> state{State::kWaiting};
};

// Keys are source and tag.
using SentQueue = engine::KeyedQueue<Sent*>;

// Called when something has changed for `rank`: a message for it was sent, or one of its own was
// taken. It runs in the thread of the rank that caused the change, without locks, and must not
// block.
using Notify = std::function<void(int rank)>;

// A resource that the ranks of a group share. Any thread may use it. It owns no thread and never
// fails.
class LocalFabric {
 public:
  explicit LocalFabric(int size);
  int size() const noexcept { return static_cast<int>(mailboxes_.size()); }

 private:
  friend class LocalPointToPoint;
  struct Mailbox {
    std::mutex mutex;
    // The mutex guards both.
    std::deque<Sent*> fresh;  // sent since the receiver last looked, in the order of sending
    SentQueue sent;           // earlier messages
    std::atomic<std::uint64_t> arrivals{0};     // total number; written under the mutex
    std::atomic<std::uint64_t> sends_ended{0};  // of messages that this rank has sent
  };
  Mailbox& mailbox(int rank) { return *mailboxes_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // indexed by receiver
};

// See engine::PointToPoint. A resource, one for each rank; it keeps the fabric alive. Its
// destructor takes back messages that have not ended. Ranks may send to themselves.
class LocalPointToPoint final : public engine::PointToPoint {
 public:
  // This object alone calls `notify`, and not after its destruction has begun.
  LocalPointToPoint(std::shared_ptr<LocalFabric> fabric, int rank, Notify notify = {});
  ~LocalPointToPoint() override;
  LocalPointToPoint(const LocalPointToPoint&) = delete;
  LocalPointToPoint& operator=(const LocalPointToPoint&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  std::optional<std::uint64_t> ended() const noexcept override;
  // Messages are copied whole, so that none is ever partly moved.
  std::optional<std::uint64_t> moves_at_rest() const noexcept override { return ended(); }
  void cancel(engine::MessageId message) noexcept override;
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
  // Matches recently sent messages with expected ones, and calls `then` with the messages that
  // remain. Returns true if any were matched.
  template <typename Then>
  bool match(Then then);
  void fill(Expected& expected, Sent& message);

  std::shared_ptr<LocalFabric> fabric_;
  int rank_;
  Notify notify_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<engine::MessageId> free_;
  engine::Receives<engine::MessageId> expected_;  // receives without a message
  std::vector<int> taken_from_;                   // filled by `match`: the ranks to notify
  std::uint64_t arrivals_seen_ = 0;
  std::uint64_t receives_ended_ = 0;
};

}  // namespace hocket::engines::local
