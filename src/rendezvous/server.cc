// The store's server: one thread, one table, many connections.

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/log.h"
#include "hocket/error.h"
#include "os/peer_credentials.h"
#include "os/socket.h"
#include "os/unix_socket.h"
#include "rendezvous/address.h"
#include "rendezvous/asio.h"
#include "rendezvous/connection.h"
#include "rendezvous/table.h"

namespace hocket {
namespace rendezvous {
namespace {

constexpr std::size_t kScratchBytes = std::size_t{64} << 10;
constexpr Duration kLinger = std::chrono::seconds(1);
// Without descriptors or memory for another connection: until trying again.
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);

struct Listener {
  os::Fd socket;
  Address address;  // as bound
};

Listener listen(const StoreServer::Options& options) {
  const bool is_unix = options.address.starts_with("unix:");
  if (is_unix) {
    const Address address = parse_address(options.address, "the store's address");
    auto listener = os::UnixListener::bind_abstract(std::get<UnixName>(address).name);
    return {.socket = std::move(listener).release(), .address = address};
  }
  if (options.port < 0 || options.port > 65535) {
    throw InvalidArgument(fmt::format("port {} is not in 0 to 65535", options.port));
  }
  os::HostPort address{.host = options.address, .port = options.port};
  os::Fd socket = os::listen_tcp(address);
  address.port = os::local_port(socket.get());
  return {.socket = std::move(socket), .address = address};
}

Trust trust_of(const StoreServer::Options& options, const Address& address) {
  if (options.key) return Trust::kKey;
  if (std::holds_alternative<UnixName>(address)) return Trust::kUser;
  if (!options.trust_network) {
    throw RendezvousError(fmt::format(
        "serving a store at {} needs a key (HOCKET_KEY_FILE; `hocket key FILE` makes one); where "
        "everybody on the network is trusted, HOCKET_TRUST_NETWORK=1 goes without",
        to_string(address)));
  }
  base::log(base::LogLevel::kWarning,
            fmt::format("the store at {} is open to everybody who can reach it: no key, no "
                        "encryption (HOCKET_TRUST_NETWORK)",
                        to_string(address)));
  return Trust::kNetwork;
}

StoreServer::Options with_defaults(StoreServer::Options options) {
  const auto size = static_cast<std::size_t>(std::max(options.size, 0));
  if (options.max_clients == 0) options.max_clients = std::max<std::size_t>(4 * size, 1024);
  if (options.max_strangers == 0) options.max_strangers = std::max<std::size_t>(2 * size, 256);
  return options;
}

}  // namespace
}  // namespace rendezvous

// A resource: everything but the constructor, `clients` and `close` happens in its thread.
class StoreServer::Impl final : private rendezvous::Connection::Owner {
 public:
  explicit Impl(Options options)
      : options_(rendezvous::with_defaults(std::move(options))),
        listener_(rendezvous::listen(options_)),
        address_(rendezvous::to_string(listener_.address)),
        scratch_(rendezvous::kScratchBytes),
        context_{.io = io_,
                 .owner = *this,
                 .scratch = scratch_,
                 .trust = rendezvous::trust_of(options_, listener_.address),
                 .key = options_.key.value_or(Key{})},
        table_(options_.max_bytes) {
    wait_to_accept();
    start_thread();
  }

  ~Impl() { close(); }

  const std::string& address() const noexcept { return address_; }
  int port() const noexcept {
    const auto* tcp = std::get_if<os::HostPort>(&listener_.address);
    return tcp == nullptr ? 0 : tcp->port;
  }
  std::size_t clients() const noexcept { return clients_.load(std::memory_order_relaxed); }

  void close() noexcept {
    if (!thread_.joinable()) return;
    try {
      asio::post(io_, [this] { stop(); });
    } catch (const std::exception&) {
      io_.stop();
    }
    thread_.join();
  }

 private:
  using Clock = base::Deadline::Clock;
  using Connection = rendezvous::Connection;
  using Connections = std::map<std::uint64_t, std::shared_ptr<Connection>>;

