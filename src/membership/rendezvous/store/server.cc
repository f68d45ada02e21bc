// The server of a store: one thread, one table, and many connections.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/base/log.h"
#include "foundation/base/threads.h"
#include "foundation/os/poller.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_facts.h"
#include "foundation/os/process/standard_descriptors.h"
#include "foundation/os/sockets/peer_credentials.h"
#include "foundation/os/sockets/ports.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "foundation/os/wakeup.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/store/connection.h"
#include "membership/rendezvous/store/host_launchers.h"
#include "membership/rendezvous/store/lost_members.h"
#include "membership/rendezvous/store/table.h"

namespace hocket {
namespace rendezvous {
namespace {

constexpr std::size_t kScratchBytes = std::size_t{64} << 10;
constexpr Duration kLinger = std::chrono::seconds(1);
// The pause after a connection could not be accepted, because descriptors or memory were missing.
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);
// A rank that may belong to another job waits this long. If it does, the other job's rank 0 comes
// in this time.
constexpr Duration kSeatsAreKept = std::chrono::seconds(1);
// The number of processes of other jobs that are remembered.
constexpr std::size_t kMostRivals = 16;
constexpr std::size_t kMostDoubtful = 4096;
// The number of hosts without the key that are reported.
constexpr std::size_t kMostDistrusted = 16;

// Tokens of the poller. Ids of connections are the tokens from kFirstId on.
constexpr std::uint64_t kListenerToken = 0;
constexpr std::uint64_t kWakeupToken = 1;
constexpr std::uint64_t kFirstId = 2;

struct Listener {
  os::Fd socket;
  Address address;  // the actual address, after bind
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
  os::Fd socket = address.port == 0 ? os::listen_tcp(address.host, base::port_range())
                                    : os::listen_tcp(address);
  address.port = os::local_port(socket.get());
  return {.socket = std::move(socket), .address = address};
}

Trust trust_of(const StoreServer::Options& options, const Address& address) {
  if (options.key) return Trust::kKey;
  if (std::holds_alternative<UnixName>(address)) return Trust::kUser;
  if (!options.trust_network) {
    throw RendezvousError(fmt::format(
        "serving a store at {} needs a key: `hocket key FILE` makes one, a program passes it as "
        "key, a job has it from HOCKET_KEY_FILE; where everybody on the network is trusted, a "
        "program says trust_network, and a job HOCKET_TRUST_NETWORK=1",
        to_string(address)));
  }
  base::log(base::LogLevel::kWarning,
            fmt::format("the store at {} is open to everybody who can reach it: no key, no "
                        "encryption",
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

// A resource. All its functions run in the server's thread, except the constructor and the public
// functions.
class StoreServer::Impl final : private rendezvous::Connection::Owner {
 public:
  explicit Impl(Options options)
      : options_(rendezvous::with_defaults(std::move(options))),
        listener_(rendezvous::listen(options_)),
        address_(rendezvous::to_string(listener_.address)),
        scratch_(rendezvous::kScratchBytes),
        context_{.poller = poller_,
                 .owner = *this,
                 .scratch = scratch_,
                 .trust = rendezvous::trust_of(options_, listener_.address),
                 .key = options_.key.value_or(Key{})},
        table_(options_.max_bytes) {
    // Accepted connections inherit this option of the listener.
    if (!is_unix()) os::set_no_delay(listener_.socket.get());
    is_loopback_ = !is_unix() && os::is_loopback_connection(listener_.socket.get());
    poller_.watch(listener_.socket.get(), rendezvous::kListenerToken, {.read = true});
    poller_.watch(wakeup_.fd(), rendezvous::kWakeupToken, {.read = true});
    start_thread();
  }

  ~Impl() { close(); }

  const std::string& address() const noexcept { return address_; }
  int port() const noexcept {
    const auto* tcp = std::get_if<os::HostPort>(&listener_.address);
    return tcp == nullptr ? 0 : tcp->port;
  }
  std::size_t clients() const noexcept { return clients_.load(std::memory_order_relaxed); }

  std::vector<int> departures() const {
    const std::lock_guard lock(mutex_);
    return departures_;
  }

  void rank_ended(int rank, int size, std::string how) {
    {
      const std::lock_guard lock(mutex_);
      ended_.push_back({.rank = rank, .size = size, .how = std::move(how)});
    }
    wakeup_.notify();
  }

  void launcher_starts(int host, rendezvous::LauncherRanks ranks) {
    const std::lock_guard lock(mutex_);
    launchers_.starts(host, ranks);
  }

  std::vector<int> lost_launchers() const {
    const std::lock_guard lock(mutex_);
    return launchers_.lost();
  }

  void close() noexcept {
    if (!thread_.joinable()) return;
    is_asked_to_stop_.store(true, std::memory_order_release);
    wakeup_.notify();
    thread_.join();
  }

 private:
  using Clock = base::Deadline::Clock;
  using Connection = rendezvous::Connection;
  using Deadline = base::Deadline;
  using Connections = std::unordered_map<std::uint64_t, std::shared_ptr<Connection>>;
  struct Ended {
    int rank, size;
    std::string how;
  };

  // --- The thread -----------------------------------------------------------------------------

  void start_thread() {
    thread_ = base::start_thread("hocket-store", [this] { run(); });
  }

  void run() noexcept {
    while (!is_stopping_ || !(connections_.empty() || linger_.has_passed())) {
      try {
        turn();
      } catch (const std::exception& error) {
        base::log(base::LogLevel::kError, fmt::format("the store's server: {}", error.what()));
      }
    }
  }

  // Waits for events once, and handles them.
  void turn() {
    gone_.clear();
    const auto until = put_off_.empty() ? next_deadline() : Deadline::at(Clock::time_point::min());
    for (const auto& event : poller_.wait(until)) {
      if (event.token == rendezvous::kWakeupToken) {
        take_orders();
      } else if (event.token == rendezvous::kListenerToken) {
        accept_some();
      } else if (const auto connection = find(event.token)) {
        connection->take(event);
      }
    }
    for (const std::uint64_t id : std::exchange(put_off_, {})) {
      if (const auto connection = find(id)) connection->take_turn();
    }
    if (table_.next_deadline().has_passed()) table_.expire(Clock::now());
    for (auto& loss : lost_.take()) table_.rank_ended(loss.rank, loss.size, std::move(loss.how));
    drop_late_strangers();
    if (accepts_again_.has_passed()) accept_again();
  }

  Deadline next_deadline() const {
    Deadline next = std::min({table_.next_deadline(), lost_.next(), accepts_again_, linger_});
    if (stranger_deadlines_.empty()) return next;
    return std::min(next, Deadline::at(stranger_deadlines_.front().first));
  }

  void take_orders() {
    wakeup_.take();
    std::vector<Ended> ended;
    {
      const std::lock_guard lock(mutex_);
      ended.swap(ended_);
    }
    for (Ended& each : ended) {
      lost_.forget(each.rank, each.size);
      table_.rank_ended(each.rank, each.size, std::move(each.how));
    }
    if (is_asked_to_stop_.load(std::memory_order_acquire)) stop();
  }

  void stop() {
    is_stopping_ = true;
    listener_.socket.reset();
    accepts_again_ = Deadline::never();
    linger_ = Deadline::in(rendezvous::kLinger);
    for (auto& [id, stranger] : Connections(strangers_)) stranger->close();
    for (auto& [id, client] : Connections(connections_)) client->close_when_sent();
  }

  // --- Connections ----------------------------------------------------------------------------

  // Returns a connection. Null if it is closed.
  std::shared_ptr<Connection> find(std::uint64_t id) const {
    if (const auto found = connections_.find(id); found != connections_.end()) return found->second;
    const auto found = strangers_.find(id);
    return found == strangers_.end() ? nullptr : found->second;
  }

  void put_off(Connection& connection) override { put_off_.push_back(connection.id()); }

  void closed(Connection& connection) override {
    table_.drop(connection.id());
    origins_.erase(connection.id());
    if (const auto member = members_.extract(connection.id()); member && !is_stopping_) {
      lost_.add(member.mapped());
    }
    launcher_left(connection.id(), rendezvous::HostLaunchers::Manner::kLost);
    // A method of the connection may be running, so the connection is destroyed later.
    for (Connections* each : {&strangers_, &connections_}) {
      if (auto node = each->extract(connection.id())) gone_.push_back(std::move(node.mapped()));
    }
    clients_.store(connections_.size(), std::memory_order_relaxed);
  }

  // Logs that a client does not know the key. A user who watches this process then learns why a
  // rank is missing. The client itself gets an error too.
  void distrusted(const Connection& connection) override {
    if (is_unix()) return;
    const std::string from = os::peer_host(connection.fd());
    if (distrusted_.size() >= rendezvous::kMostDistrusted || !distrusted_.insert(from).second) {
      return;
    }
    base::log(
        base::LogLevel::kWarning,
        fmt::format("a process on {} came to the store at {} {}; if it is a rank or a launcher of "
                    "the job, give all hosts copies of one key (HOCKET_KEY_FILE, --key)",
                    from,
                    address_,
                    options_.key ? "without this job's key" : "with a key, and the job has none"));
  }

  void launcher_left(std::uint64_t id, rendezvous::HostLaunchers::Manner manner) {
    std::vector<rendezvous::HostLaunchers::Loss> losses;
    {
      const std::lock_guard lock(mutex_);
      losses = launchers_.left(id, manner);
    }
    if (is_stopping_) return;
    for (auto& loss : losses) table_.rank_ended(loss.rank, loss.size, std::move(loss.how));
  }

  // --- Strangers ------------------------------------------------------------------------------

  void accept_some() {
    try {
      // Accept only some connections at once, so that connected clients are served too.
      for (int i = 0; i < 64 && !is_stopping_; ++i) {
        os::Fd socket = os::accept_pending(listener_.socket.get());
        if (!socket) break;
        welcome(std::move(socket));
      }
    } catch (const std::exception& error) {
      pause_accepting(error);
    }
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
    poller_.change(listener_.socket.get(), rendezvous::kListenerToken, {});
    accepts_again_ = Deadline::in(rendezvous::kAcceptPause);
  }

  void accept_again() {
    accepts_again_ = Deadline::never();
    poller_.change(listener_.socket.get(), rendezvous::kListenerToken, {.read = true});
  }

  void welcome(os::Fd socket) {
    auto channel = open_channel(std::move(socket));
    if (!channel) return;
    if (strangers_.size() >= options_.max_strangers) drop_oldest_stranger();
    const std::uint64_t id = next_id_++;
    const auto stranger = std::make_shared<Connection>(context_, std::move(channel), id);
    strangers_.emplace(id, stranger);
    stranger_deadlines_.emplace_back(Clock::now() + options_.stranger_timeout, id);
    stranger->start();
  }

  // Makes the channel of a new connection. Null if the peer belongs to another user.
  std::unique_ptr<rendezvous::Channel> open_channel(os::Fd socket) {
    const int fd = socket.get();
    if (is_unix() && os::peer_credentials(fd).uid != ::geteuid()) return nullptr;
    const bool in_the_clear =
        is_unix() || !options_.key || is_loopback_ || os::is_loopback_connection(fd);
    return in_the_clear ? rendezvous::make_plain_channel(std::move(socket), port())
                        : rendezvous::make_tls_channel(std::move(socket), tls_context());
  }

  bool is_unix() const noexcept {
    return std::holds_alternative<rendezvous::UnixName>(listener_.address);
  }

  // Returns the TLS context. It is made at its first use, because jobs of one host need none.
  const std::shared_ptr<rendezvous::TlsContext>& tls_context() {
    if (!tls_context_) {
      tls_context_ = rendezvous::make_tls_context(rendezvous::Side::kServer, *options_.key);
    }
    return tls_context_;
  }

  void drop_oldest_stranger() {
    while (!strangers_.empty() && !stranger_deadlines_.empty()) {
      const auto found = strangers_.find(stranger_deadlines_.front().second);
      stranger_deadlines_.pop_front();
      if (found != strangers_.end()) return std::shared_ptr(found->second)->close();
    }
  }

  void drop_late_strangers() {
    if (stranger_deadlines_.empty()) return;
    const auto now = Clock::now();
    while (!stranger_deadlines_.empty() && stranger_deadlines_.front().first <= now) {
      const auto found = strangers_.find(stranger_deadlines_.front().second);
      stranger_deadlines_.pop_front();
      if (found != strangers_.end()) std::shared_ptr(found->second)->close();
    }
  }

  // --- Clients --------------------------------------------------------------------------------

  rendezvous::Verdict judge(Connection& connection, const rendezvous::Hello& hello) override {
    using rendezvous::Decision;
    auto verdict = decide(hello);
    if (is_judged_by_origin(hello)) verdict = judge_by_origin(hello, verdict);
    if (verdict.decision != Decision::kWelcome) return verdict;
    if (hello.role == StoreRole::kMember) {
      origins_.emplace(connection.id(), hello.origin);
      claims_.emplace(hello.rank, connection.id());
      members_.emplace(connection.id(), member_of(connection, hello));
    }
    {
      const std::lock_guard lock(mutex_);
      if (hello.role == StoreRole::kMember) launchers_.rank_came(hello.rank);
      if (hello.role == StoreRole::kLauncher) {
        launchers_.came(connection.id(), {.host = hello.rank, .size = hello.size});
      }
    }
    connections_.insert(strangers_.extract(connection.id()));
    clients_.store(connections_.size(), std::memory_order_relaxed);
    return verdict;
  }

  // Returns the facts about a member. Its process is known only if it has connected over AF_UNIX.
  rendezvous::StoreMember member_of(const Connection& connection,
                                    const rendezvous::Hello& hello) const {
    rendezvous::StoreMember member{.rank = hello.rank, .size = hello.size};
    if (!is_unix()) return member;
    member.pid = os::peer_credentials(connection.fd()).pid;
    member.start = os::process_start(member.pid);
    if (member.start == 0 || member.pid == ::getpid()) member.pid = 0;
    return member;
  }

  // Returns whether a rank's ancestors (origin.h) must decide if it belongs to this job. This is
  // necessary because two jobs of one user may meet at one address, and may not differ otherwise.
  bool is_judged_by_origin(const rendezvous::Hello& hello) const {
    return hello.role == StoreRole::kMember && options_.rank >= 0 && !own_origin_.empty() &&
           !hello.origin.empty() && hello.job == options_.job && hello.epoch == options_.epoch;
  }

  // Decides by a rank's ancestors whether it belongs to this job. `verdict` is the decision by all
  // other facts.
  rendezvous::Verdict judge_by_origin(const rendezvous::Hello& hello,
                                      const rendezvous::Verdict& verdict) {
    using rendezvous::Decision;
    const auto& who = hello.origin;
    const rendezvous::Verdict refused{.decision = Decision::kOtherJob, .fact = ::getpid()};
    const bool is_rival = hello.rank == options_.rank && who.front() != own_origin_.front();
    if (is_rival) {
      take_note_of_rival(who);
      return refused;
    }
    const std::size_t steps = rendezvous::steps_to(who, own_origin_);
    if (verdict.decision == Decision::kRankTaken) {
      return steps <= rendezvous::kOneFamily ? verdict : refused;
    }
    if (verdict.decision != Decision::kWelcome || who.front() == own_origin_.front()) {
      return verdict;
    }
    for (const rendezvous::Origin& rival : rivals_) {
      if (rendezvous::steps_to(who, rival) <= steps) return refused;
    }
    const bool is_doubtful =
        !hello.is_named && steps > rendezvous::kOneFamily && steps != rendezvous::kNoCommonOrigin;
    if (!is_doubtful || doubtful_since_.size() >= rendezvous::kMostDoubtful) return verdict;
    const auto since = doubtful_since_.try_emplace(who.front(), Clock::now()).first->second;
    if (Clock::now() - since >= rendezvous::kSeatsAreKept) return verdict;
    return {.decision = Decision::kComeLater};
  }

  // Handles a second process that claims this process's rank. Unless it is a descendant of this
  // process, there are two jobs. Clients that may belong to the other job then count as lost, and
  // all ranks are told.
  void take_note_of_rival(const rendezvous::Origin& rival) {
    if (std::ranges::find(rival, own_origin_.front()) != rival.end()) return;
    if (rivals_.size() >= rendezvous::kMostRivals) return;
    const auto is_it = [&](const auto& known) { return known.front() == rival.front(); };
    if (std::ranges::any_of(rivals_, is_it)) return;
    rivals_.push_back(rival);
    const bool are_all_here = std::cmp_greater_equal(claims_.size(), options_.size);
    for (const auto& [id, who] : origins_) {
      const auto member = members_.find(id);
      if (member == members_.end() || who.empty() || who.front() == own_origin_.front()) continue;
      const std::size_t to_rival = rendezvous::steps_to(who, rival);
      const std::size_t to_own = rendezvous::steps_to(who, own_origin_);
      if (to_rival > to_own || (to_rival == to_own && are_all_here)) continue;
      table_.rank_ended(member->second.rank,
                        member->second.size,
                        "may belong to another job of yours, which meets at the same address; give "
                        "each job an address or a HOCKET_JOB of its own");
    }
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
    return {.fact = options_.rank};
  }

  void handle(Connection& connection, rendezvous::NumberedRequest&& request) override {
    if (request.request.op == rendezvous::Op::kWithdraw) speak_for_itself(connection, request);
    if (request.request.op == rendezvous::Op::kGoodbye) {
      launcher_left(connection.id(), rendezvous::HostLaunchers::Manner::kSaidGoodbye);
      members_.erase(connection.id());
      std::erase_if(claims_, [&](const auto& claim) {
        if (claim.second != connection.id()) return false;
        const std::lock_guard lock(mutex_);
        departures_.push_back(claim.first);
        return true;
      });
    }
    table_.execute(
        connection.id(),
        std::move(request.request),
        [id = request.id, weak = connection.weak_from_this()](rendezvous::Reply&& reply) {
          if (const auto alive = weak.lock()) alive->reply(id, reply);
        });
  }

  // Lets a member withdraw itself, once. A request to withdraw another rank does nothing.
  void speak_for_itself(const Connection& connection, rendezvous::NumberedRequest& request) {
    const auto member = members_.extract(connection.id());
    if (!member) {
      request.request.op = rendezvous::Op::kTryGet;  // has no effect
      return;
    }
    request.request.rank = member.mapped().rank;
    request.request.size = member.mapped().size;
  }

  const Options options_;
  rendezvous::Listener listener_;
  const std::string address_;
  const RunClock::Watch clock_watch_;
  std::vector<std::byte> scratch_;
  os::Poller poller_;
  os::Wakeup wakeup_;
  Connection::Context context_;
  std::shared_ptr<rendezvous::TlsContext> tls_context_;
  rendezvous::Table table_;
  bool is_loopback_ = false;  // true: all connections come from this host
  Deadline accepts_again_ = Deadline::never();
  Deadline linger_ = Deadline::never();
  bool is_stopping_ = false;
  bool has_complained_ = false;
  std::set<std::string> distrusted_;  // hosts of clients without the key
  std::uint64_t next_id_ = rendezvous::kFirstId;
  Connections strangers_;
  // The time by which each stranger must have proved that it knows the key. The oldest comes first.
  // Some strangers are closed by now, or have proved it.
  std::deque<std::pair<Clock::time_point, std::uint64_t>> stranger_deadlines_;
  Connections connections_;  // clients that have proved that they know the key
  // Members that may still be lost, by connection.
  std::unordered_map<std::uint64_t, rendezvous::StoreMember> members_;
  const rendezvous::Origin own_origin_ = rendezvous::origin_of_this_process();
  // The members' origins, by connection.
  std::unordered_map<std::uint64_t, rendezvous::Origin> origins_;
  std::vector<rendezvous::Origin> rivals_;  // other processes that claim this process's rank
  // When each doubtful process came first, by process.
  std::unordered_map<std::uint64_t, Clock::time_point> doubtful_since_;
  rendezvous::LostMembers lost_;
  std::vector<std::uint64_t> put_off_;             // connections that want a turn; some may be gone
  std::vector<std::shared_ptr<Connection>> gone_;  // closed in this turn
  std::unordered_map<int, std::uint64_t> claims_;  // the connection of each rank; it may be gone
  std::atomic<std::size_t> clients_ = 0;           // relaxed: only for users to read
  std::atomic<bool> is_asked_to_stop_ = false;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<int> departures_;
  std::vector<Ended> ended_;  // not yet passed to the table
  rendezvous::HostLaunchers launchers_;
  std::thread thread_;
};

StoreServer::StoreServer(Options options) {
  os::occupy_standard_descriptors();  // otherwise printed text could get into a socket
  impl_ = std::make_unique<Impl>(std::move(options));
}
StoreServer::StoreServer(StoreServer&&) noexcept = default;
StoreServer& StoreServer::operator=(StoreServer&&) noexcept = default;
StoreServer::~StoreServer() = default;

int StoreServer::port() const { return impl_->port(); }
const std::string& StoreServer::address() const { return impl_->address(); }
std::size_t StoreServer::clients() const { return impl_->clients(); }
std::vector<int> StoreServer::departures() const { return impl_->departures(); }
void StoreServer::rank_ended(int rank, int size, std::string how) {
  impl_->rank_ended(rank, size, std::move(how));
}
void StoreServer::launcher_starts(int host, int first, int count, int size) {
  impl_->launcher_starts(host, {.first = first, .count = count, .size = size});
}
std::vector<int> StoreServer::lost_launchers() const { return impl_->lost_launchers(); }
void StoreServer::close() noexcept {
  if (impl_) impl_->close();
}

}  // namespace hocket
