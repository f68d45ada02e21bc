// What the record of a failure, which all ranks of a group share, says of how it came.
#pragma once

#include <optional>
#include <string_view>

#include "control/host.h"
#include "hocket/error.h"

namespace hocket::comm {

inline constexpr std::string_view kDiedText = "died";
inline constexpr std::string_view kLeftText = "ended in good order";
inline constexpr std::string_view kSilentText =
    "cannot be heard any more: its host has fallen silent";
inline constexpr std::string_view kCutText =
    "cannot be reached any more: the connection that carries its messages has broken";

inline constexpr std::string_view kRebuildText = "called rebuild()";
// Before the refusal's own words.
inline constexpr std::string_view kRefusedOnGpus =
    "refused a call that others had put on their GPUs: ";

// Why a rank takes part no longer.
struct Loss {
  ErrorCode code;
  std::string_view text;
  bool sudden;  // it had no time to finish what it had begun
};

// Absent: it is there. `rebuilds`: it has called for the next epoch.
inline std::optional<Loss> loss_of(control::RankState state, bool rebuilds) noexcept {
  using control::RankState;
  switch (state) {
    case RankState::kAbsent:
    case RankState::kAlive:
      if (!rebuilds) return std::nullopt;
      return Loss{ErrorCode::kAborted, kRebuildText, false};
    case RankState::kLeft:
      return Loss{ErrorCode::kPeerDied, kLeftText, false};
    case RankState::kSilent:
      return Loss{ErrorCode::kPeerDied, kSilentText, true};
    case RankState::kCut:
      return Loss{ErrorCode::kPeerDied, kCutText, true};
    case RankState::kDied:
      break;
  }
  return Loss{ErrorCode::kPeerDied, kDiedText, true};
}

}  // namespace hocket::comm
