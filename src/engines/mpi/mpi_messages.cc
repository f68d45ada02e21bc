#include "engines/mpi/mpi_messages.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "foundation/base/log.h"
#include "hocket/error.h"

namespace hocket::engines::mpi {

using engine::Envelope;
using engine::MessageId;

namespace {

constexpr int kWords = 0;  // MPI's tag of all words; higher tags are for messages
constexpr int kLastTag = 32767;

}  // namespace

MpiMessages::MpiMessages(std::shared_ptr<Comm> comm, int size, std::shared_ptr<void> memory)
    : comm_(std::move(comm)),
      library_(comm_->library()),
      memory_(std::move(memory)),
      last_tags_(static_cast<std::size_t>(size)) {}

// Cancels all messages. Sends whose receivers become ready now are not started any more.
MpiMessages::~MpiMessages() {
  waiting_.clear();
  try {
    if (!broken_) take_words();
  } catch (const std::exception& error) {
    break_off(error.what());
  }
  for (std::uint32_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].state != Message::State::kFree) cancel(MessageId{i});
  }
  if (coming_) leaving_.push_back(std::move(*coming_));
  for (Flying& flying : leaving_) {
    if (flying.request != nullptr) library_.abandon(flying.request, std::move(flying.word));
  }
}

std::uint32_t MpiMessages::allocate() {
  if (free_.empty()) {
    free_.reserve(messages_.size() + 1);  // so that `free` never allocates
    messages_.emplace_back();
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

void MpiMessages::free(std::uint32_t index) {
  messages_[index] = Message{};
  free_.push_back(index);
}

void MpiMessages::require_whole() const {
  if (spoilt_) throw DeviceError("a message of GPUs' memory that was called off is still MPI's");
}

// Records an error of MPI. Waiting threads see it by `is_broken`. This does not fail the group: the
// cause may be the death of a rank, which other layers report more precisely.
void MpiMessages::break_off(const char* what) noexcept {
  if (std::exchange(broken_, true)) return;
  MpiLibrary::keep(memory_);
  base::log(base::LogLevel::kDebug, what);
}

// --- The interface ------------------------------------------------------------------------------

MessageId MpiMessages::send(const Envelope& to, std::span<const std::byte> bytes) {
  require_whole();
  const std::uint32_t index = allocate();
  Message& message = messages_[index];
  message = {.state = Message::State::kWaiting,
             .receives = false,
             .envelope = to,
             .received = to,
             .bytes = const_cast<std::byte*>(bytes.data()),
             .size = bytes.size()};
  const auto found = std::ranges::find_if(ready_, [&](const Ready& ready) {
    return ready.peer == to.peer && ready.word.tag == to.tag;
  });
  if (found == ready_.end()) {
    waiting_.push_back(index);
    return MessageId{index};
  }
  const Word word = found->word;
  ready_.erase(found);
  answer(message, word);
  return MessageId{index};
}

MessageId MpiMessages::recv(const Envelope& from, std::span<std::byte> bytes) {
  require_whole();
  const std::uint32_t index = allocate();
  Message& message = messages_[index];
  int& tag = last_tags_[static_cast<std::size_t>(from.peer)];
  // Tags may be reused, because far fewer than kLastTag receives are in progress.
  tag = tag == kLastTag ? kWords + 1 : tag + 1;
  message = {.state = Message::State::kMoving,
             .receives = true,
             .envelope = from,
             .received = from,
             .bytes = bytes.data(),
             .size = bytes.size(),
             .tag = tag};
  post(message);
  tell(from.peer,
       {.tag = from.tag, .count = from.count, .type = Word::Type::kReady, .mpi_tag = tag});
  return MessageId{index};
}

bool MpiMessages::test(MessageId id, Envelope* received) {
  const auto index = static_cast<std::uint32_t>(id);
  Message& message = messages_[index];
  if (message.state == Message::State::kMismatch) {
    throw engine::EnvelopeMismatch{message.envelope, message.received};
  }
  if (message.state != Message::State::kMoving || message.request == nullptr) return false;
  try {
    if (!library_.test(message.request)) return false;
  } catch (const SystemError& error) {
    break_off(error.what());
    return false;
  }
  if (received != nullptr) *received = message.received;
  moved_ = true;
  free(index);
  return true;
}

bool MpiMessages::progress() {
  if (broken_) return false;
  try {
    std::erase_if(leaving_, [this](Flying& flying) { return library_.test(flying.request); });
    return take_words() || std::exchange(moved_, false);
  } catch (const SystemError& error) {
    break_off(error.what());
    return false;
  }
}

void MpiMessages::cancel(MessageId id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  Message& message = messages_[index];
  std::erase(waiting_, index);
  if (message.request != nullptr) {
    spoilt_ = true;
    // A sender that found a different length never sends, so the receive can be cancelled.
    if (message.state == Message::State::kMismatch) library_.withdraw(message.request);
    library_.abandon(message.request, memory_);
  }
  free(index);
}

// --- Words --------------------------------------------------------------------------------------

void MpiMessages::post(Message& message) {
  if (broken_) return;
  try {
    message.request = library_.post(
        *comm_,
        {.way = message.receives ? ShimMessage::Way::kReceive : ShimMessage::Way::kSendFully,
         .bytes = message.bytes,
         .count = static_cast<std::int32_t>(message.size),
         .peer = message.envelope.peer,
         .tag = message.tag});
  } catch (const SystemError& error) {
    break_off(error.what());
  }
}

void MpiMessages::tell(int peer, Word word) {
  if (broken_) return;
  Flying flying{std::make_shared<Word>(word)};
  try {
    flying.request = library_.post(*comm_,
                                   {.way = ShimMessage::Way::kSend,
                                    .bytes = flying.word.get(),
                                    .count = sizeof(Word),
                                    .peer = peer,
                                    .tag = kWords});
    leaving_.push_back(std::move(flying));
  } catch (const SystemError& error) {
    break_off(error.what());
  }
}

// Receives and handles words, one after the other, in the order in which each peer sent them.
bool MpiMessages::take_words() {
  bool moved = false;
  while (true) {
    if (!coming_) {
      const auto peer = library_.probe(*comm_, kWords);
      if (!peer) return moved;
      coming_from_ = *peer;
      coming_ = {std::make_shared<Word>()};
      coming_->request = library_.post(*comm_,
                                       {.way = ShimMessage::Way::kReceive,
                                        .bytes = coming_->word.get(),
                                        .count = sizeof(Word),
                                        .peer = *peer,
                                        .tag = kWords});
    }
    if (!library_.test(coming_->request)) return moved;
    const Word word = *coming_->word;
    coming_.reset();
    take(coming_from_, word);
    moved = true;
  }
}

void MpiMessages::take(int peer, const Word& word) {
  if (word.mpi_tag <= kWords || word.mpi_tag > kLastTag) return;
  const auto concerns = [&](const Message& message) {
    return message.envelope.peer == peer && message.envelope.tag == word.tag;
  };
  if (word.type == Word::Type::kRefuse) {
    const auto refused = std::ranges::find_if(messages_, [&](const Message& message) {
      return message.state == Message::State::kMoving && message.receives && concerns(message) &&
             message.tag == word.mpi_tag;
    });
    if (refused == messages_.end()) return;
    refused->state = Message::State::kMismatch;
    refused->received.count = word.count;
    return;
  }
  const auto found = std::ranges::find_if(
      waiting_, [&](std::uint32_t index) { return concerns(messages_[index]); });
  if (found == waiting_.end()) {
    ready_.push_back({peer, word});
    return;
  }
  Message& message = messages_[*found];
  waiting_.erase(found);
  answer(message, word);
}

// Starts a send whose receiver is ready, or refuses if the receiver expects a different length.
void MpiMessages::answer(Message& message, const Word& word) {
  if (word.count == message.envelope.count) {
    message.state = Message::State::kMoving;
    message.tag = word.mpi_tag;
    return post(message);
  }
  message.state = Message::State::kMismatch;
  message.received.count = word.count;
  tell(message.envelope.peer,
       {.tag = word.tag,
        .count = message.envelope.count,
        .type = Word::Type::kRefuse,
        .mpi_tag = word.mpi_tag});
}

}  // namespace hocket::engines::mpi
