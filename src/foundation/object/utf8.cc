#include "foundation/object/utf8.h"

#include <cstdint>

namespace hocket::object {
namespace {

// The bytes that must follow a lead byte: their number, and the range of the first of them. All
// others are in 80..BF. The ranges that are narrower exclude overlong forms, surrogates and numbers
// above 10FFFF.
struct Lead {
  int followers;
  std::uint8_t low;
  std::uint8_t high;
};

constexpr Lead lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2) return {-1, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte < 0xF4) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {-1, 0, 0};
}

}  // namespace

std::optional<std::size_t> find_bad_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    Lead lead = lead_of(static_cast<std::uint8_t>(text[at]));
    if (lead.followers < 0) return at;
    for (int i = 1; i <= lead.followers; ++i) {
      if (at + i >= text.size()) return at;
      const auto byte = static_cast<std::uint8_t>(text[at + i]);
      if (byte < lead.low || byte > lead.high) return at;
      lead.low = 0x80;
      lead.high = 0xBF;
    }
    at += static_cast<std::size_t>(lead.followers) + 1;
  }
  return std::nullopt;
}

}  // namespace hocket::object
