// The protocol PMI 1: a line `cmd=... name=value ...` to the launcher, and one line as the answer.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/error.h"
#include "membership/rendezvous/launchers/launcher_space.h"

namespace hocket::rendezvous {
namespace {

constexpr std::chrono::seconds kPatience{300};
constexpr std::size_t kLongestLine = 4096;

// Returns a field of an answer. Empty if the answer has no such field.
std::string field(std::string_view line, std::string_view name) {
  const std::string wanted = fmt::format("{}=", name);
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (word.starts_with(wanted)) return std::string(word.substr(wanted.size()));
    at = end + 1;
  }
  return {};
}

class PmiSpace final : public LauncherSpace {
 public:
  explicit PmiSpace(int fd) : fd_(fd) {
    ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
    space_ = field(ask("cmd=get_my_kvsname", "my_kvsname"), "kvsname");
  }
  void put(const std::string& key, const std::string& value) override {
    ask(fmt::format("cmd=put kvsname={} key={} value={}", space_, key, value), "put_result");
  }
  void fence() override { ask("cmd=barrier_in", "barrier_out"); }
  std::string get(int /*rank*/, const std::string& key) override {
    return field(ask(fmt::format("cmd=get kvsname={} key={}", space_, key), "get_result"), "value");
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    throw RendezvousError(fmt::format(
        "the launcher's process manager (PMI_FD) {}; give the ranks an address instead: "
        "HOCKET_STORE=HOST:PORT and HOCKET_KEY_FILE",
        why));
  }

  std::string ask(std::string line, std::string_view answer) {
    line += '\n';
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t bytes = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes <= 0) fail("does not listen");
      sent += static_cast<std::size_t>(bytes);
    }
    const std::string got = receive();
    const std::string result = field(got, "rc");
    if (field(got, "cmd") != answer || (!result.empty() && result != "0")) {
      fail(fmt::format("answers \"{}\"", got));
    }
    return got;
  }

  // Reads an answer, one character at a time: bytes behind the line may be for another reader of
  // the descriptor.
  std::string receive() {
    const auto deadline = base::Deadline::in(kPatience);
    std::string line;
    for (char next = 0; line.size() < kLongestLine;) {
      if (!os::wait_ready(fd_, os::Readiness::kRead, deadline)) fail("does not answer");
      const ssize_t bytes = ::read(fd_, &next, 1);
      if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (bytes <= 0) fail("has gone");
      if (next == '\n') return line;
      line += next;
    }
    fail("answers without an end");
  }

  int fd_;
  std::string space_;
};

}  // namespace

std::unique_ptr<LauncherSpace> open_pmi_space() {
  const auto fd = base::environment_integer("PMI_FD", 0, 1 << 20);
  return fd ? std::make_unique<PmiSpace>(static_cast<int>(*fd)) : nullptr;
}

}  // namespace hocket::rendezvous
