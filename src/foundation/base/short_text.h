// A text of fixed size, for shared memory, files, and data that ranks exchange.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace hocket::base {

// A value. A text that is too long is cut. A text that fills the array has no terminating zero.
// `view` never exceeds the array, even if another process wrote it.
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

// Returns how much of `text` fits into `most` bytes with " ..." behind it. It ends at a clause, or
// else at a word. A last word is cut if too little would remain without it.
inline std::size_t length_of_whole_part(std::string_view text, std::size_t most) noexcept {
  const std::string_view fits = text.substr(0, most - 4);
  const std::size_t clause = std::max(fits.rfind("; ") + 1, fits.rfind(". ") + 1);
  if (clause > most / 3) return clause - 1;
  const std::size_t word = fits.rfind(' ');
  if (word != std::string_view::npos && word > most / 3) return word;
  std::size_t end = fits.size();
  // Do not cut within a UTF-8 character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return end;
}

// Returns the text. If it is longer than `most` bytes, returns a part that is at most `most` bytes
// long and ends with " ...".
inline std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, length_of_whole_part(text, most))) + " ...";
}

// A ShortText that is cut after a clause or a word if it is too long, and then ends with " ...".
template <std::size_t kBytes>
struct ShortSentence : ShortText<kBytes> {
  ShortSentence& operator=(std::string_view text) noexcept {
    if (text.size() <= kBytes) {
      ShortText<kBytes>::operator=(text);
      return *this;
    }
    const std::size_t length = length_of_whole_part(text, kBytes);
    ShortText<kBytes>::operator=(text.substr(0, length));
    std::memcpy(this->chars + length, " ...", 4);
    return *this;
  }
};

}  // namespace hocket::base
