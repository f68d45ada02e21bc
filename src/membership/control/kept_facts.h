// Keeps facts about groups that are not on a host's list (ListedGroups) in the host's segment.
//
// The segment has two rings of such facts:
//
// - Farewells are the last facts about groups that were removed from the list: they tell how far
//   each rank had come before it closed the group and left. The next speaker of this host sends
//   them again. The speaker before it may not have delivered them, because its connection broke or
//   it ended.
// - Forerunners are facts of other hosts about groups that are not on the list yet. Ranks of other
//   hosts may use the group of the next epoch, and leave again, before the first rank of this host
//   returns from `rebuild`. Facts about groups that were removed from the list are no forerunners:
//   when groups end, hosts send the last facts about many of them.
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
#include "membership/control/host/view.h"

namespace hocket::control {

// A fact as a frame, in the form in which it is sent to other hosts. A value.
struct KeptFrame {
  static constexpr std::size_t kBytes = 488;
  std::uint64_t about = 0;
  std::int32_t from = -1;  // of a forerunner: the number of the host that sent it
  std::uint32_t bytes = 0;
  std::byte frame[kBytes];
};

struct alignas(kCacheLine) KeptFact {
  std::atomic<std::uint64_t> number{0};  // from 1; 0: empty; or kBeingWritten
  KeptFrame what;
};
static_assert(sizeof(KeptFact) == 512);

// A ring of the latest facts. All zeros is an empty ring. Any process and thread may use it. A fact
// is not visible while it is being written. If its writer ends meanwhile, this entry stays unused.
class KeptFacts {
 public:
  static constexpr std::size_t kPlaces = 1024;
  // Keeps a fact, unless the ring has it already. `about` is the rank's place for a farewell, and
  // the group's id for a forerunner. Of a member's records it keeps only the latest ones, because
  // they explain why its last calls failed. A fact whose frame is too long is not kept.
  void keep(std::uint64_t about, const Fact& fact, int from = -1);
  // Return the frames of the facts that were kept with `about`, or of all facts. Each frame has its
  // header.
  std::vector<Bytes> of(std::uint64_t about) const;
  std::vector<Bytes> all() const;
  // Returns the frames as `of` does, each with the host that sent it.
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

// The groups that were removed from this host's list. All zeros is an empty set. A group may be
// forgotten: of two groups with the same entry, it knows the later one. Any process and thread may
// use it.
class GoneGroups {
 public:
  void note(std::uint64_t id) noexcept { place(id).store(id, std::memory_order_release); }
  bool knows(std::uint64_t id) noexcept { return place(id).load(std::memory_order_acquire) == id; }

 private:
  std::atomic<std::uint64_t>& place(std::uint64_t id) noexcept {
    return ids_[id / 2 % ids_.size()];  // ids are random, but always odd
  }
  std::array<std::atomic<std::uint64_t>, 4096> ids_;
};

}  // namespace hocket::control
