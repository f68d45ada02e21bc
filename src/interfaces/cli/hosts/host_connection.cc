#include "interfaces/cli/hosts/host_connection.h"

#include <strings.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hocket/error.h"

namespace hocket::cli {
namespace {

constexpr std::size_t kLongestNotice = std::size_t{1} << 20;

// Runs in the child between fork and exec. It gives the child a separate session without a
// terminal. So ssh cannot ask for a password, and Ctrl-C does not reach it.
[[noreturn]] void become_child(
    const Pipe& in, const Pipe& out, const Pipe& err, char** words, pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGCHLD, SIGXFSZ}) std::signal(number, SIG_DFL);
  ::setenv("SSH_ASKPASS_REQUIRE", "never", 1);
  ::dup2(in.read.get(), STDIN_FILENO);
  ::dup2(out.write.get(), STDOUT_FILENO);
  ::dup2(err.write.get(), STDERR_FILENO);
  ::execvp(words[0], words);
  std::fprintf(stderr, "cannot run '%s': %s\n", words[0], std::strerror(errno));
  ::_exit(127);
}

void make_non_blocking(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// Reads the available bytes, and closes the descriptor at the end of the stream.
std::string read_available(Fd& fd) {
  std::array<char, 1 << 16> buffer;
  const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (length <= 0) {
    fd.reset();
    return {};
  }
  return {buffer.data(), static_cast<std::size_t>(length)};
}

}  // namespace

HostConnection::HostConnection(std::vector<std::string> words, const Briefing& briefing)
    : program_(words.front()), mark_(kNoticeMark + briefing.token + " ") {
  start(words);
  std::string text = encode(briefing);
  send(text);
  ::explicit_bzero(text.data(), text.size());
}

HostConnection::HostConnection(HostConnection&& other) noexcept
    : program_(std::move(other.program_)),
      mark_(std::move(other.mark_)),
      pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      queue_(std::move(other.queue_)),
      unsorted_(std::move(other.unsorted_)),
      notices_(std::move(other.notices_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)),
      status_(other.status_) {}

HostConnection::~HostConnection() {
  hang_up();
  if (pid_ < 0 || status_) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HostConnection::start(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw SystemError("cannot start " + program_ + " (see `ulimit -u`)", errno);
  if (pid_ == 0) become_child(in, out, err, pointers.data(), parent);
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  for (const Fd* fd : {&in_, &out_, &err_}) make_non_blocking(*fd);
}

void HostConnection::send(std::string_view order) {
  if (!in_.valid()) return;
  queue_ += order;
  write_some();
}

void HostConnection::write_some() {
  while (in_.valid() && !queue_.empty()) {
    const ssize_t written = ::write(in_.get(), queue_.data(), queue_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) return hang_up();  // the child is ending
    const auto length = static_cast<std::size_t>(written);
    ::explicit_bzero(queue_.data(), length);  // the key is in the first bytes
    queue_.erase(0, length);
  }
}

void HostConnection::hang_up() {
  ::explicit_bzero(queue_.data(), queue_.size());
  queue_.clear();
  in_.reset();
}

void HostConnection::signal(int number) const noexcept {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

void HostConnection::add_to(std::vector<pollfd>& wait, bool wants_output, bool wants_errors) const {
  wait.push_back({queue_.empty() ? -1 : in_.get(), POLLOUT, 0});
  wait.push_back({wants_output ? out_.get() : -1, POLLIN, 0});
  wait.push_back({wants_errors ? err_.get() : -1, POLLIN, 0});
}

void HostConnection::move(std::span<const pollfd> answer) {
  if (answer[0].revents != 0) write_some();
  if (answer[1].revents != 0) read_output();
  if (answer[2].revents != 0) errors_ += read_available(err_);
}

void HostConnection::reap() noexcept {
  int status = 0;
  if (pid_ > 0 && !status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  if (!status_) return;
  // Reads only available bytes: processes that the child started, such as ssh's ControlMaster, may
  // keep the pipes open.
  while (out_.valid()) {
    const std::size_t before = output_.size() + unsorted_.size() + notices_.size();
    read_output();
    if (output_.size() + unsorted_.size() + notices_.size() == before) out_.reset();
  }
  for (std::string more = "-"; err_.valid() && !more.empty(); errors_ += more) {
    more = read_available(err_);
  }
  err_.reset();
  output_ += std::exchange(unsorted_, {});
}

void HostConnection::read_output() {
  const std::string bytes = read_available(out_);
  if (!bytes.empty()) sort(bytes);
}

// Separates notices from output. Bytes that may begin a notice are kept for the next call.
void HostConnection::sort(std::string_view bytes) {
  unsorted_ += bytes;
  std::size_t at = 0;
  while (at < unsorted_.size()) {
    const std::size_t mark = std::min(unsorted_.find(kNoticeMark, at), unsorted_.size());
    output_.append(unsorted_, at, mark - at);
    at = mark;
    const std::string_view rest = std::string_view(unsorted_).substr(at);
    if (rest.empty()) break;
    if (!rest.starts_with(std::string_view(mark_).substr(0, rest.size()))) {
      output_ += unsorted_[at++];
      continue;
    }
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos && rest.size() < kLongestNotice) break;
    if (end == std::string_view::npos) {  // not a notice
      output_ += unsorted_[at++];
      continue;
    }
    notices_.emplace_back(rest.substr(mark_.size(), end - mark_.size()));
    at += end + 1;
  }
  unsorted_.erase(0, at);
}

}  // namespace hocket::cli
