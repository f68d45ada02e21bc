#include "membership/control/lane.h"

#include <array>

#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/control/facts.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {

using rendezvous::Challenge;
using rendezvous::Channel;
using rendezvous::Decision;
using rendezvous::Frame;
using rendezvous::Hello;
using rendezvous::Proof;
using rendezvous::Side;
using rendezvous::Verdict;

namespace {

// The job's name in the handshake of lanes. It differs from the name in the handshake of the job's
// store, which uses the same protocol.
std::string lane_job(const std::string& job) { return "lane/" + job.substr(0, 200); }

}  // namespace

Lane::Lane(std::unique_ptr<Channel> channel, Side side, const LaneIdentity& identity)
    : channel_(std::move(channel)),
      identity_(identity),
      stage_(side == Side::kServer ? Stage::kHello : Stage::kChallenge) {
  if (side == Side::kServer) return;
  hello_ = Hello{.epoch = identity.epoch,
                 .rank = identity.rank,
                 .size = identity.size,
                 .nonce = rendezvous::make_nonce(),
                 .job = lane_job(identity.job)}
               .encode();
  push_payload(hello_);
}

void Lane::send(std::span<const std::byte> frame) {
  if (!is_open()) return;
  push(frame);
  flush();
}

void Lane::push(std::span<const std::byte> frame) {
  to_send_.insert(to_send_.end(), frame.begin(), frame.end());
  sent_at_ = Clock::now();
}

void Lane::push_payload(const Bytes& payload) {
  rendezvous::WireWriter writer;
  writer.raw(payload);
  push(std::move(writer).frame());
}

void Lane::flush() {
  std::size_t sent = 0;
  while (sent < to_send_.size() && stage_ != Stage::kClosed) {
    const auto [state, bytes] = channel_->send(std::span<const std::byte>(to_send_).subspan(sent));
    if (state == Channel::State::kClosed) close();
    if (state != Channel::State::kMoved) break;
    sent += bytes;
  }
  to_send_.erase(to_send_.begin(), to_send_.begin() + static_cast<std::ptrdiff_t>(sent));
}

bool Lane::is_heard() const noexcept { return !wants_to_write() && !os::has_unacknowledged(fd()); }

void Lane::move(const Take& take) {
  std::array<std::byte, 16 * 1024> chunk;
  flush();
  bool closing = false;
  while (stage_ != Stage::kClosed && !closing) {
    const auto [state, bytes] = channel_->receive(chunk);
    closing = state == Channel::State::kClosed;  // first handle all bytes that have arrived
    if (!closing && state != Channel::State::kMoved) break;
    received_.insert(
        received_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (bytes != 0) {
      heard_ = Clock::now();
      os::acknowledge_now(fd());  // a peer that leaves waits for it
    }
    std::size_t taken = 0;
    while (stage_ != Stage::kClosed) {
      const std::size_t most = is_open() ? kMaxFactFrame : rendezvous::kMaxHandshakePayload;
      const Frame frame =
          rendezvous::parse_frame(std::span<const std::byte>(received_).subspan(taken), most);
      if (frame.state == Frame::State::kIncomplete) break;
      if (frame.state == Frame::State::kTooLong) {
        close();
      } else if (is_open()) {
        take(frame.payload);
      } else if (!take_handshake(frame.payload)) {
        close();
      }
      taken += frame.size;
    }
    received_.erase(
        received_.begin(),
        received_.begin() + static_cast<std::ptrdiff_t>(std::min(taken, received_.size())));
  }
  if (closing) close();
  if (stage_ != Stage::kClosed) flush();
}

// --- The handshake ------------------------------------------------------------------------------

bool Lane::take_handshake(std::span<const std::byte> payload) {
  try {
    switch (stage_) {
      case Stage::kHello:
        return take_hello(payload);
      case Stage::kChallenge:
        return take_challenge(payload);
      case Stage::kProof:
        return take_proof(payload);
      case Stage::kVerdict:
        return take_verdict(payload);
      case Stage::kOpen:
      case Stage::kClosed:
        break;
    }
  } catch (const Error&) {
    // The channel has no binding to this connection, so the handshake cannot succeed.
  }
  return false;
}

rendezvous::Transcript Lane::transcript() const {
  return rendezvous::Transcript(hello_, challenge_, channel_->binding());
}

bool Lane::take_hello(std::span<const std::byte> payload) {
  const auto hello = Hello::parse(payload);
  if (!hello || hello->version != rendezvous::kProtocolVersion || hello->epoch != identity_.epoch ||
      hello->size != identity_.size || hello->job != lane_job(identity_.job) || hello->rank < 0 ||
      hello->rank >= identity_.size) {
    return false;
  }
  peer_ = hello->rank;
  hello_.assign(payload.begin(), payload.end());
  challenge_ = Challenge{.nonce = rendezvous::make_nonce()}.encode();
  push_payload(challenge_);
  stage_ = Stage::kProof;
  return true;
}

bool Lane::take_challenge(std::span<const std::byte> payload) {
  if (!Challenge::parse(payload)) return false;
  challenge_.assign(payload.begin(), payload.end());
  push_payload(Proof{transcript().client_mac(identity_.key)}.encode());
  stage_ = Stage::kVerdict;
  return true;
}

bool Lane::take_proof(std::span<const std::byte> payload) {
  const auto proof = Proof::parse(payload);
  if (!proof || !rendezvous::equal(proof->mac, transcript().client_mac(identity_.key)))
    return false;
  Verdict verdict{.decision = Decision::kWelcome, .fact = identity_.rank};
  verdict.mac = transcript().server_mac(identity_.key, verdict);
  push_payload(verdict.encode());
  stage_ = Stage::kOpen;
  was_open_ = true;
  return true;
}

bool Lane::take_verdict(std::span<const std::byte> payload) {
  const auto verdict = Verdict::parse(payload);
  if (!verdict || verdict->decision != Decision::kWelcome || verdict->fact < 0 ||
      verdict->fact >= identity_.size ||
      !rendezvous::equal(verdict->mac, transcript().server_mac(identity_.key, *verdict))) {
    return false;
  }
  peer_ = static_cast<int>(verdict->fact);
  stage_ = Stage::kOpen;
  was_open_ = true;
  return true;
}

}  // namespace hocket::control
