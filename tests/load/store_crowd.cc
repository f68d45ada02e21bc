// A crowd at the store. The given number of clients join, set a key, meet at a barrier and get a
// neighbour's key. The server is another process. The clients are one thread that waits for all of
// them. So the measurement is of the store and the system beneath, and as little as possible of the
// clients. (bench/store_clients has complete clients, each in a thread.)
//
//     store_crowd [CLIENTS [ADDRESS]]
//
// On 127.0.0.1, the default, clients prove the key by HMAC. On another address they speak TLS;
// "outside" selects an address of this host. Every answer is checked. Prints the seconds from the
// first connection to the last answer, each side's processor time, and the growth of the server's
// memory.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "foundation/os/poller.h"
#include "foundation/os/sockets/addresses.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/store.h"
#include "membership/rendezvous/store/request.h"
#include "membership/rendezvous/wire/channel.h"
#include "membership/rendezvous/wire/handshake.h"
#include "membership/rendezvous/wire/wire.h"
#include "resident.h"

namespace {

using hocket::Bytes;
using hocket::rendezvous::Channel;
using hocket::rendezvous::Op;
using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(120);
constexpr const char* kJob = "crowd";
// Clients on their way in at one time.
constexpr int kAtTheDoor = 256;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

Bytes value_of(int rank) { return hocket::to_bytes(fmt::format("value of {}", rank)); }

// Processor time that a process has used, in seconds.
double used(pid_t process) {
  clockid_t clock{};
  timespec time{};
  require(::clock_getcpuclockid(process, &clock) == 0 && ::clock_gettime(clock, &time) == 0,
          "the server's processor time cannot be told");
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// One client: a machine that goes from one answer to the next. Throws where one is wrong.
class Guest {
 public:
  enum class Stage { kChallenge, kVerdict, kSet, kBarrier, kGet, kDone };

  Guest(std::unique_ptr<Channel> channel, const hocket::Key& key, int rank, int size)
      : channel_(std::move(channel)), key_(key), rank_(rank), size_(size) {
    hello_ =
        hocket::rendezvous::Hello{
            .rank = rank, .size = size, .nonce = hocket::rendezvous::make_nonce(), .job = kJob}
            .encode();
    push(hello_);
  }

  int fd() const noexcept { return channel_->fd(); }
  Stage stage() const noexcept { return stage_; }

  // Does what can be done without waiting.
  void take_turn(std::span<std::byte> scratch) {
    flush();
    while (stage_ != Stage::kDone) {
      const auto [state, bytes] = channel_->receive(scratch);
      require(state != Channel::State::kClosed, "the connection was closed");
      if (state != Channel::State::kMoved) break;
      const bool is_drained = channel_->is_drained();
      received_.insert(
          received_.end(), scratch.begin(), scratch.begin() + static_cast<std::ptrdiff_t>(bytes));
      take_frames();
      if (is_drained) break;
    }
    flush();
  }

 private:
  void push(const Bytes& payload) {
    hocket::rendezvous::WireWriter writer;
    writer.raw(payload);
    to_send_ = std::move(writer).frame();
  }

  // Bytes that cannot be sent at once wait for the next call: with TLS, until its handshake is
  // done.
  void flush() {
    if (to_send_.empty()) return;
    const auto [state, bytes] = channel_->send(to_send_);
    require(state != Channel::State::kClosed, "the connection was closed");
    to_send_.erase(to_send_.begin(), to_send_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

  void take_frames() {
    std::size_t taken = 0;
    for (;;) {
      const auto frame = hocket::rendezvous::parse_frame(
          std::span<const std::byte>(received_).subspan(taken), hocket::rendezvous::kMaxPayload);
      if (frame.state != hocket::rendezvous::Frame::State::kComplete) break;
      take(frame.payload);
      taken += frame.size;
    }
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(taken));
  }

  void take(std::span<const std::byte> payload) {
    using namespace hocket::rendezvous;
    switch (stage_) {
      case Stage::kChallenge:
        require(Challenge::parse(payload).has_value(), "no challenge");
        transcript_ = std::make_unique<Transcript>(hello_, payload, channel_->binding());
        stage_ = Stage::kVerdict;
        return push(Proof{transcript_->client_mac(key_)}.encode());
      case Stage::kVerdict: {
        const auto verdict = Verdict::parse(payload);
        require(verdict && verdict->decision == Decision::kWelcome, "not welcome");
        require(equal(verdict->mac, transcript_->server_mac(key_, *verdict)), "another's store");
        transcript_.reset();
        stage_ = Stage::kSet;
        return ask({.op = Op::kSet, .key = fmt::format("key/{}", rank_), .value = value_of(rank_)});
      }
      case Stage::kSet:
        check_answer(payload);
        stage_ = Stage::kBarrier;
        return ask(
            {.op = Op::kBarrier, .timeout = kPatience, .key = "all", .rank = rank_, .size = size_});
      case Stage::kBarrier:
        check_answer(payload);
        stage_ = Stage::kGet;
        return ask({.op = Op::kGet,
                    .timeout = kPatience,
                    .key = fmt::format("key/{}", (rank_ + 1) % size_)});
      case Stage::kGet: {
        const auto value = check_answer(payload);
        require(value && *value == value_of((rank_ + 1) % size_), "the wrong value");
        stage_ = Stage::kDone;
        return;
      }
      case Stage::kDone:
        require(false, "an answer to nothing");
    }
  }

  void ask(const hocket::rendezvous::StoreRequest& request) {
    to_send_ = hocket::rendezvous::encode_request(++asked_, request);
  }

  std::shared_ptr<const Bytes> check_answer(std::span<const std::byte> payload) const {
    const auto answer = hocket::rendezvous::parse_reply(payload);
    require(answer && answer->id == asked_, "an answer to another question");
    require(answer->reply.code == hocket::rendezvous::ReplyCode::kDone, "refused");
    return answer->reply.value;
  }

  std::unique_ptr<Channel> channel_;
  const hocket::Key& key_;
  int rank_;
  int size_;
  Stage stage_ = Stage::kChallenge;
  Bytes hello_;
  std::unique_ptr<hocket::rendezvous::Transcript> transcript_;
  std::uint32_t asked_ = 0;
  Bytes to_send_;
  Bytes received_;
};

// All clients, in this thread.
class Crowd {
 public:
  Crowd(const hocket::os::HostPort& address, const hocket::Key& key, int size)
      : key_(key), size_(size), is_loopback_(hocket::os::is_loopback(address.host)) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(static_cast<std::uint16_t>(address.port));
    require(::inet_pton(AF_INET, address.host.c_str(), &to_.sin_addr) == 1, "not an IPv4 address");
    if (!is_loopback_) {
      tls_ = hocket::rendezvous::make_tls_context(hocket::rendezvous::Side::kClient, key);
    }
    guests_.reserve(static_cast<std::size_t>(size));
  }

  // Returns when the last has what it asked for; `joined_after` is known then.
  void run() {
    const auto begin = Clock::now();
    const auto deadline = hocket::base::Deadline::in(kPatience);
    int done = 0;
    int inside = 0;  // who has set its key
    while (done < size_) {
      while (static_cast<int>(guests_.size()) < std::min(size_, inside + kAtTheDoor)) enter();
      const auto events = poller_.wait(deadline);
      require(!events.empty() || !deadline.has_passed(), "the store does not answer");
      for (const auto& event : events) {
        Guest& guest = *guests_[event.token];
        const auto before = guest.stage();
        guest.take_turn(scratch_);
        const auto after = guest.stage();
        const bool comes_in = before < Guest::Stage::kBarrier && after >= Guest::Stage::kBarrier;
        if (comes_in && ++inside == size_) joined_after = Clock::now() - begin;
        if (before != after && after == Guest::Stage::kDone) ++done;
      }
    }
    done_after = Clock::now() - begin;
  }

  std::chrono::duration<double> joined_after{};
  std::chrono::duration<double> done_after{};

 private:
  void enter() {
    const auto rank = static_cast<int>(guests_.size());
    hocket::os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    require(static_cast<bool>(socket), "no more descriptors; see `ulimit -n`");
    hocket::os::set_no_delay(socket.get());
    const int failed = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to_), sizeof to_);
    require(failed == 0 || errno == EINPROGRESS, "cannot connect");
    if (failed != 0) {
      hocket::os::wait_ready(
          socket.get(), hocket::os::Readiness::kWrite, hocket::base::Deadline::in(kPatience));
    }
    auto channel = is_loopback_ ? hocket::rendezvous::make_plain_channel(std::move(socket),
                                                                         ntohs(to_.sin_port))
                                : hocket::rendezvous::make_tls_channel(std::move(socket), tls_);
    guests_.push_back(std::make_unique<Guest>(std::move(channel), key_, rank, size_));
    poller_.watch(
        guests_.back()->fd(), static_cast<std::uint64_t>(rank), {.read = true, .write = false});
    guests_.back()->take_turn(scratch_);
  }

