// What was said last of groups that are gone on a host, in its segment.
//
// Several processes may speak for a host at one time, as one that leaves does until it has been
// heard, and a way to another host may break with news on it. So that whoever speaks next knows
// how far a rank had come that has closed a group and left, its last words outlive the group.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "control/host.h"
#include "hocket/store.h"

namespace hocket::control {

// One frame, as it goes to other hosts.
struct alignas(kCacheLine) Farewell {
  static constexpr std::size_t kBytes = 496;
  std::atomic<std::uint64_t> number{0};  // from 1; 0: empty, or being written
  std::int32_t place = 0;                // of the rank that it is about
  std::uint32_t bytes = 0;
  std::byte frame[kBytes];
};

// A ring of the latest, which begins as zeros. Safe from any process and thread: two who wrap round
// onto one place at the same time may spoil that word, which its reader then drops or a parser
// does.
class Farewells {
 public:
  // Nothing is kept of a frame that is too long.
  void keep(int place, std::span<const std::byte> frame) noexcept;
  // Of a rank; of all, for -1.
  std::vector<Bytes> of(int place) const;

 private:
  alignas(kCacheLine) std::atomic<std::uint64_t> said_{0};
  std::array<Farewell, 1024> ring_;
};

}  // namespace hocket::control
