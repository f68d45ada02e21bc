#include "interfaces/cli/run/output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace hocket::cli {

void Sink::put(int owner, std::string_view prefix, std::string_view text) {
  if (is_broken() || text.empty()) return;
  const bool continues = line_owner_ == owner;
  if (!continues && line_owner_ != kNobody) {
    pending_ += '\n';  // an unfinished line of another program
    at_line_start_ = true;
  }
  line_owner_ = owner;
  // A '\r' that begins a progress bar, or the '\n' of a "\r\n" that was read in two.
  const bool is_bare_end = at_line_start_ && (text == "\r" || (text == "\n" && continues));
  if (at_line_start_ && !is_bare_end) pending_ += prefix;
  pending_ += text;
  at_line_start_ = text.back() == '\n' || text.back() == '\r';
  if (text.back() == '\n') line_owner_ = kNobody;
}

void Sink::end_line(int owner) {
  if (line_owner_ == owner) put(owner, {}, "\n");
}

void Sink::put_line(std::string_view text) {
  constexpr int kLauncher = -2;
  put(kLauncher, {}, std::string(text) + "\n");
}

void Sink::abandon() noexcept {
  broken_ = true;
  pending_.clear();
  written_ = 0;
}

void Sink::write_some() {
  while (wants_to_write()) {
    // A ready pipe takes PIPE_BUF bytes without blocking; more may block.
    const std::size_t length = std::min<std::size_t>(pending_.size() - written_, PIPE_BUF);
    const ssize_t written = ::write(fd_, pending_.data() + written_, length);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (written < 0) {
      // It is no error if the reader has closed the pipe, or the descriptor was closed from the
      // start.
      if (errno != EPIPE && errno != EBADF) error_ = errno;
      return abandon();
    }
    written_ += static_cast<std::size_t>(written);
    if (written_ == pending_.size()) {
      pending_.clear();
      written_ = 0;
    }
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  }
}

bool Stream::read_some() {
  if (!can_read()) return false;
  // If the reader is gone, this closes the rank's pipe, so that its next write fails, too.
  if (options_.sink != nullptr && options_.sink->is_broken() && !options_.log.valid()) {
    source_.reset();
    return false;
  }
  std::array<char, 1 << 16> buffer;
  const ssize_t length = ::read(source_.get(), buffer.data(), buffer.size());
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (length <= 0) {
    close();
    return false;
  }
  last_read_ = Clock::now();
  take({buffer.data(), static_cast<std::size_t>(length)});
  return true;
}

void Stream::take(std::string_view text) {
  log(text);
  if (options_.sink == nullptr) return;
  while (!text.empty()) {
    std::size_t end = text.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      partial_ += text;
      if (partial_.size() < kLongestLine) return;
      long_bytes_ += partial_.size();
      flush_partial();
      if (long_bytes_ > kLongestKept) return;
      keeps_sink_ = true;
      options_.sink->keep_for(options_.owner);
      return;
    }
    if (text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n') ++end;
    partial_ += text.substr(0, end + 1);
    long_bytes_ = 0;
    flush_partial();
    text.remove_prefix(end + 1);
  }
}

void Stream::close() {
  flush_partial();
  // With prefixes, every line is completed by an end of line. Without prefixes, the bytes are
  // written unchanged.
  if (options_.sink != nullptr && !options_.prefix.empty()) options_.sink->end_line(options_.owner);
  source_.reset();
}

void Stream::flush_partial() {
  show(partial_);
  partial_.clear();
  if (std::exchange(keeps_sink_, false)) options_.sink->let_go(options_.owner);
}

void Stream::show(std::string_view text) {
  if (options_.sink != nullptr) options_.sink->put(options_.owner, options_.prefix, text);
}

void Stream::log(std::string_view text) {
  while (options_.log.valid() && !text.empty()) {
    const ssize_t written = ::write(options_.log.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      log_error_ = errno;
      return options_.log.reset();  // a full disk ends the log, not the job
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace hocket::cli
