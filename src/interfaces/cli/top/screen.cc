#include "interfaces/cli/top/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace hocket::cli {
namespace {

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

int columns_of_output() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

Screen::Screen() {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&caught, each);
  sigprocmask(SIG_BLOCK, &caught, nullptr);
  signals_ =
      checked_fd(::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK), "cannot wait for signals");
  ::tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put("\x1b[?1049h\x1b[?25l");
  measure();
}

Screen::~Screen() {
  put("\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::measure() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
  columns_ = size.ws_col;
  lines_ = size.ws_row;
}

void Screen::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  const std::size_t count = std::min(lines.size(), static_cast<std::size_t>(lines_));
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) text += "\r\n";
    text += lines[i] + "\x1b[K";
  }
  put(text + "\x1b[J");
}

std::optional<Pressed> Screen::wait(std::chrono::milliseconds patience) {
  if (!keys_.empty()) return take_key();
  std::array<pollfd, 2> polls{{{STDIN_FILENO, POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
  const int ready = ::poll(polls.data(), polls.size(), static_cast<int>(patience.count()));
  if (ready <= 0) return std::nullopt;
  if ((polls[1].revents & POLLIN) != 0) {
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    if (info.ssi_signo != SIGWINCH) return Pressed{.key = Key::kQuit};
    measure();
    return Pressed{.key = Key::kResize};
  }
  std::array<char, 64> bytes;
  const ssize_t length = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (length <= 0) return Pressed{.key = Key::kQuit};  // the terminal has gone
  keys_.assign(bytes.data(), static_cast<std::size_t>(length));
  return take_key();
}

Pressed Screen::take_key() {
  struct NamedKey {
    std::string_view bytes;
    Key key;
  };
  constexpr std::array kKeys{NamedKey{"\x1b[A", Key::kUp},
                             NamedKey{"\x1bOA", Key::kUp},
                             NamedKey{"k", Key::kUp},
                             NamedKey{"\x1b[B", Key::kDown},
                             NamedKey{"\x1bOB", Key::kDown},
                             NamedKey{"j", Key::kDown},
                             NamedKey{"\r", Key::kEnter},
                             NamedKey{"\n", Key::kEnter},
                             NamedKey{"\x7f", Key::kBack},
                             NamedKey{"\x1b", Key::kBack},
                             NamedKey{"q", Key::kQuit}};
  for (const NamedKey& each : kKeys) {
    if (!keys_.starts_with(each.bytes)) continue;
    keys_.erase(0, each.bytes.size());
    return {.key = each.key};
  }
  const char letter = keys_.front();
  keys_.erase(0, 1);
  return {.key = Key::kLetter, .letter = letter};
}

}  // namespace hocket::cli