  // --- The thread -----------------------------------------------------------------------------
  void start_thread() {
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "hocket-store");
  }

  void run() noexcept {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception& error) {
        base::log(base::LogLevel::kError, fmt::format("the store's server: {}", error.what()));
      }
    }
  }

  void stop() {
    is_stopping_ = true;
    acceptor_.close();
    table_timer_.cancel();
    stranger_timer_.cancel();
    pause_timer_.cancel();
    for (auto& [id, stranger] : Connections(std::exchange(strangers_, {}))) stranger->close();
    for (auto& [id, client] : Connections(connections_)) client->close_when_sent();
    linger_timer_.expires_after(rendezvous::kLinger);
    linger_timer_.async_wait([this](const std::error_code&) { io_.stop(); });
    if (connections_.empty()) io_.stop();
  }

  // --- Strangers ------------------------------------------------------------------------------
  void wait_to_accept() {
    acceptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const std::error_code& error) {
                           if (!error && !is_stopping_) accept_some();
                         });
  }

  void accept_some() {
    try {
      // A few at a time, so that those who are in have their turn.
      for (int i = 0; i < 64; ++i) {
        os::Fd socket = os::accept_pending(acceptor_.native_handle());
        if (!socket) break;
        welcome(std::move(socket));
      }
    } catch (const std::exception& error) {
      return pause_accepting(error);
    }
    wait_to_accept();
  }

  void pause_accepting(const std::exception& error) {
    if (!std::exchange(has_complained_, true)) {
      base::log(base::LogLevel::kWarning,
                fmt::format("the store at {} cannot take more connections: {}; `ulimit -n` is the "
                            "limit of descriptors",
                            address_,
                            error.what()));
    }
    drop_oldest_stranger();
    pause_timer_.expires_after(rendezvous::kAcceptPause);
    pause_timer_.async_wait([this](const std::error_code& cancelled) {
      if (!cancelled && !is_stopping_) wait_to_accept();
    });
  }

  void welcome(os::Fd socket) {
    auto channel = open_channel(std::move(socket));
    if (!channel) return;
    if (strangers_.size() >= options_.max_strangers) drop_oldest_stranger();
    const std::uint64_t id = next_id_++;
    const auto stranger = std::make_shared<Connection>(context_, std::move(channel), id);
    strangers_.emplace(id, stranger);
    stranger_deadlines_.emplace_back(Clock::now() + options_.stranger_timeout, id);
    if (stranger_deadlines_.size() == 1) arm_stranger_timer();
    stranger->start();
  }

  // None where the other end is not to be talked to.
  std::unique_ptr<rendezvous::Channel> open_channel(os::Fd socket) {
    const int fd = socket.get();
    const bool is_unix = std::holds_alternative<rendezvous::UnixName>(listener_.address);
    if (is_unix && os::peer_credentials(fd).uid != ::geteuid()) return nullptr;
    if (!is_unix) os::set_no_delay(fd);
    const bool in_the_clear = is_unix || !options_.key || os::is_loopback_connection(fd);
    return in_the_clear
               ? rendezvous::make_plain_channel(std::move(socket), rendezvous::Side::kServer)
               : rendezvous::make_tls_channel(std::move(socket), tls_context());
  }

  // Made when it is needed: most jobs stay on one host.
  const std::shared_ptr<rendezvous::TlsContext>& tls_context() {
    if (!tls_context_) {
      tls_context_ = rendezvous::make_tls_context(rendezvous::Side::kServer, *options_.key);
    }
    return tls_context_;
  }

  void drop_oldest_stranger() {
    if (strangers_.empty()) return;
    const auto oldest = strangers_.begin()->second;
    oldest->close();
  }

  void arm_stranger_timer() {
    stranger_timer_.expires_at(stranger_deadlines_.front().first);
    stranger_timer_.async_wait([this](const std::error_code& cancelled) {
      if (!cancelled && !is_stopping_) drop_late_strangers();
    });
  }

  void drop_late_strangers() {
    const auto now = Clock::now();
    while (!stranger_deadlines_.empty() && stranger_deadlines_.front().first <= now) {
      const auto found = strangers_.find(stranger_deadlines_.front().second);
      stranger_deadlines_.pop_front();
      if (found != strangers_.end()) std::shared_ptr(found->second)->close();
    }
    if (!stranger_deadlines_.empty()) arm_stranger_timer();
  }

  // --- Clients --------------------------------------------------------------------------------
  rendezvous::Verdict judge(Connection& connection, const rendezvous::Hello& hello) override {
    using rendezvous::Decision;
    const auto verdict = decide(hello);
    if (verdict.decision != Decision::kWelcome) return verdict;
    if (hello.role == StoreRole::kMember) claims_.emplace(hello.rank, connection.id());
    connections_.insert(strangers_.extract(connection.id()));
    clients_.store(connections_.size(), std::memory_order_relaxed);
    return verdict;
  }

  rendezvous::Verdict decide(const rendezvous::Hello& hello) const {
    using rendezvous::Decision;
    const bool is_member = hello.role == StoreRole::kMember;
    if (hello.version != rendezvous::kProtocolVersion) {
      return {.decision = Decision::kVersion, .fact = rendezvous::kProtocolVersion};
    }
    if (hello.job != options_.job) return {.decision = Decision::kJob};
    if (hello.epoch != options_.epoch)
      return {.decision = Decision::kEpoch, .fact = options_.epoch};
    if (hello.size != 0 && options_.size != 0 && hello.size != options_.size) {
      return {.decision = Decision::kSize, .fact = options_.size};
    }
    if (is_member && (hello.rank < 0 || (options_.size != 0 && hello.rank >= options_.size))) {
      return {.decision = Decision::kRankOutOfRange, .fact = options_.size};
    }
    if (is_member && claims_.contains(hello.rank)) return {.decision = Decision::kRankTaken};
    if (connections_.size() >= options_.max_clients) {
      return {.decision = Decision::kFull, .fact = static_cast<std::int64_t>(options_.max_clients)};
    }
    return {};
  }

  void handle(Connection& connection, rendezvous::NumberedRequest&& request) override {
    if (request.request.op == rendezvous::Op::kGoodbye) {
      std::erase_if(claims_, [&](const auto& claim) { return claim.second == connection.id(); });
    }
    table_.execute(
        connection.id(),
        std::move(request.request),
        [id = request.id, weak = connection.weak_from_this()](rendezvous::Reply&& reply) {
          if (const auto alive = weak.lock()) alive->reply(id, reply);
        });
    arm_table_timer();
  }

  void closed(Connection& connection) override {
    table_.drop(connection.id());
    strangers_.erase(connection.id());
    connections_.erase(connection.id());
    clients_.store(connections_.size(), std::memory_order_relaxed);
    if (is_stopping_ && connections_.empty()) io_.stop();
  }

  void arm_table_timer() {
    const auto next = table_.next_deadline();
    if (next.when() == armed_for_) return;
    armed_for_ = next.when();
    if (next.is_never()) {
      table_timer_.cancel();
      return;
    }
    table_timer_.expires_at(next.when());
    table_timer_.async_wait([this](const std::error_code& cancelled) {
      if (cancelled || is_stopping_) return;
      armed_for_ = Clock::time_point::max();
      table_.expire(Clock::now());
      arm_table_timer();
    });
  }

  const Options options_;
  rendezvous::Listener listener_;
  const std::string address_;
  std::vector<std::byte> scratch_;
  asio::io_context io_{1};
  Connection::Context context_;
  std::shared_ptr<rendezvous::TlsContext> tls_context_;
  rendezvous::Table table_;
  asio::posix::stream_descriptor acceptor_{io_, listener_.socket.release()};
  asio::steady_timer table_timer_{io_};
  asio::steady_timer stranger_timer_{io_};
  asio::steady_timer pause_timer_{io_};
  asio::steady_timer linger_timer_{io_};
  Clock::time_point armed_for_ = Clock::time_point::max();
  bool is_stopping_ = false;
  bool has_complained_ = false;
  std::uint64_t next_id_ = 1;
  Connections strangers_;  // by id, hence by age
  std::deque<std::pair<Clock::time_point, std::uint64_t>> stranger_deadlines_;  // some are gone
  Connections connections_;               // those who have proved themselves
  std::map<int, std::uint64_t> claims_;   // rank to connection, which may be gone
  std::atomic<std::size_t> clients_ = 0;  // relaxed: a number to look at
  std::thread thread_;
};

StoreServer::StoreServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
StoreServer::StoreServer(StoreServer&&) noexcept = default;
StoreServer& StoreServer::operator=(StoreServer&&) noexcept = default;
StoreServer::~StoreServer() = default;

int StoreServer::port() const noexcept { return impl_->port(); }
const std::string& StoreServer::address() const noexcept { return impl_->address(); }
std::size_t StoreServer::clients() const { return impl_->clients(); }
void StoreServer::close() noexcept { impl_->close(); }

}  // namespace hocket
