// Checks UTF-8 as in RFC 3629: only shortest forms, no surrogates, up to U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hocket::object {

// Returns the index at which the first ill-formed sequence begins. Absent if the text is
// well-formed.
std::optional<std::size_t> find_bad_utf8(std::string_view text) noexcept;

}  // namespace hocket::object
