// The processes that started a rank. They tell two jobs apart that meet at one address.
//
//   shell ─┬─ launcher a ─┬─ rank 0 of a   (serves)
//          │              └─ rank 1 of a   1 step up: a launcher in common with rank 0 of a
//          └─ launcher b ─┬─ rank 0 of b
//                         └─ rank 1 of b   1 step up to rank 0 of b, 2 steps to rank 0 of a
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hocket::rendezvous {

// A process and its ancestors, nearest first, each as a number that no other process of any host
// has. Empty if unknown.
using Origin = std::vector<std::uint64_t>;

inline constexpr std::size_t kMaxOrigin = 12;
inline constexpr std::size_t kNoCommonOrigin = SIZE_MAX;
// Number of steps up to which two ranks certainly belong together: one parent started both, or one
// started the other.
inline constexpr std::size_t kOneFamily = 1;

// Returns this process's origin.
Origin origin_of_this_process();
// Returns the number of steps from `who` up to the first process that `other` descends from, too.
std::size_t steps_to(std::span<const std::uint64_t> who, std::span<const std::uint64_t> other);

}  // namespace hocket::rendezvous
