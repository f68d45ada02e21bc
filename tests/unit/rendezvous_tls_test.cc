// TLS channels: the key and nothing else opens them.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "foundation/base/deadline.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "hocket/store.h"
#include "membership/rendezvous/wire/channel.h"
#include "rendezvous_stores.h"

namespace hocket::rendezvous {
namespace {

using base::Deadline;
using testing::kPatience;
using State = Channel::State;

std::pair<os::Fd, os::Fd> socket_pair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {os::Fd(fds[0]), os::Fd(fds[1])};
}

// Goes on until the operation moves bytes or the channel is closed.
template <typename Operation>
Channel::Result until_done(const Channel& channel, const Operation& operation) {
  for (;;) {
    const Channel::Result result = operation();
    if (result.state == State::kMoved || result.state == State::kClosed) return result;
    const auto wanted =
        result.state == State::kWantRead ? os::Readiness::kRead : os::Readiness::kWrite;
    if (!os::wait_ready(channel.fd(), wanted, Deadline::in(kPatience))) return {};
  }
}

Channel::Result send_text(Channel& channel, std::string_view text) {
  return until_done(channel, [&] { return channel.send(as_bytes(text)); });
}

std::string receive_text(Channel& channel) {
  std::array<std::byte, 100> bytes;
  const auto result = until_done(channel, [&] { return channel.receive(bytes); });
  return to_string(std::span(bytes).first(result.bytes));
}

struct Ends {
  std::unique_ptr<Channel> client;
  std::unique_ptr<Channel> server;
};

Ends connect(const Key& client_key, const Key& server_key) {
  auto [a, b] = socket_pair();
  return {make_tls_channel(std::move(a), make_tls_context(Side::kClient, client_key)),
          make_tls_channel(std::move(b), make_tls_context(Side::kServer, server_key))};
}

TEST(TlsChannelTest, CarriesBytesBothWaysAndNamesTheSession) {
  const Key key = Key::generate();
  Bytes bindings[2];
  for (auto& binding : bindings) {
    const Ends ends = connect(key, key);
    std::thread server([&ends] {
      EXPECT_EQ(receive_text(*ends.server), "ping");
      send_text(*ends.server, "pong");
    });
    EXPECT_EQ(send_text(*ends.client, "ping").bytes, 4U);
    EXPECT_EQ(receive_text(*ends.client), "pong");
    server.join();
    EXPECT_EQ(ends.client->binding(), ends.server->binding());
    EXPECT_TRUE(ends.client->distrust().empty());
    binding = ends.client->binding();
  }
  EXPECT_NE(bindings[0], bindings[1]);
}

TEST(TlsChannelTest, AnotherKeyIsRefused) {
  const Ends ends = connect(Key::generate(), Key::generate());
  std::thread server([&ends] {
    EXPECT_EQ(receive_text(*ends.server), "");
    EXPECT_FALSE(ends.server->distrust().empty());
  });
  send_text(*ends.client, "ping");
  EXPECT_EQ(receive_text(*ends.client), "");
  EXPECT_FALSE(ends.client->distrust().empty());
  server.join();
}

// The context of an ordinary TLS server or client that does not know the key. The server's
// certificate is self-signed.
struct Stranger {
  explicit Stranger(Side side)
      : context(SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method())) {
    if (side == Side::kClient) return;
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), -1000);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 1000);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    EXPECT_EQ(SSL_CTX_use_certificate(context, certificate), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~Stranger() { SSL_CTX_free(context); }

  // Shakes hands, sends "hello", and returns the answer or the error.
  std::string talk(const os::Fd& socket, Side side) const {
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, socket.get());
    side == Side::kServer ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl);
    std::string heard;
    for (;;) {
      char bytes[100];
      const int got = SSL_read(ssl, bytes, sizeof bytes);
      if (got > 0) {
        heard.assign(bytes, static_cast<std::size_t>(got));
        break;
      }
      if (SSL_get_error(ssl, got) != SSL_ERROR_WANT_READ) break;
      if (!os::wait_ready(socket.get(), os::Readiness::kRead, Deadline::in(kPatience))) break;
    }
    SSL_free(ssl);
    return heard;
  }

  SSL_CTX* context;
};

TEST(TlsChannelTest, AServerWithACertificateAndNoKeyIsRefused) {
  auto [a, b] = socket_pair();
  const auto client =
      make_tls_channel(std::move(a), make_tls_context(Side::kClient, Key::generate()));
  std::thread rogue([&b = b] { EXPECT_EQ(Stranger(Side::kServer).talk(b, Side::kServer), ""); });
  EXPECT_EQ(send_text(*client, "secret").state, State::kClosed);
  EXPECT_EQ(receive_text(*client), "");
  EXPECT_FALSE(client->distrust().empty());
  rogue.join();
}

TEST(TlsChannelTest, AClientWithoutTheKeyIsRefused) {
  auto [a, b] = socket_pair();
  const auto server =
      make_tls_channel(std::move(b), make_tls_context(Side::kServer, Key::generate()));
  std::thread stranger([&a = a] { EXPECT_EQ(Stranger(Side::kClient).talk(a, Side::kClient), ""); });
  EXPECT_EQ(receive_text(*server), "");
  EXPECT_FALSE(server->distrust().empty());
  stranger.join();
}

TEST(TlsChannelTest, AnEndedConnectionIsNoMatterOfTrust) {
  const Key key = Key::generate();
  Ends ends = connect(key, key);
  ends.server.reset();
  EXPECT_EQ(receive_text(*ends.client), "");
  EXPECT_TRUE(ends.client->distrust().empty()) << ends.client->distrust();
}

TEST(TlsStoreTest, AWrongKeyIsSaidToBeOne) {
  const auto address = testing::outside_address();
  if (!address) GTEST_SKIP() << "this machine has no address but loopback";
  const StoreServer::Options options{.address = *address, .key = Key::generate(), .size = 2};
  const StoreServer server(options);
  auto client = testing::client_of(server, options, 0);
  client.key = Key::generate();
  const auto message = testing::message_of([&] { static_cast<void>(connect_store(client)); });
  EXPECT_NE(message.find("do not share a key"), std::string::npos) << message;
  client.key.reset();
  const auto no_key = testing::message_of([&] { static_cast<void>(connect_store(client)); });
  EXPECT_NE(no_key.find("hocket key FILE"), std::string::npos) << no_key;
}

}  // namespace
}  // namespace hocket::rendezvous
