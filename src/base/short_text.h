// A text of fixed size: for memory that processes share, for files, for what ranks tell each other.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace hocket::base {

// A value. What is too long is cut, and what fills it has no zero behind it: whoever wrote it, its
// view ends where it does.
template <std::size_t kBytes>
struct ShortText {
  char chars[kBytes] = {};

  ShortText& operator=(std::string_view text) noexcept {
    const std::size_t size = text.copy(chars, kBytes);
    std::memset(chars + size, 0, kBytes - size);
    return *this;
  }
  bool empty() const noexcept { return chars[0] == '\0'; }
  std::string_view view() const noexcept { return {chars, strnlen(chars, kBytes)}; }
};

}  // namespace hocket::base
