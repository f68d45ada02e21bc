// The processes that have started a rank. They distinguish two jobs that meet at one address.
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

// A process and its ancestors, nearest first. Each is a number that is unique among all processes
// of all hosts. Empty if they are unknown.
using Origin = std::vector<std::uint64_t>;

inline constexpr std::size_t kMaxOrigin = 12;
inline constexpr std::size_t kNoCommonOrigin = SIZE_MAX;
// The number of steps up to which two ranks certainly belong together: one parent has started both,
// or one has started the other.
inline constexpr std::size_t kOneFamily = 1;

// Returns this process's origin.
Origin origin_of_this_process();
// Returns the number of steps from `who` up to the first process that is also in `other`.
// kNoCommonOrigin: there is none.
std::size_t steps_to(std::span<const std::uint64_t> who, std::span<const std::uint64_t> other);

}  // namespace hocket::rendezvous
