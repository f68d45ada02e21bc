// The words of a line, and the numbers among them. Not by streams: those read numbers by facets of
// the process's locale, which belong to whichever C++ library another package has brought.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace hocket::base {

inline constexpr const char* kBlanks = " \t\r\n";

// Takes the first word away; empty: there is none left.
inline std::string_view next_word(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlanks)));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

// Absent where the word, all of it, is no such number.
template <typename T>
std::optional<T> number_in(std::string_view word) noexcept {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// The first word of a line, as a number.
template <typename T>
std::optional<T> first_number(std::string_view line) noexcept {
  return number_in<T>(next_word(line));
}

}  // namespace hocket::base