  const hocket::Key& key_;
  const int size_;
  const bool is_loopback_;
  sockaddr_in to_{};
  std::shared_ptr<hocket::rendezvous::TlsContext> tls_;
  hocket::os::Poller poller_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(std::size_t{32} << 10);
};

// Serves until the process is killed; tells the address through `out`.
[[noreturn]] void serve(const hocket::Key& key, const std::string& address, int clients, int out) {
  const auto count = static_cast<std::size_t>(clients);
  const hocket::StoreServer server({.address = address,
                                    .key = key,
                                    .job = kJob,
                                    .size = clients,
                                    .max_clients = count,
                                    .max_strangers = count,
                                    .stranger_timeout = kPatience});
  const std::string bound = server.address();
  if (::write(out, bound.data(), bound.size()) < 0) ::_exit(1);
  ::close(out);
  while (true) ::pause();
}

int measure(int clients, const std::string& address) {
  const auto key = hocket::Key::generate();
  int ends[2];
  require(::pipe(ends) == 0, "no pipe");
  const pid_t server = ::fork();
  if (server == 0) serve(key, address, clients, ends[1]);
  ::close(ends[1]);
  std::string bound(256, '\0');
  const auto length = ::read(ends[0], bound.data(), bound.size());
  require(length > 0, "the store was not served");
  bound.resize(static_cast<std::size_t>(length));
  int code = 0;
  try {
    Crowd crowd(hocket::os::parse_host_port(bound).value(), key, clients);
    const long kib_before = hocket::bench::resident_kib(server);
    const double server_before = used(server);
    const double own_before = used(::getpid());
    crowd.run();
    fmt::print(
        "{} clients at {}: joined and set after {:.3f} s, done after {:.3f} s; processor time: "
        "server {:.3f} s, clients {:.3f} s; the server's memory: {:.1f} KiB a client\n",
        clients,
        bound,
        crowd.joined_after.count(),
        crowd.done_after.count(),
        used(server) - server_before,
        used(::getpid()) - own_before,
        static_cast<double>(hocket::bench::resident_kib(server) - kib_before) / clients);
  } catch (const std::exception& error) {
    fmt::print(stderr, "store_crowd: {}\n", error.what());
    code = 1;
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const int clients = argc > 1 ? std::stoi(argv[1]) : 10'000;
  std::string address = argc > 2 ? argv[2] : "127.0.0.1";
  if (address == "outside") {
    const auto addresses = hocket::os::outside_addresses();
    if (addresses.empty() || addresses.front().find(':') != std::string::npos) {
      fmt::print("skipped: this host has no IPv4 address but loopback\n");
      return 0;
    }
    address = addresses.front();
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  try {
    return measure(clients, address);
  } catch (const std::exception& error) {
    fmt::print(stderr, "store_crowd: {}\n", error.what());
    return 1;
  }
}
