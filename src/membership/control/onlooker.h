// A segment as seen by a process outside the job: it only reads, and does not trust what it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "membership/control/group.h"
#include "membership/control/host.h"

namespace hocket::control {

// The content of a rank's line. A value.
struct SeenRank {
  RankState state = RankState::kAbsent;
  int world_rank = -1;
  int pid = 0;     // as the rank itself knows it
  int thread = 0;  // likewise: the thread in which it joined
  std::uint64_t start = 0;
  std::uint64_t pid_space = 0;
  int host = -1;
  int awaits = -1;  // a place
};
// The content of a group's block about one member. A value.
struct SeenMember {
  int place = -1;
  std::uint64_t last = 0;
  std::uint64_t finished = 0;
  bool finished_well = false;
  bool waits = false;  // for a message
};

// A view of a segment, or a part of one, that is mapped for reading. For data outside the mapped
// part, functions return empty results. Any thread.
class Onlooker {
 public:
  explicit Onlooker(std::span<const std::byte> segment) noexcept;

  enum class Known : std::uint8_t { kYes, kOtherVersion, kNoSegment };
  Known known() const noexcept { return known_; }
  // Number of ranks on this host, and of places for all ranks.
  int ranks() const noexcept { return ranks_; }
  int places() const noexcept { return places_; }
  SeenRank rank(int place) const noexcept;
  // The offset of the first allocation of a rank of this host.
  std::uint64_t first_block(int place) const noexcept;

  // Number of members of the group whose block is at `block`; 0: there is none.
  int size_of_group(std::uint64_t block) const noexcept;
  SeenMember member(std::uint64_t block, int index) const noexcept;
  // The message that it waits for; empty: none.
  std::string wait(std::uint64_t block, int index) const;
  std::optional<Record> record(std::uint64_t block, int index, std::uint64_t sequence) const;
  // The failure that ended the group; absent: none yet.
  std::optional<Failure> failure(std::uint64_t block) const;

  // A structure in the segment; null if it would lie outside.
  template <typename Structure>
  const Structure* at(std::uint64_t offset, std::size_t count = 1) const noexcept {
    return static_cast<const Structure*>(
        find(offset, sizeof(Structure), alignof(Structure), count));
  }

 private:
  const void* find(std::uint64_t offset,
                   std::size_t bytes,
                   std::size_t alignment,
                   std::size_t count) const noexcept;
  std::byte* block_of(std::uint64_t block, int index) const noexcept;

  std::span<const std::byte> segment_;
  Known known_ = Known::kNoSegment;
  int ranks_ = 0;
  int places_ = 0;
  std::size_t stripe_bytes_ = 0;
};

// The same offset, as a rank of the job finds it.
std::uint64_t first_block_of(const HostControl& host, int place) noexcept;

}  // namespace hocket::control
