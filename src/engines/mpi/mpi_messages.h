// Messages between the memories of GPUs, over MPI's messages.
//
// MPI can cancel neither a send nor a receive that was matched. So it gets the memory of a message
// only when both sides are ready:
//
//   receiver                                 sender
//   posts its receive with a new MPI tag
//   sends the word "ready" ----------------> matches it with its send
//            <------------------------------ sends the bytes with this MPI tag
//
// A *word* is a small control message in host memory. "ready" describes the expected message. So
// MPI never gets a message that no receive expects, and the sender notices a different length
// before it sends.
//
// If a message is cancelled after MPI got its memory, the message and the memory belong to MPI
// until the message ends. The group has then failed and starts no new message: bytes may still
// arrive, and nothing tells for which message.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "engine/point_to_point.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// See engine::PointToPoint, with two differences. After `cancel`, MPI may still access the
// message's memory. Every receive must name its source rank.
class MpiMessages final : public engine::PointToPoint {
 public:
  // `comm` is the communicator of the group; no other object may send messages in it. `memory` owns
  // the memory in which the bytes of all messages lie.
  MpiMessages(std::shared_ptr<Comm> comm, int size, std::shared_ptr<void> memory);
  ~MpiMessages() override;
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  void cancel(engine::MessageId message) noexcept override;

  // Returns whether MPI has reported an error, which was logged. Then no message makes progress.
  bool is_broken() const noexcept { return broken_; }

 private:
  struct Message {
    enum class State : std::uint8_t {
      kFree,
      kWaiting,   // send: the receiver is not ready
      kMoving,    // MPI has the memory
      kMismatch,  // the other rank has a different length
    };
    State state = State::kFree;
    bool receives = false;
    engine::Envelope envelope;  // as passed on this rank
    engine::Envelope received;  // as passed on the other rank
    std::byte* bytes = nullptr;
    std::size_t size = 0;
    int tag = 0;  // MPI's tag
    void* request = nullptr;
  };
  // A control message between ranks. It is in host byte order, because all ranks of a job run the
  // same build.
  struct Word {
    enum class Type : std::uint32_t { kReady, kRefuse };
    std::uint64_t tag = 0;    // hocket's tag of the message
    std::uint64_t count = 0;  // length of the message on the rank that sends the word
    Type type = Type::kReady;
    std::int32_t mpi_tag = 0;
  };
  struct Ready {
    int peer = 0;
    Word word;
  };
  // A word in transfer. MPI owns its memory until the transfer has ended.
  struct Flying {
    std::shared_ptr<Word> word;
    void* request = nullptr;
  };

  std::uint32_t allocate();
  void free(std::uint32_t index);
  void require_whole() const;
  void post(Message& message);
  void tell(int peer, Word word);
  void take(int peer, const Word& word);
  void answer(Message& message, const Word& word);
  bool take_words();
  void break_off(const char* what) noexcept;

  std::shared_ptr<Comm> comm_;
  MpiLibrary& library_;
  const std::shared_ptr<void> memory_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> waiting_;  // sends whose receivers are not ready, in order
  std::list<Ready> ready_;              // words of receivers whose sends are not there, in order
  std::vector<int> last_tags_;          // the last MPI tag given out, for each peer
  std::list<Flying> leaving_;           // words that this rank sends
  std::optional<Flying> coming_;        // the word that this rank receives now
  int coming_from_ = 0;
  bool moved_ = false;  // a message has ended since the last `progress`
  bool broken_ = false;
  bool spoilt_ = false;  // MPI still has the memory of a cancelled message
};

}  // namespace hocket::engines::mpi
