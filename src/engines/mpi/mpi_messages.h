// Messages between GPUs' memories over MPI's own.
//
// MPI cannot take back a send, nor a receive that has met one. So it gets no memory before both
// sides are there: the receiver posts its receive under a tag of its own and tells the sender, by a
// word in host memory, that it is ready, for what, and under which tag; the sender, once it has
// what is wanted, sends it under that tag. What is never wanted stays out of MPI's hands, and what
// differs in length is found out by the words.
//
// A message that is called off after that is MPI's until it ends, and its memory stays as long.
// Then nothing more is begun here: the group has failed, as it could not know whose bytes still
// come.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "engine/point_to_point.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// See engine::PointToPoint, which this is but for what `cancel` leaves with MPI. All receives are
// from a rank that is named.
class MpiMessages final : public engine::PointToPoint {
 public:
  // `comm`: of the group; nobody else sends messages in it. `memory`: what the bytes of all
  // messages lie in.
  MpiMessages(std::shared_ptr<Comm> comm, int size, std::shared_ptr<void> memory);
  ~MpiMessages() override;
  MpiMessages(const MpiMessages&) = delete;
  MpiMessages& operator=(const MpiMessages&) = delete;

  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override;
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override;
  bool test(engine::MessageId message, engine::Envelope* received) override;
  bool progress() override;
  void cancel(engine::MessageId message) noexcept override;

  // MPI has refused something: no message goes on. What it said has been logged.
  bool is_broken() const noexcept { return broken_; }

 private:
  struct Message {
    enum class State : std::uint8_t {
      kFree,
      kWaiting,   // send: its receiver has not said that it is ready
      kMoving,    // MPI has it
      kRefused,   // send: the receiver, who says so, is ready for something else
      kMismatch,  // receive: the sender has something else
    };
    State state = State::kFree;
    bool receives = false;
    engine::Envelope envelope;  // as given
    engine::Envelope received;  // as the other side has it
    std::byte* bytes = nullptr;
    std::size_t size = 0;
    int tag = 0;  // MPI's
    void* request = nullptr;
  };
  // What ranks tell each other. Host byte order: all ranks of a job run one build.
  struct Word {
    enum class Type : std::uint32_t { kReady, kRefuse };
    std::uint64_t tag = 0;    // hocket's
    std::uint64_t count = 0;  // of who says it
    Type type = Type::kReady;
    std::int32_t mpi_tag = 0;
  };
  struct Ready {
    int peer = 0;
    Word word;
  };
  // A word on its way; its memory stays MPI's until it has ended.
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
  std::list<Ready> ready_;              // receivers whose sends are not here yet, in order
  std::vector<int> last_tags_;          // MPI's, given out by peer
  std::list<Flying> leaving_;
  std::optional<Flying> coming_;
  int coming_from_ = 0;
  bool moved_ = false;  // a message has ended since it was last asked
  bool broken_ = false;
  bool spoilt_ = false;  // something that was called off is still MPI's
};

}  // namespace hocket::engines::mpi
