// Reads the segment of a job from a process outside the job. It writes nothing, and does not trust
// anything that it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "membership/control/group.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The contents of a rank's line; see RankLine. A value.
struct SeenRank {
  RankState state = RankState::kAbsent;
  int world_rank = -1;
  int pid = 0;     // in the rank's own pid namespace
  int thread = 0;  // the thread in which it joined, in the same namespace
  std::uint64_t start = 0;
  std::uint64_t pid_space = 0;
  int host = -1;
  int awaits = -1;  // the place of the rank that it waits for; -1: none
};
// The state of one member in a group's block; see GroupMember. A value.
struct SeenMember {
  int place = -1;
  std::uint64_t last = 0;
  std::uint64_t finished = 0;
  bool finished_well = false;
  bool waits = false;  // it waits for a message
};

// A view of a segment, or a part of one, that is mapped read-only. If data is outside the mapped
// part, the functions return empty results. Any thread.
class Onlooker {
 public:
  explicit Onlooker(std::span<const std::byte> segment) noexcept;

  enum class Known : std::uint8_t { kYes, kOtherVersion, kNoSegment };
  Known known() const noexcept { return known_; }
  // Return the number of ranks on this host, and of places for all ranks.
  int ranks() const noexcept { return ranks_; }
  int places() const noexcept { return places_; }
  SeenRank rank(int place) const noexcept;
  // Returns the offset of the first allocation of a rank of this host.
  std::uint64_t first_block(int place) const noexcept;

  // Returns the number of members of the group whose block is at `block`; 0 if there is no group.
  int size_of_group(std::uint64_t block) const noexcept;
  SeenMember member(std::uint64_t block, int index) const noexcept;
  // Returns the message that the member waits for; empty: none.
  std::string wait(std::uint64_t block, int index) const;
  std::optional<Record> record(std::uint64_t block, int index, std::uint64_t sequence) const;
  // Returns the failure that ended the group. Absent: it has not failed.
  std::optional<Failure> failure(std::uint64_t block) const;

  // Returns the address of `count` structures in the segment. Null if they would not be inside it.
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

}  // namespace hocket::control
