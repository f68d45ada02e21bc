// UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, up to U+10FFFF.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hocket::object {

// Where the first byte stands that is not part of well-formed UTF-8; absent where all is well.
std::optional<std::size_t> find_bad_utf8(std::string_view text) noexcept;

}  // namespace hocket::object
