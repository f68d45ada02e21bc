#include "membership/rendezvous/wire/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "hocket/error.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

// The first bytes of each conversation, by which a client of another protocol is detected at once.
constexpr std::string_view kMagic = "hocket-store";

template <std::size_t N>
void read_array(WireReader& reader, std::array<std::byte, N>& to) {
  const auto bytes = reader.raw(N);
  if (bytes.size() == N) std::copy(bytes.begin(), bytes.end(), to.begin());
}

bool read_magic(WireReader& reader) {
  return std::ranges::equal(reader.raw(kMagic.size()), as_bytes(kMagic));
}

Mac hmac(const Key& key, std::string_view label, std::span<const std::byte> message) {
  WireWriter writer;
  writer.text(label);
  writer.raw(message);
  const Bytes labelled = writer.payload();
  Mac mac;
  unsigned int size = mac.size();
  keep_openssl();
  const auto* done = HMAC(EVP_sha256(),
                          key.bytes().data(),
                          static_cast<int>(Key::kBytes),
                          reinterpret_cast<const unsigned char*>(labelled.data()),
                          labelled.size(),
                          reinterpret_cast<unsigned char*>(mac.data()),
                          &size);
  if (done == nullptr || size != mac.size()) {
    throw RendezvousError(
        "OpenSSL cannot compute HMAC-SHA256 here; is it set to a restricted mode?");
  }
  return mac;
}

}  // namespace

Bytes Hello::encode() const {
  WireWriter writer;
  writer.raw(as_bytes(kMagic));
  writer.u16(version);
  writer.u8(static_cast<std::uint8_t>(trust));
  writer.u8(static_cast<std::uint8_t>(role));
  writer.u32(static_cast<std::uint32_t>(epoch));
  writer.u32(static_cast<std::uint32_t>(rank));
  writer.u32(static_cast<std::uint32_t>(size));
  writer.raw(nonce);
  writer.text(job);
  writer.u8(is_named ? 1 : 0);
  const std::size_t steps = std::min(origin.size(), kMaxOrigin);
  writer.u8(static_cast<std::uint8_t>(steps));
  for (std::size_t i = 0; i < steps; ++i) writer.i64(static_cast<std::int64_t>(origin[i]));
  return writer.payload();
}

std::optional<Hello> Hello::parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  if (!read_magic(reader)) return std::nullopt;
  Hello hello;
  hello.version = reader.u16();
  const std::uint8_t trust = reader.u8();
  const std::uint8_t role = reader.u8();
  hello.epoch = static_cast<int>(reader.u32());
  hello.rank = static_cast<int>(reader.u32());
  hello.size = static_cast<int>(reader.u32());
  read_array(reader, hello.nonce);
  hello.job = reader.text(kMaxJobBytes);
  const std::uint8_t named = reader.u8();
  const std::uint8_t steps = reader.u8();
  if (named > 1 || steps > kMaxOrigin) return std::nullopt;
  hello.is_named = named == 1;
  for (std::uint8_t i = 0; i < steps; ++i) {
    hello.origin.push_back(static_cast<std::uint64_t>(reader.i64()));
  }
  if (!reader.finished() || trust > static_cast<std::uint8_t>(Trust::kNetwork) ||
      role > static_cast<std::uint8_t>(StoreRole::kLauncher)) {
    return std::nullopt;
  }
  hello.trust = static_cast<Trust>(trust);
  hello.role = static_cast<StoreRole>(role);
  return hello;
}

Bytes Challenge::encode() const {
  WireWriter writer;
  writer.raw(as_bytes(kMagic));
  writer.u16(version);
  writer.raw(nonce);
  return writer.payload();
}

std::optional<Challenge> Challenge::parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  if (!read_magic(reader)) return std::nullopt;
  Challenge challenge;
  challenge.version = reader.u16();
  read_array(reader, challenge.nonce);
  if (!reader.finished()) return std::nullopt;
  return challenge;
}

Bytes Proof::encode() const { return Bytes(mac.begin(), mac.end()); }

std::optional<Proof> Proof::parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  Proof proof;
  read_array(reader, proof.mac);
  if (!reader.finished()) return std::nullopt;
  return proof;
}

Bytes Verdict::encode() const {
  WireWriter writer;
  writer.u8(static_cast<std::uint8_t>(decision));
  writer.i64(fact);
  writer.raw(mac);
  return writer.payload();
}

std::optional<Verdict> Verdict::parse(std::span<const std::byte> payload) {
  WireReader reader(payload);
  Verdict verdict;
  const std::uint8_t decision = reader.u8();
  verdict.fact = reader.i64();
  read_array(reader, verdict.mac);
  if (!reader.finished() || decision > static_cast<std::uint8_t>(Decision::kOtherJob)) {
    return std::nullopt;
  }
  verdict.decision = static_cast<Decision>(decision);
  return verdict;
}

Transcript::Transcript(std::span<const std::byte> hello,
                       std::span<const std::byte> challenge,
                       std::span<const std::byte> binding) {
  WireWriter writer;
  writer.blob(hello);
  writer.blob(challenge);
  writer.blob(binding);
  bytes_ = writer.payload();
}

Mac Transcript::client_mac(const Key& key) const {
  return hmac(key, "hocket store 1: client", bytes_);
}

Mac Transcript::server_mac(const Key& key, const Verdict& verdict) const {
  WireWriter writer;
  writer.raw(bytes_);
  writer.u8(static_cast<std::uint8_t>(verdict.decision));
  writer.i64(verdict.fact);
  return hmac(key, "hocket store 1: server", writer.payload());
}

void fill_randomly(std::span<std::byte> bytes) {
  // getrandom returns up to 256 bytes completely or not at all. EINTR is possible only before the
  // kernel's pool is ready.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) throw SystemError("cannot get random bytes", errno);
  }
}

Nonce make_nonce() {
  Nonce nonce;
  fill_randomly(nonce);
  return nonce;
}

void keep_openssl() noexcept { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }

bool equal(const Mac& a, const Mac& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hocket::rendezvous
