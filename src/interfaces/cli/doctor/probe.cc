#include "interfaces/cli/doctor/probe.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "hocket/error.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {
namespace {

using ProbeClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kForAConnection{3};
constexpr std::chrono::seconds kForAnAnswer{3};
constexpr std::chrono::milliseconds kForEchoes{100};
constexpr double kSecondsOfBulk = 0.2;
constexpr std::size_t kMostEchoes = 500;
constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kMostBulk = std::size_t{1} << 28;
constexpr int kPackets = 3;

// Thrown if the connection failed.
class ProbeFailure : public std::runtime_error {
 public:
  // kSilent: the time is over. kClosed: the other end closed the connection. kBroken: the system
  // reported an error, such as a reset.
  enum class How { kSilent, kClosed, kBroken };
  ProbeFailure(How how, const std::string& text) : std::runtime_error(text), how_(how) {}
  How how() const noexcept { return how_; }

 private:
  How how_;
};

// Throws the failure that errno names.
[[noreturn]] void fail_with_errno(const char* when_silent) {
  using How = ProbeFailure::How;
  const int number = errno;
  if (number == EAGAIN || number == EWOULDBLOCK) throw ProbeFailure(How::kSilent, when_silent);
  throw ProbeFailure(How::kBroken, std::strerror(number));
}

void set_up(int fd) {
  const timeval limit{.tv_sec = kForAnAnswer.count(), .tv_usec = 0};
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void send_all(int fd, const void* data, std::size_t length) {
  const char* at = static_cast<const char*>(data);
  while (length > 0) {
    const ssize_t sent = ::send(fd, at, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) fail_with_errno("the connection takes nothing more");
    at += sent;
    length -= static_cast<std::size_t>(sent);
  }
}

void receive_all(int fd, void* data, std::size_t length) {
  char* at = static_cast<char*>(data);
  while (length > 0) {
    const ssize_t got = ::recv(fd, at, length, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) {
      throw ProbeFailure(ProbeFailure::How::kClosed, "the connection was closed at the other end");
    }
    if (got < 0) fail_with_errno("no answer came");
    at += got;
    length -= static_cast<std::size_t>(got);
  }
}

std::uint64_t receive_number(int fd) {
  std::uint64_t number = 0;
  receive_all(fd, &number, sizeof number);
  return number;
}

void send_number(int fd, std::uint64_t number) { send_all(fd, &number, sizeof number); }

double seconds_since(ProbeClock::time_point start) {
  return std::chrono::duration<double>(ProbeClock::now() - start).count();
}

// Waits for the connection. Returns the error (errno), or 0.
int connect_in_time(int fd, const SocketAddress& address) {
  if (::connect(fd, address.get(), address.length) != 0 && errno != EINPROGRESS) return errno;
  pollfd ready{fd, POLLOUT, 0};
  const auto limit = std::chrono::milliseconds(kForAConnection);
  if (::poll(&ready, 1, static_cast<int>(limit.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

Fd connect_to(const SocketAddress& address, std::string& error) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int number = fd.valid() ? connect_in_time(fd.get(), address) : errno;
  if (number == ETIMEDOUT) {
    error = fmt::format("nothing comes back within {} s", kForAConnection.count());
  } else if (number != 0) {
    error = std::strerror(number);
  }
  if (number != 0) return {};
  ::fcntl(fd.get(), F_SETFL, 0);
  set_up(fd.get());
  return fd;
}

// Sends packets in the direction in which no connection was made.
void send_packets(const SocketAddress& address, const std::string& token, int self) {
  const Fd fd(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string text = fmt::format("{} {}", token, self);
  for (int i = 0; fd.valid() && i < kPackets; ++i) {
    static_cast<void>(
        ::sendto(fd.get(), text.data(), text.size(), 0, address.get(), address.length));
  }
}

// Returns whether the other end is host number `peer`. A server that does not know the token
// closes the connection instead of answering.
bool is_answered_by(int fd, int peer) {
  try {
    return receive_number(fd) == static_cast<std::uint64_t>(peer);
  } catch (const ProbeFailure& failure) {
    if (failure.how() == ProbeFailure::How::kClosed) return false;
    throw;
  }
}

// Returns whether a long message that began at `begin` failed because its packets were lost. Both
// ends wait equally long. The other end may notice the loss first and close the connection. If a
// short packet arrives after that, the system of the other end resets the connection.
bool is_of_lost_packets(const ProbeFailure& failure, ProbeClock::time_point begin) {
  return failure.how() == ProbeFailure::How::kSilent || ProbeClock::now() >= begin + kForAnAnswer;
}

double median_of_echoes(int fd) {
  std::vector<double> times;
  const auto start = ProbeClock::now();
  while (times.size() < kMostEchoes && ProbeClock::now() < start + kForEchoes) {
    const auto before = ProbeClock::now();
    send_number(fd, 0);
    receive_number(fd);
    times.push_back(seconds_since(before) / 2);
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

double time_of_bulk(int fd, std::size_t length) {
  const std::vector<char> piece(kPiece, 'x');
  const auto before = ProbeClock::now();
  send_number(fd, length);
  for (std::size_t sent = 0; sent < length; sent += kPiece) send_all(fd, piece.data(), kPiece);
  receive_number(fd);
  return seconds_since(before);
}

double bandwidth_of(int fd) {
  const double first = time_of_bulk(fd, kPiece);
  const double wanted = kSecondsOfBulk / std::max(first, 1e-6);
  const auto pieces =
      static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(kMostBulk / kPiece)));
  return static_cast<double>(pieces * kPiece) / time_of_bulk(fd, pieces * kPiece);
}

// Returns the longest packet that the route and the other end accept, as far as the kernel knows.
int mtu_of(int fd, int family) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  const unsigned headers =
      (family == AF_INET6 ? 60 : 40) + ((info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0 ? 12 : 0);
  return static_cast<int>(std::min(info.tcpi_pmtu, info.tcpi_snd_mss + headers));
}

// "29500-29699"; 0 and 0: any.
std::pair<int, int> ports_of_settings() {
  const std::string text(EnvironmentBlock::inherited().get("HOCKET_PORTS"));
  int first = 0;
  int last = 0;
  if (std::sscanf(text.c_str(), "%d-%d", &first, &last) == 2) return {first, last};
  return {0, 0};
}

void set_port(SocketAddress& address, int port) {
  if (address.family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(static_cast<uint16_t>(port));
  }
}

}  // namespace

ProbeServer::ProbeServer(const std::string& address, std::string token, int host)
    : token_(std::move(token)),
      host_(host),
      stop_(checked_fd(::eventfd(0, EFD_CLOEXEC), "cannot make an eventfd")) {
  const auto found = resolve(address, 0);
  if (found.empty()) throw InvalidArgument("'" + address + "' is no address");
  listen(found.front());
  thread_ = std::thread([this] { serve(); });
}

ProbeServer::~ProbeServer() { end(); }

std::set<int> ProbeServer::end() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop_.get(), &one, sizeof one));
    thread_.join();
  }
  return heard_;
}

void ProbeServer::listen(const SocketAddress& address) {
  const auto [first, last] = ports_of_settings();
  for (int port = first; port <= last; ++port) {
    SocketAddress at = address;
    set_port(at, port);
    tcp_ = Fd(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    udp_ = Fd(::socket(at.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(tcp_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(tcp_.get(), at.get(), at.length) != 0 || ::listen(tcp_.get(), 64) != 0) continue;
    ::getsockname(tcp_.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.length);
    port_ = at.port();
    if (::bind(udp_.get(), at.get(), at.length) != 0) udp_.reset();
    return;
  }
  throw SystemError(
      fmt::format(
          "cannot listen at {}, ports {} to {} (HOCKET_PORTS)", address.text(), first, last),
      errno);
}

void ProbeServer::serve() noexcept {
  for (;;) {
    std::array<pollfd, 3> wait{
        {{stop_.get(), POLLIN, 0}, {tcp_.get(), POLLIN, 0}, {udp_.get(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), -1);
    if (wait[0].revents != 0) return hear();
    if (wait[2].revents != 0) hear();
    if (wait[1].revents == 0) continue;
    const Fd client(::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) continue;
    set_up(client.get());
    try {
      answer(client);
    } catch (const std::exception&) {
      // The client reports why it got no answer.
    }
  }
}

void ProbeServer::answer(const Fd& client) const {
  std::string token(token_.size(), '\0');
  receive_all(client.get(), token.data(), token.size());
  // If data were left unread, closing the connection would reset it.
  receive_number(client.get());
  if (token != token_) return;
  send_number(client.get(), static_cast<std::uint64_t>(host_));
  std::vector<char> piece(kPiece);
  for (;;) {
    const std::uint64_t length = receive_number(client.get());
    if (length > kMostBulk) return;
    for (std::uint64_t left = length; left > 0;) {
      const auto part = std::min<std::uint64_t>(left, piece.size());
      receive_all(client.get(), piece.data(), part);
      left -= part;
    }
    send_number(client.get(), length);
  }
}

void ProbeServer::hear() {
  std::array<char, 128> packet{};
  for (ssize_t length = 0;
       (length = ::recv(udp_.get(), packet.data(), packet.size() - 1, MSG_DONTWAIT)) > 0;) {
    packet[static_cast<std::size_t>(length)] = '\0';
    const std::string text(packet.data());
    int host = -1;
    if (!text.starts_with(token_ + " ")) continue;
    if (std::sscanf(text.c_str() + token_.size(), " %d", &host) == 1) heard_.insert(host);
  }
}

ProbeResult probe(
    const std::string& address, int port, const std::string& token, int self, int peer) {
  ProbeResult result;
  const auto found = resolve(address, port);
  if (found.empty()) return {.error = "'" + address + "' is no address"};
  const Fd fd = connect_to(found.front(), result.error);
  if (!fd.valid()) {
    send_packets(found.front(), token, self);
    return result;
  }
  std::optional<ProbeClock::time_point> bulk_begin;
  try {
    send_all(fd.get(), token.data(), token.size());
    send_number(fd.get(), static_cast<std::uint64_t>(self));
    if (!is_answered_by(fd.get(), peer)) {
      result.is_other = true;
      result.error = "another host answered";
      return result;
    }
    result.latency = median_of_echoes(fd.get());
    bulk_begin = ProbeClock::now();
    result.bandwidth = bandwidth_of(fd.get());
  } catch (const ProbeFailure& failure) {
    result.error = failure.what();
    result.stalls = bulk_begin && is_of_lost_packets(failure, *bulk_begin);
  }
  result.mtu = mtu_of(fd.get(), found.front().family());
  return result;
}

}  // namespace hocket::cli
