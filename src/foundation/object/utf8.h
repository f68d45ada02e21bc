// UTF-8 as in RFC 3629: only shortest forms, no surrogates, up to U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hocket::object {

// Returns the position of the first byte that is not well-formed UTF-8. Absent if all bytes are.
std::optional<std::size_t> find_bad_utf8(std::string_view text) noexcept;

}  // namespace hocket::object
