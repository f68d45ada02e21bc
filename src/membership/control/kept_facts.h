// Facts of groups that are not listed on a host, kept in its segment.
//
// Two such rings are in the segment:
//
// - Farewells are the last facts about groups that are gone. Several processes may speak for a host
//   at one time, as a leaving one does until it has been heard. A connection to another host may
//   also break with news on it. The last words outlive the group. So the next speaker knows how far
//   a rank had come that has closed a group and left.
// - Forerunners are facts of other hosts about groups that are not listed here yet. Those hosts'
//   ranks may use the next epoch's group, and leave, before the first rank here returns from
//   `rebuild`. Facts about groups that were listed here before are no forerunners: hosts send last
//   words of many groups at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hocket/store.h"
#include "membership/control/facts.h"
#include "membership/control/group_layout.h"
#include "membership/control/host.h"

namespace hocket::control {

// A frame, as it is sent to other hosts. A value.
struct KeptFrame {
  static constexpr std::size_t kBytes = 488;
  std::uint64_t about = 0;
  std::int32_t from = -1;  // for forerunners: the number of the host that sent it
  std::uint32_t bytes = 0;
  std::byte frame[kBytes];
};

struct alignas(kCacheLine) KeptFact {
  std::atomic<std::uint64_t> number{0};  // from 1; 0: empty; kBeingWritten
  KeptFrame what;
};
static_assert(sizeof(KeptFact) == 512);

// A ring of the latest facts, initially zeros. Safe from any process and thread. A fact that is
// being written is not visible. If its writer ends in the middle, that place stays unused.
class KeptFacts {
 public:
  static constexpr std::size_t kPlaces = 1024;
  // `about` is the rank's place for farewells, and the group for forerunners. A fact is kept once.
  // Only a member's last records are kept, as they explain why its last calls failed. Frames that
  // are too long are not kept.
  void keep(std::uint64_t about, const Fact& fact, int from = -1);
  // Frames, each with a header.
  std::vector<Bytes> of(std::uint64_t about) const;
  std::vector<Bytes> all() const;
  // The same, with the sender.
  struct Heard {
    int from;
    Bytes frame;
  };
  std::vector<Heard> heard(std::uint64_t about) const { return find(about); }

 private:
  void keep(const KeptFrame& frame) noexcept;
  std::span<const KeptFact> used() const noexcept;
  std::vector<Heard> find(std::optional<std::uint64_t> about) const;

  alignas(kCacheLine) std::atomic<std::uint64_t> kept_{0};
  std::array<KeptFact, kPlaces> ring_;
};

// Groups that were removed from this host's list. Initially zeros. It forgets: of two groups with
// the same place it knows the later one. Safe from any process and thread.
class GoneGroups {
 public:
  void note(std::uint64_t id) noexcept { place(id).store(id, std::memory_order_release); }
  bool knows(std::uint64_t id) noexcept { return place(id).load(std::memory_order_acquire) == id; }

 private:
  std::atomic<std::uint64_t>& place(std::uint64_t id) noexcept {
    return ids_[id / 2 % ids_.size()];  // ids are odd, and random otherwise
  }
  std::array<std::atomic<std::uint64_t>, 4096> ids_;
};

}  // namespace hocket::control
