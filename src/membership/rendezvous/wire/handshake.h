// The handshake, in which a client and a server of one job prove to each other that they know the
// job's key:
//
//   client  Hello      its claimed place, and a nonce
//   server  Challenge  a nonce
//   client  Proof      MAC("client", transcript)
//   server  Verdict    the decision, and MAC("server", transcript, decision)
//
// The MAC is HMAC-SHA256 under the job's key. The transcript consists of the first two messages and
// of the channel's binding (the TLS session, or the server's port). So a proof is valid only for
// this connection. A client without a valid proof gets an unsigned refusal and learns nothing else.
// The parsers are pure functions of untrusted bytes.
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
// The largest payload of a handshake message, in bytes.
inline constexpr std::size_t kMaxHandshakePayload = 512;

using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

// The reason why the two ends trust each other. Both ends must use the same.
enum class Trust : std::uint8_t {
  kKey,      // the job's key
  kUser,     // AF_UNIX; each end checks the other's user, which the kernel tells
  kNetwork,  // none: the user has said that the network is trusted
};

// The four messages. Values. `encode` and `parse` handle payloads, without the frame's header.
struct Hello {
  std::uint16_t version = kProtocolVersion;
  Trust trust = Trust::kKey;
  StoreRole role = StoreRole::kMember;
  int epoch = 0;
  int rank = 0;
  int size = 0;
  Nonce nonce{};
  std::string job;
  bool is_named = true;  // `job` distinguishes this job from others at the address
  Origin origin = {};    // for a rank that joins; see origin.h

  Bytes encode() const;
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
  kNoProof,         // the keys, or the kinds of trust, differ; unsigned
  kVersion,         // `fact`: the server's version
  kJob,             // another job
  kEpoch,           // `fact`: the server's epoch
  kSize,            // `fact`: the server's number of ranks
  kRankOutOfRange,  // `fact`: the server's number of ranks
  kRankTaken,
  kFull,       // `fact`: the server's limit
  kComeLater,  // first come ranks whose parent is the server's parent
  kOtherJob,   // another job of the user meets here; `fact`: the pid of its rank that serves
};

struct Verdict {
  Decision decision = Decision::kWelcome;
  std::int64_t fact = 0;
  Mac mac{};

  Bytes encode() const;
  static std::optional<Verdict> parse(std::span<const std::byte> payload);
};

// The bytes that the proofs authenticate. A value. It contains no secret.
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

// Keeps OpenSSL usable until the process has ended, because threads may use it while the process
// exits. It must be called before any other function of OpenSSL. It has no effect if another
// library has already initialized OpenSSL.
void keep_openssl() noexcept;

// Fills `bytes`, at most 256, with unpredictable numbers.
void fill_randomly(std::span<std::byte> bytes);
Nonce make_nonce();
// Compares in constant time, so that the duration reveals nothing about the codes.
bool equal(const Mac& a, const Mac& b) noexcept;

}  // namespace hocket::rendezvous
