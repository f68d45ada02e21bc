// Messages between ranks that are threads of one process: the plainest carrier there is, and the
// reference that others are held against.
//
// A message stays where its sender has it until its receiver, in its own thread, copies it straight
// into place. Only the list of what has been sent is shared, a list and a mutex for each receiver.
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

// A message from `send` until its sender has given its handle back. Lives with the sender; all but
// `state` is written by the sender before it is listed, and by the receiver while it holds the
// mutex of its mailbox.
struct Sent {
  enum class State : std::uint8_t { kWaiting, kTaken, kRefused };

  int source = 0;
  engine::Envelope to;
  std::span<const std::byte> bytes;
  engine::Envelope wanted;  // what a receiver that refused it expected
  std::atomic<State> state{State::kWaiting};
};

// By source and tag.
using SentQueue = engine::KeyedQueue<Sent*>;

// Called when something has changed for `rank`: a message for it was sent, or one of its own was
// taken. In the thread of the rank that did it, without locks held; must not block.
using Notify = std::function<void(int rank)>;

// A resource, shared by the ranks of a group. Safe from any thread; owns no thread. Never fails.
class LocalFabric {
 public:
  explicit LocalFabric(int size);
  int size() const noexcept { return static_cast<int>(mailboxes_.size()); }

 private:
  friend class LocalPointToPoint;
  struct Mailbox {
    std::mutex mutex;
    // Both guarded by mutex.
    std::deque<Sent*> fresh;  // since the receiver has looked, in the order of sending
    SentQueue sent;           // earlier ones
    std::atomic<std::uint64_t> arrivals{0};     // how many ever; written under mutex
    std::atomic<std::uint64_t> sends_ended{0};  // of messages that this rank has sent
  };
  Mailbox& mailbox(int rank) { return *mailboxes_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by receiver
};

// See engine::PointToPoint. A resource, one a rank; keeps the fabric alive. Messages that are still
// under way when it is destroyed are taken back. Ranks may send to themselves.
class LocalPointToPoint final : public engine::PointToPoint {
 public:
  // `notify` is called by this rank alone, and never after its destruction has begun.
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
  // A receive, known to this rank alone.
  struct Expected {
    enum class State : std::uint8_t { kWaiting, kFilled, kRefused };
    engine::Envelope from;
    std::span<std::byte> bytes;
    engine::Envelope received;  // with the sender's rank as peer
    State state = State::kWaiting;
  };
  // What a MessageId names.
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
  // Pairs what was sent lately with what is expected, as far as possible, and calls `then` with
  // what nobody expects. True when any was paired.
  template <typename Then>
  bool match(Then then);
  void fill(Expected& expected, Sent& message);

  std::shared_ptr<LocalFabric> fabric_;
  int rank_;
  Notify notify_;
  std::deque<Slot> slots_;  // a deque: slots must not move
  std::vector<engine::MessageId> free_;
  engine::Receives<engine::MessageId> expected_;  // those without a message
  std::vector<int> taken_from_;                   // of `match`: whom to notify
  std::uint64_t arrivals_seen_ = 0;
  std::uint64_t receives_ended_ = 0;
};

}  // namespace hocket::engines::local
