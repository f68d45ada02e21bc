#include "interfaces/cli/run/over_hosts/head_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

bool HeadInput::wants_more() const {
  return !has_ended_ && on_its_way_ < kMostInput &&
         (::isatty(STDIN_FILENO) == 0 || ::tcgetpgrp(STDIN_FILENO) == ::getpgrp());
}

std::string HeadInput::read_order() {
  std::array<char, 1 << 14> buffer;
  const ssize_t length = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (length < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  const std::size_t bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
  has_ended_ = bytes == 0;
  on_its_way_ += bytes;
  return fmt::format("input {}\n", bytes) + std::string(buffer.data(), bytes);
}

void HeadInput::taken(std::size_t bytes) { on_its_way_ -= std::min(bytes, on_its_way_); }

}  // namespace hocket::cli
