// Whether a collective read or write goes in two phases (see two_phases.h), and in which rounds.
#pragma once

#include <optional>

#include "interfaces/mpi/files/file.h"

namespace hocket::mpi {

// The rounds of a call. A value, the same on all ranks.
struct Rounds {
  std::int64_t begin = 0;   // the first place in the file
  std::int64_t window = 0;  // bytes of a window, in whole pages of kFilePage bytes
};
inline constexpr std::int64_t kFilePage = 4096;

// Takes the hints that are valid. File::info then shows which ones are in use.
void take_hints(File& file, const Info& given);

// Collective. Decides for all ranks, by what each is to move. Nothing: each rank moves its own
// runs.
std::optional<Rounds> agreed_rounds(const File& file, const Portion& own);

}  // namespace hocket::mpi
