#include "interfaces/cli/hosts/briefing.h"

#include <fmt/format.h>
#include <poll.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "hocket/error.h"
#include "hocket/run_clock.h"

namespace hocket::cli {
namespace {

constexpr std::string_view kHello = "hocket-host";
constexpr std::size_t kLongestBriefing = std::size_t{64} << 20;
constexpr std::chrono::seconds kForABriefing{60};

[[noreturn]] void refuse_briefing(const char* why) {
  throw InvalidArgument(
      fmt::format("as-host: {}; `hocket run --hosts` starts this command by itself", why));
}

std::string hex_of(Key::View bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Key key_of(std::string_view text) {
  std::array<std::byte, Key::kBytes> bytes{};
  if (text.size() != 2 * bytes.size()) refuse_briefing("the briefing has no key");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      refuse_briefing("the briefing's key is none");
    }
    bytes[i] = static_cast<std::byte>(value);
  }
  Key key{Key::View(bytes)};
  ::explicit_bzero(bytes.data(), bytes.size());
  return key;
}

// Writes fields. Each ends with a zero byte, which no argument or variable contains.
class FieldWriter {
 public:
  void add(std::string_view field) {
    text_ += field;
    text_ += '\0';
  }
  void add(int number) { add(std::to_string(number)); }
  void add(const std::vector<std::string>& list) {
    add(static_cast<int>(list.size()));
    for (const std::string& each : list) add(each);
  }
  const std::string& text() const noexcept { return text_; }
  ~FieldWriter() { ::explicit_bzero(text_.data(), text_.size()); }

 private:
  std::string text_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  std::string_view next() {
    const std::size_t end = rest_.find('\0');
    if (end == std::string_view::npos) refuse_briefing("the briefing is cut short");
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return field;
  }
  int number() {
    const std::string_view field = next();
    int value = -1;
    std::from_chars(field.data(), field.data() + field.size(), value);
    if (value < 0) refuse_briefing("the briefing has no number where one belongs");
    return value;
  }
  std::vector<std::string> list() {
    std::vector<std::string> result;
    for (int left = number(); left > 0; --left) result.emplace_back(next());
    return result;
  }

 private:
  std::string_view rest_;
};

// Reads exactly `length` bytes. Orders that follow them stay in the stream.
std::string read_exactly(int fd, std::size_t length, RunClock::time_point until) {
  std::string text(length, '\0');
  for (std::size_t at = 0; at < length;) {
    pollfd ready{fd, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - RunClock::now());
    if (left.count() <= 0) refuse_briefing("no briefing came");
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::read(fd, text.data() + at, length - at);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) refuse_briefing("standard input has no briefing");
    at += static_cast<std::size_t>(got);
  }
  return text;
}

std::string read_hello(int fd, RunClock::time_point until) {
  constexpr std::size_t kLongest = 256;
  std::string line;
  while (line.size() < kLongest) {
    const std::string one = read_exactly(fd, 1, until);
    if (one == "\n") return line;
    line += one;
  }
  refuse_briefing("standard input has no briefing");
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw SystemError("cannot answer the head", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string encode(const Briefing& briefing) {
  FieldWriter body;
  std::string key = hex_of(briefing.key.bytes());
  body.add(key);
  ::explicit_bzero(key.data(), key.size());
  body.add(briefing.job);
  body.add(static_cast<int>(briefing.hosts.size()));
  for (const HostSlots& host : briefing.hosts) {
    body.add(host.name);
    body.add(host.slots);
  }
  body.add(briefing.host);
  body.add(briefing.folder);
  body.add(briefing.colour ? 1 : 0);
  body.add(briefing.environment);
  body.add(briefing.arguments);
  return fmt::format("{} {} {} {}\n", kHello, HOCKET_VERSION, briefing.token, body.text().size()) +
         body.text();
}

Briefing receive_briefing(int in, int out) {
  const RunClock::Watch watch;
  const auto until = RunClock::now() + kForABriefing;
  const std::string hello = read_hello(in, until);
  std::array<char, 32> release{};
  std::array<char, 64> token{};
  std::size_t length = 0;
  if (!hello.starts_with(kHello) ||
      std::sscanf(
          hello.c_str() + kHello.size(), " %31s %63s %zu", release.data(), token.data(), &length) !=
          3 ||
      length > kLongestBriefing) {
    refuse_briefing("standard input has no briefing");
  }
  write_notice(out, token.data(), "release " HOCKET_VERSION);
  if (std::strcmp(release.data(), HOCKET_VERSION) != 0) {
    throw InvalidArgument(fmt::format("this is hocket {}, not {}", HOCKET_VERSION, release.data()));
  }
  std::string text = read_exactly(in, length, until);
  FieldReader body(text);
  Briefing briefing{.token = token.data(), .key = key_of(body.next())};
  briefing.job = body.next();
  for (int left = body.number(); left > 0; --left) {
    std::string name(body.next());
    briefing.hosts.push_back({.name = std::move(name), .slots = body.number()});
  }
  briefing.host = body.number();
  briefing.folder = body.next();
  briefing.colour = body.number() != 0;
  briefing.environment = body.list();
  briefing.arguments = body.list();
  ::explicit_bzero(text.data(), text.size());
  if (static_cast<std::size_t>(briefing.host) < briefing.hosts.size()) return briefing;
  refuse_briefing("the briefing names no such host");
}

void apply_briefing(const Briefing& briefing) {
  for (const std::string& setting : briefing.environment) {
    const std::size_t equals = setting.find('=');
    ::setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  if (briefing.folder.empty()) return;
  std::error_code error;
  std::filesystem::current_path(briefing.folder, error);
  if (!error) return;
  throw InvalidArgument(
      fmt::format("cannot work in the folder '{}': {}; make it there, or name another by --wdir",
                  briefing.folder,
                  error.message()));
}

std::string notice(const std::string& token, std::string_view text) {
  return fmt::format("{}{} {}\n", kNoticeMark, token, text);
}

void write_notice(int out, const std::string& token, std::string_view text) {
  write_all(out, notice(token, text));
}

std::string random_name() {
  const Key noise = Key::generate();  // random, but not from the job's key
  std::string name;
  for (std::size_t i = 0; i < 6; ++i) {
    name += fmt::format("{:02x}", std::to_integer<int>(noise.bytes()[i]));
  }
  return name;
}

}  // namespace hocket::cli
