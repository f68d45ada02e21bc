// Parses the words and numbers of a line. It uses no C++ streams, because these depend on the
// process's locale, and on the C++ library that another package has loaded.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace hocket::base {

inline constexpr const char* kBlanks = " \t\r\n";

// Removes the first word of `line` and returns it. Empty if there is none.
inline std::string_view next_word(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlanks)));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

// Converts a word to a number. Absent if the word as a whole is not a number of type T.
template <typename T>
std::optional<T> number_in(std::string_view word) noexcept {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Returns the first word of a line as a number.
template <typename T>
std::optional<T> first_number(std::string_view line) noexcept {
  return number_in<T>(next_word(line));
}

}  // namespace hocket::base
