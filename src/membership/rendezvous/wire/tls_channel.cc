// TLS 1.3 over a nonblocking socket. Both sides authenticate by a pre-shared key, and by nothing
// else.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "hocket/error.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/handshake.h"

namespace hocket::rendezvous {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};
using SslPointer = std::unique_ptr<SSL, Freed<&SSL_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, Freed<&SSL_CTX_free>>;
using BioMethodPointer = std::unique_ptr<BIO_METHOD, Freed<&BIO_meth_free>>;

// The identity of the key. There is only one key.
constexpr std::string_view kIdentity = "hocket job key";
// The only cipher suite. Its hash must be that of the key.
constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kSuiteCode = {0x13, 0x01};
constexpr std::string_view kBindingLabel = "EXPORTER-hocket-store";
constexpr std::size_t kBindingBytes = 32;

std::string last_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "handshake failed" : reason;
}

[[noreturn]] void throw_setup() {
  throw RendezvousError("OpenSSL cannot set up TLS 1.3 with a pre-shared key: " + last_error());
}

void require(bool done) {
  if (!done) throw_setup();
}

// --- The socket. OpenSSL's own BIO for it does not prevent SIGPIPE ------------------------------

struct Wire {
  int fd = -1;
  bool is_empty = false;  // the last read has emptied the socket
};

Wire& wire_of(BIO* bio) noexcept { return *static_cast<Wire*>(BIO_get_data(bio)); }

bool is_transient(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

int bio_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(wire_of(bio).fd, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && is_transient(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  Wire& wire = wire_of(bio);
  // OpenSSL reads once more to find the end of the data. The answer needs no system call.
  if (wire.is_empty) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const ssize_t got = ::recv(wire.fd, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && is_transient(errno)) BIO_set_retry_read(bio);
  wire.is_empty = got > 0 && got < size;
  return static_cast<int>(got);
}

long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BioMethodPointer make_bio_method() {
  keep_openssl();
  BioMethodPointer method(
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hocket socket"));
  require(method && BIO_meth_set_write(method.get(), bio_write) == 1 &&
          BIO_meth_set_read(method.get(), bio_read) == 1 &&
          BIO_meth_set_ctrl(method.get(), bio_control) == 1);
  return method;
}

int find_session(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session);
int use_session(SSL* ssl,
                const EVP_MD* hash,
                const unsigned char** identity,
                size_t* size,
                SSL_SESSION** session);

}  // namespace

class TlsContext {
 public:
  TlsContext(Side side, const Key& key)
      : side_(side),
        key_(key),
        method_(make_bio_method()),
        context_(SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method())) {
    require(context_ != nullptr);
    SSL_CTX* context = context_.get();
    require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
            SSL_CTX_set_ciphersuites(context, kSuite) == 1 &&
            SSL_CTX_set_num_tickets(context, 0) == 1);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS);
    // Read as much as is available. Otherwise OpenSSL reads the header of each record first.
    SSL_CTX_set_read_ahead(context, 1);
    // The trust store is empty, so no certificate is accepted, only the key.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_app_data(context, this);
    if (side == Side::kServer) {
      // Without a session id context, a server that verifies peers refuses all resumed sessions.
      require(
          SSL_CTX_set_session_id_context(context,
                                         reinterpret_cast<const unsigned char*>(kIdentity.data()),
                                         static_cast<unsigned int>(kIdentity.size())) == 1);
      SSL_CTX_set_psk_find_session_callback(context, find_session);
    } else {
      SSL_CTX_set_psk_use_session_callback(context, use_session);
    }
  }

  Side side() const noexcept { return side_; }

  SslPointer make_connection(Wire& wire) const {
    SslPointer ssl(SSL_new(context_.get()));
    require(ssl != nullptr);
    BIO* bio = BIO_new(method_.get());
    require(bio != nullptr);
    BIO_set_data(bio, &wire);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl.get(), bio, bio);
    if (side_ == Side::kServer) {
      SSL_set_accept_state(ssl.get());
    } else {
      SSL_set_connect_state(ssl.get());
    }
    return ssl;
  }

  // Returns the key in the form of a session that is resumed. Null if OpenSSL has no memory.
  SSL_SESSION* make_session(SSL* ssl) const {
    SSL_SESSION* session = SSL_SESSION_new();
    const SSL_CIPHER* suite = SSL_CIPHER_find(ssl, kSuiteCode.data());
    const bool made =
        session != nullptr && suite != nullptr &&
        SSL_SESSION_set1_master_key(session,
                                    reinterpret_cast<const unsigned char*>(key_.bytes().data()),
                                    Key::kBytes) == 1 &&
        SSL_SESSION_set_cipher(session, suite) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
    if (made) return session;
    SSL_SESSION_free(session);
    return nullptr;
  }

 private:
  const Side side_;
  const Key key_;
  const BioMethodPointer method_;
  const SslContextPointer context_;
};

