// Messages between GPUs' memories over MPI's messages.
//
// MPI cannot cancel a send, nor a receive that was matched. So it gets no memory before both sides
// are ready:
//
//   receiver                                 sender
//   posts its receive with a new MPI tag
//   sends the word "ready" ----------------> matches it with its send
//            <------------------------------ sends the bytes with that tag
//
// The word travels in host memory and describes the expected message. MPI never sees a message that
// is not wanted, and the words reveal messages of different lengths.
//
// A message that is cancelled later belongs to MPI until it ends, and so does its memory. No new
// message is started after that. The group has failed, because it cannot know whose bytes still
// arrive.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "engine/point_to_point.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// See engine::PointToPoint. It differs in that `cancel` may leave a message with MPI. Every receive
// names its source rank.
class MpiMessages final : public engine::PointToPoint {
 public:
  // `comm` is the communicator of the group; no other object sends messages in it. `memory`
  // contains the bytes of all messages.
  MpiMessages(std::shared_ptr<Comm> comm, int size, std::shared_ptr<void> memory);
  ~MpiMessages() override;
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  void cancel(engine::MessageId message) noexcept override;

  // Returns whether MPI has reported an error. Then no message makes progress. The error was
  // logged.
  bool is_broken() const noexcept { return broken_; }

 private:
  struct Message {
    enum class State : std::uint8_t {
      kFree,
      kWaiting,   // send: its receiver is not ready
      kMoving,    // MPI has it
      kRefused,   // send: the receiver reported that it expects something else
      kMismatch,  // receive: the sender has something else
    };
    State state = State::kFree;
    bool receives = false;
    engine::Envelope envelope;  // as this side passed it
    engine::Envelope received;  // as the other side passed it
    std::byte* bytes = nullptr;
    std::size_t size = 0;
    int tag = 0;  // MPI's tag
    void* request = nullptr;
  };
  // A control message between ranks, in host byte order: all ranks of a job run one build.
  struct Word {
    enum class Type : std::uint32_t { kReady, kRefuse };
    std::uint64_t tag = 0;    // hocket's tag
    std::uint64_t count = 0;  // of the rank that sends the word
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
  std::vector<std::uint32_t> waiting_;  // sends, in order
  std::list<Ready> ready_;              // receivers whose sends have not been made yet, in order
  std::vector<int> last_tags_;          // the last MPI tag given out, for each peer
  std::list<Flying> leaving_;
  std::optional<Flying> coming_;
  int coming_from_ = 0;
  bool moved_ = false;  // a message has ended since the last query
  bool broken_ = false;
  bool spoilt_ = false;  // MPI still has a cancelled message
};

}  // namespace hocket::engines::mpi
