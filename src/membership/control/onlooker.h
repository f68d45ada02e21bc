// A segment as a process sees it that is none of the job's: it reads, and trusts nothing of what it
// reads.
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

// What a rank's line says. A value.
struct SeenRank {
  RankState state = RankState::kAbsent;
  int world_rank = -1;
  int pid = 0;     // as the rank itself knows it
  int thread = 0;  // likewise: in which it joined
  std::uint64_t start = 0;
  std::uint64_t pid_space = 0;
  int host = -1;
  int awaits = -1;  // a place
};
// What a group's block says of a member. A value.
struct SeenMember {
  int place = -1;
  std::uint64_t last = 0;
  std::uint64_t finished = 0;
  bool finished_well = false;
  bool waits = false;  // for a message
};

// A view of a segment that is mapped for reading, or of a part of one: each function says nothing
// of what does not lie in it. Any thread.
class Onlooker {
 public:
  explicit Onlooker(std::span<const std::byte> segment) noexcept;

  enum class Known : std::uint8_t { kYes, kOtherVersion, kNoSegment };
  Known known() const noexcept { return known_; }
  // Of this host, and of all.
  int ranks() const noexcept { return ranks_; }
  int places() const noexcept { return places_; }
  SeenRank rank(int place) const noexcept;
  // Where what a rank of this host has allocated first lies.
  std::uint64_t first_block(int place) const noexcept;

  // How many members the group whose block lies at `block` has; 0: none lies there.
  int size_of_group(std::uint64_t block) const noexcept;
  SeenMember member(std::uint64_t block, int index) const noexcept;
  // The message that it waits for; empty: none.
  std::string wait(std::uint64_t block, int index) const;
  std::optional<Record> record(std::uint64_t block, int index, std::uint64_t sequence) const;
  // What ended the group; absent: nothing so far.
  std::optional<Failure> failure(std::uint64_t block) const;

  // A structure that lies in the segment; null where it would not.
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

// Where a rank of this host has it, as another one knows.
std::uint64_t first_block_of(const HostControl& host, int place) noexcept;

}  // namespace hocket::control