namespace {

const TlsContext& context_of(SSL* ssl) {
  return *static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
}

int find_session(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
  *session = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(identity), size) != kIdentity) return 1;
  *session = context_of(ssl).make_session(ssl);
  return *session != nullptr ? 1 : 0;
}

int use_session(SSL* ssl,
                const EVP_MD* hash,
                const unsigned char** identity,
                size_t* size,
                SSL_SESSION** session) {
  *session = nullptr;
  // Offer no key if the server wants another hash than that of the key's suite.
  if (hash != nullptr && EVP_MD_is_a(hash, "SHA256") != 1) return 1;
  *session = context_of(ssl).make_session(ssl);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *size = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(os::Fd socket, std::shared_ptr<TlsContext> context)
      : Channel(std::move(socket)),
        context_(std::move(context)),
        wire_{.fd = fd()},
        ssl_(context_->make_connection(wire_)) {}

  Result receive(std::span<std::byte> to) override {
    std::size_t moved = 0;
    const auto read = [&] { return SSL_read_ex(ssl_.get(), to.data(), to.size(), &moved); };
    return move(read, moved);
  }

  Result send(std::span<const std::byte> from) override {
    if (from.empty()) return {State::kMoved};
    std::size_t moved = 0;
    const auto write = [&] { return SSL_write_ex(ssl_.get(), from.data(), from.size(), &moved); };
    return move(write, moved);
  }

  bool is_drained() const noexcept override {
    return wire_.is_empty && SSL_has_pending(ssl_.get()) == 0;
  }

  // The binding is derived from the session's secrets. So an attacker between two sessions cannot
  // make their bindings equal.
  Bytes binding() const override {
    Bytes bytes(kBindingBytes);
    const int done = SSL_export_keying_material(ssl_.get(),
                                                reinterpret_cast<unsigned char*>(bytes.data()),
                                                bytes.size(),
                                                kBindingLabel.data(),
                                                kBindingLabel.size(),
                                                nullptr,
                                                0,
                                                0);
    if (done != 1) throw RendezvousError("OpenSSL cannot name a TLS session: " + last_error());
    return bytes;
  }

  std::string distrust() const override { return distrust_; }

 private:
  // Runs an operation of OpenSSL. The first one also performs the handshake.
  template <typename Operation>
  Result move(const Operation& operation, const std::size_t& moved) {
    if (!distrust_.empty()) return {State::kClosed};
    ERR_clear_error();
    wire_.is_empty = false;
    const int done = operation();
    if (done == 1) {
      // A handshake that did not use the key proves nothing.
      if (is_trusted_ || SSL_session_reused(ssl_.get()) == 1) {
        is_trusted_ = true;
        return {State::kMoved, moved};
      }
      distrust_ = "the peer did not use the key";
      return {State::kClosed};
    }
    const int why = SSL_get_error(ssl_.get(), done);
    if (why == SSL_ERROR_WANT_READ) return {State::kWantRead};
    if (why == SSL_ERROR_WANT_WRITE) return {State::kWantWrite};
    if (why == SSL_ERROR_SSL) distrust_ = last_error();
    return {State::kClosed};
  }

  std::shared_ptr<TlsContext> context_;
  Wire wire_;
  SslPointer ssl_;
  bool is_trusted_ = false;
  std::string distrust_;
};

}  // namespace

std::shared_ptr<TlsContext> make_tls_context(Side side, const Key& key) {
  return std::make_shared<TlsContext>(side, key);
}

std::unique_ptr<Channel> make_tls_channel(os::Fd socket, std::shared_ptr<TlsContext> context) {
  return std::make_unique<TlsChannel>(std::move(socket), std::move(context));
}

}  // namespace hocket::rendezvous
