// The handshake: a client and a server of one job prove to each other that they know its key.
//
//   client  Hello      its claimed place, and a nonce
//   server  Challenge  a nonce
//   client  Proof      MAC("client", transcript)
//   server  Verdict    the decision, and MAC("server", transcript, decision)
//
// The MAC is HMAC-SHA256 under the job's key. The transcript is both first messages and the
// channel's binding (the TLS session, or the server's port). So a proof is valid for this
// connection alone. A client without a proof gets an unsigned refusal and learns nothing else.
// Parsers here are pure functions over untrusted bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "hocket/store.h"
#include "membership/rendezvous/wire/origin.h"

namespace hocket::rendezvous {

inline constexpr std::uint16_t kProtocolVersion = 5;
inline constexpr std::size_t kMaxJobBytes = 256;
// No message of a handshake has more.
inline constexpr std::size_t kMaxHandshakePayload = 512;

using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

// The basis of trust. Both ends must use the same.
enum class Trust : std::uint8_t {
  kKey,      // the job's key
  kUser,     // AF_UNIX, both ends' users checked by the kernel
  kNetwork,  // nothing: the user said that the network is trusted
};

// Values, all four.
struct Hello {
  std::uint16_t version = kProtocolVersion;
  Trust trust = Trust::kKey;
  StoreRole role = StoreRole::kMember;
  int epoch = 0;
  int rank = 0;
  int size = 0;
  Nonce nonce{};
  std::string job;
  bool is_named = true;  // `job` tells this job from the user's other ones at the same address
  Origin origin = {};    // of a rank that joins

  Bytes encode() const;  // payloads, without the frame's header
  static std::optional<Hello> parse(std::span<const std::byte> payload);
};

struct Challenge {
  std::uint16_t version = kProtocolVersion;
  Nonce nonce{};

  Bytes encode() const;
  static std::optional<Challenge> parse(std::span<const std::byte> payload);
};

struct Proof {
  Mac mac{};

  Bytes encode() const;
  static std::optional<Proof> parse(std::span<const std::byte> payload);
};

enum class Decision : std::uint8_t {
  kWelcome,         // `fact`: the rank that serves, or -1
  kNoProof,         // the key, or the kind of trust, is not the same; unsigned
  kVersion,         // `fact`: the server's version
  kJob,             // another job
  kEpoch,           // `fact`: the server's epoch
  kSize,            // `fact`: the server's number of ranks
  kRankOutOfRange,  // `fact`: the server's number of ranks
  kRankTaken,
  kFull,       // `fact`: the server's limit
  kComeLater,  // ranks with the server's parent process come first
  kOtherJob,   // another job of the user meets here; `fact`: the pid of its rank that serves
};

struct Verdict {
  Decision decision = Decision::kWelcome;
  std::int64_t fact = 0;
  Mac mac{};

  Bytes encode() const;
  static std::optional<Verdict> parse(std::span<const std::byte> payload);
};

// The bytes that the proofs authenticate. A value; contains no secret.
class Transcript {
 public:
  Transcript(std::span<const std::byte> hello,
             std::span<const std::byte> challenge,
             std::span<const std::byte> binding);

  Mac client_mac(const Key& key) const;
  Mac server_mac(const Key& key, const Verdict& verdict) const;

 private:
  Bytes bytes_;
};

// Fills at most 256 bytes with unpredictable numbers.
void fill_randomly(std::span<std::byte> bytes);
Nonce make_nonce();
// In constant time.
bool equal(const Mac& a, const Mac& b) noexcept;

}  // namespace hocket::rendezvous
