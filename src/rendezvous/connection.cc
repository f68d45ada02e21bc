#include "rendezvous/connection.h"

#include <exception>

#include "rendezvous/wire.h"

namespace hocket::rendezvous {
namespace {

// Above these nothing more is read from the client until it has taken its answers, or got some.
constexpr std::size_t kMaxQueuedBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxUnanswered = 4096;
// What one connection may bring before the others have their turn.
constexpr std::size_t kTurnBytes = std::size_t{1} << 20;

}  // namespace

struct Connection::Introduction {
  Hello hello;
  Bytes hello_payload;
  Bytes challenge_payload;
};

Connection::Connection(Context& context, std::unique_ptr<Channel> channel, std::uint64_t id)
    : context_(context),
      channel_(std::move(channel)),
      descriptor_(context.io, channel_->fd()),
      id_(id) {}

Connection::~Connection() {
  if (descriptor_.is_open()) descriptor_.release();
}

void Connection::close() {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kClosed;
  to_send_.clear();
  received_ = {};
  // The descriptor goes back to the channel before that closes it.
  descriptor_.release();
  channel_.reset();
  context_.owner.closed(*this);
}

void Connection::close_when_sent() {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kLeaving;
  flush();
}

// --- In ----------------------------------------------------------------------------------------

void Connection::wait_to_read() {
  if (waits_to_read_ || stage_ >= Stage::kLeaving || is_backed_up()) return;
  waits_to_read_ = true;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [self = shared_from_this()](const std::error_code& error) {
                           self->waits_to_read_ = false;
                           if (!error) self->take_turn();
                         });
}

void Connection::take_turn() {
  try {
    read_turn();
  } catch (const std::exception&) {
    close();  // out of memory for what this client wants
  }
}

void Connection::read_turn() {
  if (!to_send_.empty()) flush();  // which may have waited for something to be read
  std::size_t turn = 0;
  while (stage_ < Stage::kLeaving && !is_backed_up()) {
    const auto [state, bytes] = channel_->receive(context_.scratch);
    if (state == Channel::State::kClosed) return close();
    if (state == Channel::State::kWantWrite) return wait_to_write();
    if (state == Channel::State::kWantRead) return wait_to_read();
    if (!consume(context_.scratch.first(bytes))) return close();
    turn += bytes;
    if (turn >= kTurnBytes) {
      // Not by waiting: the channel may hold bytes of which the descriptor knows nothing.
      asio::post(context_.io, [self = shared_from_this()] { self->take_turn(); });
      return;
    }
  }
}

// False where the client is not to be talked to any longer.
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
    received_ = {};  // and its memory
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
  Verdict verdict{.decision = Decision::kNoProof};
  if (is_proved) {
    verdict = context_.owner.judge(*this, introduction->hello);
    verdict.mac = transcript.server_mac(context_.key, verdict);
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
  to_send_.push_back({.frame = encode_reply(request, reply), .value = reply.value});
  queued_bytes_ += to_send_.back().frame.size() + (reply.value ? reply.value->size() : 0);
  flush();
  wait_to_read();
}

void Connection::send_payload(const Bytes& payload) {
  WireWriter writer;
  writer.raw(payload);
  to_send_.push_back({.frame = std::move(writer).frame(), .value = nullptr});
  queued_bytes_ += to_send_.back().frame.size();
  flush();
}

void Connection::wait_to_write() {
  if (waits_to_write_ || stage_ == Stage::kClosed) return;
  waits_to_write_ = true;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_write,
                         [self = shared_from_this()](const std::error_code& error) {
                           self->waits_to_write_ = false;
                           if (error) return;
                           self->flush();
                           self->take_turn();
                         });
}

// May be called while the owner is at work, so that closing is put off to a turn of its own.
void Connection::flush() {
  while (stage_ != Stage::kClosed && !to_send_.empty()) {
    const Outgoing& first = to_send_.front();
    const std::size_t frame_size = first.frame.size();
    const std::size_t size = frame_size + (first.value ? first.value->size() : 0);
    const auto rest = sent_ < frame_size
                          ? std::span<const std::byte>(first.frame).subspan(sent_)
                          : std::span<const std::byte>(*first.value).subspan(sent_ - frame_size);
    const auto [state, bytes] = channel_->send(rest);
    if (state == Channel::State::kClosed) break;
    if (state == Channel::State::kWantWrite) return wait_to_write();
    if (state == Channel::State::kWantRead) return wait_to_read();
    sent_ += bytes;
    queued_bytes_ -= bytes;
    if (sent_ < size) continue;
    to_send_.pop_front();
    sent_ = 0;
  }
  const bool is_broken = !to_send_.empty();
  if (stage_ != Stage::kClosed && (is_broken || stage_ == Stage::kLeaving)) {
    asio::post(context_.io, [self = shared_from_this()] { self->close(); });
  }
}

bool Connection::is_backed_up() const noexcept {
  return queued_bytes_ > kMaxQueuedBytes || unanswered_ > kMaxUnanswered;
}

}  // namespace hocket::rendezvous
