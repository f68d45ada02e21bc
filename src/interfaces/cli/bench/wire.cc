#include "interfaces/cli/bench/wire.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace hocket::cli::bench {
namespace {

// Longer lines are no messages of ours.
constexpr std::size_t kLongestLine = 64 * 1024;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::string without_line_ends(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string rest_of(std::istringstream& stream) {
  std::string text;
  std::getline(stream >> std::ws, text);
  return text;
}

[[noreturn]] void refuse(const std::string& line) {
  throw std::runtime_error("not a message of hocket bench: '" + line.substr(0, 200) + "'");
}

template <typename E>
E checked_enum(int value, int count, const std::string& line) {
  if (value < 0 || value >= count) refuse(line);
  return static_cast<E>(value);
}

}  // namespace

Channel::Channel(Channel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)) {}

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(received_, other.received_);
  return *this;
}

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

void Channel::write_line(std::string_view line) {
  std::string rest(line);
  rest += '\n';
  std::size_t sent = 0;
  while (sent < rest.size()) {
    const ssize_t n = ::send(fd_, rest.data() + sent, rest.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write to the benchmark's socket");
    sent += static_cast<std::size_t>(n);
  }
}

bool Channel::receive() {
  std::array<char, 4096> block;
  for (;;) {
    const ssize_t n = ::recv(fd_, block.data(), block.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    received_.append(block.data(), static_cast<std::size_t>(n));
    if (received_.size() > kLongestLine) return false;
  }
}

std::optional<std::string> Channel::take_line() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::optional<std::string> Channel::read_line() {
  std::array<char, 4096> block;
  for (;;) {
    if (auto line = take_line()) return line;
    if (received_.size() > kLongestLine) return std::nullopt;
    const ssize_t n = ::recv(fd_, block.data(), block.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != ECONNRESET) fail("cannot read from the benchmark's socket");
    if (n <= 0) return std::nullopt;
    received_.append(block.data(), static_cast<std::size_t>(n));
  }
}

Channel connect_to_command(const std::string& socket_name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_name.empty() || socket_name.size() >= sizeof(address.sun_path)) {
    throw std::runtime_error(std::string(kSocketVariable) +
                             " is not set: this program is started " +
                             "by `hocket bench`, not by hand");
  }
  // In an abstract address the name follows a zero byte.
  std::memcpy(address.sun_path + 1, socket_name.data(), socket_name.size());
  Channel channel(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (channel.fd() < 0) fail("cannot make a socket");
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + socket_name.size());
  if (::connect(channel.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    fail("cannot reach the `hocket bench` that started this process");
  }
  return channel;
}

std::string to_line(const Hello& hello) {
  std::ostringstream line;
  line << "hello " << hello.token << ' ' << hello.library << ' ' << hello.rank << ' ' << hello.ranks
       << ' ' << hello.processors << ' ' << without_line_ends(hello.version);
  return line.str();
}

Hello parse_hello(const std::string& line) {
  std::istringstream stream(line);
  std::string word;
  Hello hello;
  stream >> word >> hello.token >> hello.library >> hello.rank >> hello.ranks >> hello.processors;
  if (!stream || word != "hello") refuse(line);
  hello.version = rest_of(stream);
  return hello;
}

std::string to_line(const Request& request) {
  const Case& subject = request.subject;
  std::ostringstream line;
  line << int(request.verb) << ' ' << request.slot << ' ' << int(subject.collective) << ' '
       << subject.elements << ' ' << int(subject.dtype) << ' ' << int(subject.op) << ' '
       << int(subject.memory) << ' ' << subject.in_place << ' ' << request.seed << ' '
       << request.warmup << ' ' << request.calls << ' ' << request.dirty;
  return line.str();
}

Request parse_request(const std::string& line) {
  std::istringstream stream(line);
  int verb = -1, collective = -1, dtype = -1, op = -1, memory = -1;
  Request request;
  Case& subject = request.subject;
  stream >> verb >> request.slot >> collective >> subject.elements >> dtype >> op >> memory >>
      subject.in_place >> request.seed >> request.warmup >> request.calls >> request.dirty;
  if (!stream) refuse(line);
  request.verb = checked_enum<Verb>(verb, 4, line);
  subject.collective = checked_enum<Collective>(collective, kCollectiveCount, line);
  subject.dtype = checked_enum<DType>(dtype, kDTypeCount, line);
  subject.op = checked_enum<ReduceOp>(op, kReduceOpCount, line);
  subject.memory = checked_enum<Memory>(memory, 3, line);
  return request;
}

std::string to_line(const Answer& answer) {
  std::ostringstream line;
  line << int(answer.outcome) << ' ' << answer.nanoseconds << ' ' << without_line_ends(answer.text);
  return line.str();
}

Answer parse_answer(const std::string& line) {
  std::istringstream stream(line);
  int outcome = -1;
  Answer answer;
  stream >> outcome >> answer.nanoseconds;
  if (!stream) refuse(line);
  answer.outcome = checked_enum<Outcome>(outcome, 4, line);
  answer.text = rest_of(stream);
  return answer;
}

}  // namespace hocket::cli::bench
