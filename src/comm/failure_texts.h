// What a failure of a lost rank says in the record that all ranks of a group share.
#pragma once

#include <string_view>

namespace hocket::comm {

inline constexpr std::string_view kDiedText = "died";
inline constexpr std::string_view kLeftText = "ended in good order";
inline constexpr std::string_view kSilentText =
    "cannot be heard any more: its host has fallen silent";
inline constexpr std::string_view kCutText =
    "cannot be reached any more: the connection that carries its messages has broken";

inline constexpr std::string_view kRebuildText = "called rebuild()";

}  // namespace hocket::comm
