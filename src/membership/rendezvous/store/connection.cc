#include "membership/rendezvous/store/connection.h"

#include <exception>
#include <utility>

#include "foundation/os/sockets/socket.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

// The limits of a client's answers that it has not read, and of its requests that are not answered.
// At a limit, the server stops reading from the client.
constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxUnanswered = 4096;
// The number of bytes that are read from one connection before the others are served.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;
// Values up to this size are copied into their answer's frame.
constexpr std::size_t kCopiedBytes = 4096;
// If more answers were queued than this, their buffer is freed.
constexpr std::size_t kKeptAnswers = 8;

}  // namespace

struct Connection::Introduction {
  Hello hello;
  Bytes hello_payload;
  Bytes challenge_payload;
};

Connection::Connection(Context& context, std::unique_ptr<Channel> channel, std::uint64_t id)
    : context_(context), channel_(std::move(channel)), id_(id) {}

Connection::~Connection() = default;

void Connection::start() {
  interest_ = {.read = true};
  context_.poller.watch(channel_->fd(), id_, interest_);
}

void Connection::close() {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kClosed;
  to_send_ = {};
  received_ = {};
  channel_.reset();
  context_.owner.closed(*this);
}

void Connection::close_when_sent() {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kLeaving;
  flush();
  update_interest();
}

// --- In ----------------------------------------------------------------------------------------

void Connection::take(const os::Poller::Event& event) {
  if (stage_ == Stage::kClosed) return;
  if (event.broken && interest_ == os::Poller::Interest{}) return close();
  take_turn();
}

void Connection::take_turn() {
  if (stage_ == Stage::kClosed) return;
  if (is_doomed_) return close();
  try {
    flush();
    read_turn();
  } catch (const std::exception&) {
    return close();  // out of memory for this client's request
  }
  update_interest();
}

void Connection::read_turn() {
  std::size_t turn = 0;
  while (stage_ < Stage::kLeaving && !is_backed_up()) {
    const auto [state, bytes] = channel_->receive(context_.scratch);
    if (state == Channel::State::kClosed) {
      if (!channel_->distrust().empty()) context_.owner.distrusted(*this);
      return close();
    }
    if (state == Channel::State::kWantWrite) is_full_ = true;
    if (state != Channel::State::kMoved) return;
    // Ask before the frames are handled, because their answers use the channel too.
    const bool is_drained = channel_->is_drained();
    if (!consume(context_.scratch.first(bytes))) return close();
    if (is_drained) return;
    turn += bytes;
    // Ask for another turn, because the channel may have decrypted bytes for which the poller
    // reports nothing.
    if (turn >= kTurnBytes) return context_.owner.put_off(*this);
  }
}

// Handles received bytes. Returns false if the connection must be closed.
bool Connection::consume(std::span<const std::byte> bytes) {
  bool sane = true;
  if (received_.empty()) {
    bytes = bytes.subspan(take_frames(bytes, sane));
    if (sane && stage_ < Stage::kLeaving) received_.assign(bytes.begin(), bytes.end());
    return sane;
  }
  received_.insert(received_.end(), bytes.begin(), bytes.end());
  const std::size_t taken = take_frames(received_, sane);
  if (!sane || stage_ >= Stage::kLeaving) return sane;
  if (taken == received_.size()) {
    received_ = {};  // this frees its memory
  } else {
    received_.erase(received_.begin(), received_.begin() + static_cast<long>(taken));
  }
  return true;
}

std::size_t Connection::take_frames(std::span<const std::byte> bytes, bool& sane) {
  std::size_t taken = 0;
  while (stage_ < Stage::kLeaving) {
    const std::size_t limit = stage_ == Stage::kOpen ? kMaxPayload : kMaxHandshakePayload;
    const Frame frame = parse_frame(bytes.subspan(taken), limit);
    if (frame.state == Frame::State::kIncomplete) break;
    sane = frame.state == Frame::State::kComplete && take(frame.payload);
    if (!sane) break;
    taken += frame.size;
  }
  return taken;
}

bool Connection::take(std::span<const std::byte> payload) {
  switch (stage_) {
    case Stage::kHello:
      return take_hello(payload);
    case Stage::kProof:
      return take_proof(payload);
    case Stage::kOpen:
      return take_request(payload);
    case Stage::kLeaving:
    case Stage::kClosed:
      break;
  }
  return false;
}

bool Connection::take_hello(std::span<const std::byte> payload) {
  auto hello = Hello::parse(payload);
  if (!hello) return false;
  const Bytes challenge = Challenge{.nonce = make_nonce()}.encode();
  introduction_ = std::make_unique<Introduction>(Introduction{
      .hello = *std::move(hello),
      .hello_payload = Bytes(payload.begin(), payload.end()),
      .challenge_payload = challenge,
  });
  stage_ = Stage::kProof;
  send_payload(challenge);
  return true;
}

bool Connection::take_proof(std::span<const std::byte> payload) {
  const auto proof = Proof::parse(payload);
  if (!proof) return false;
  const auto introduction = std::move(introduction_);
  const Transcript transcript(
      introduction->hello_payload, introduction->challenge_payload, channel_->binding());
  const bool is_proved = equal(proof->mac, transcript.client_mac(context_.key)) &&
                         introduction->hello.trust == context_.trust;
  // The verdict contains the server's real port, because a proof is valid only for this port.
  Verdict verdict{.decision = Decision::kNoProof, .fact = os::local_port(channel_->fd())};
  if (is_proved) {
    verdict = context_.owner.judge(*this, introduction->hello);
    verdict.mac = transcript.server_mac(context_.key, verdict);
  } else {
    context_.owner.distrusted(*this);
  }
  stage_ = Stage::kOpen;
  send_payload(verdict.encode());
  if (verdict.decision != Decision::kWelcome) close_when_sent();
  return true;
}

bool Connection::take_request(std::span<const std::byte> payload) {
  auto request = parse_request(payload);
  if (!request) return false;
  ++unanswered_;
  context_.owner.handle(*this, *std::move(request));
  return true;
}

// --- Out ---------------------------------------------------------------------------------------

void Connection::reply(std::uint32_t request, const Reply& reply) {
  if (stage_ == Stage::kClosed) return;
  --unanswered_;
  Outgoing answer{.frame = encode_reply(request, reply), .value = reply.value};
  if (answer.value && answer.value->size() <= kCopiedBytes) {
    answer.frame.insert(answer.frame.end(), answer.value->begin(), answer.value->end());
    answer.value.reset();
  }
  queued_bytes_ += answer.frame.size() + (answer.value ? answer.value->size() : 0);
  to_send_.push_back(std::move(answer));
  flush();
  update_interest();
}

void Connection::send_payload(const Bytes& payload) {
  WireWriter writer;
  writer.raw(payload);
  to_send_.push_back({.frame = std::move(writer).frame(), .value = nullptr});
  queued_bytes_ += to_send_.back().frame.size();
  flush();
}

// Sends as much as the channel accepts. If the connection has broken, a later turn closes it,
// because the server may be in the middle of other work now.
void Connection::flush() {
  is_full_ = false;
  while (stage_ != Stage::kClosed && first_ < to_send_.size()) {
    Outgoing& first = to_send_[first_];
    const std::size_t frame_size = first.frame.size();
    const std::size_t size = frame_size + (first.value ? first.value->size() : 0);
    const auto rest = sent_ < frame_size
                          ? std::span<const std::byte>(first.frame).subspan(sent_)
                          : std::span<const std::byte>(*first.value).subspan(sent_ - frame_size);
    const auto [state, bytes] = channel_->send(rest);
    if (state == Channel::State::kClosed) return close_later();
    if (state == Channel::State::kWantWrite) is_full_ = true;
    if (state != Channel::State::kMoved) return;
    sent_ += bytes;
    queued_bytes_ -= bytes;
    if (sent_ < size) continue;
    first = {};
    ++first_;
    sent_ = 0;
  }
  to_send_.clear();
  if (first_ > kKeptAnswers) to_send_.shrink_to_fit();
  first_ = 0;
  if (stage_ == Stage::kLeaving) close_later();
}

void Connection::close_later() {
  if (!std::exchange(is_doomed_, true)) context_.owner.put_off(*this);
}

// Tells the poller which events to wait for, if they have changed.
void Connection::update_interest() {
  if (stage_ == Stage::kClosed) return;
  const os::Poller::Interest wanted{.read = stage_ < Stage::kLeaving && !is_backed_up(),
                                    .write = is_full_};
  if (wanted == interest_) return;
  try {
    // Ask for a turn: for data that the channel already has, the descriptor does not become
    // readable again.
    if (wanted.read && !interest_.read) context_.owner.put_off(*this);
    context_.poller.change(channel_->fd(), id_, wanted);
    interest_ = wanted;
  } catch (const std::exception&) {
    close_later();
  }
}

bool Connection::is_backed_up() const noexcept {
  return queued_bytes_ > kMaxQueuedBytes || unanswered_ > kMaxUnanswered;
}

}  // namespace hocket::rendezvous
