// Facts of groups that are not listed on a host, kept in its segment.
//
// Two such rings lie there. Farewells are what was said last of groups that are gone: several
// processes may speak for a host at one time, as one that leaves does until it has been heard, and
// a way to another host may break with news on it; so that whoever speaks next knows how far a
// rank had come that has closed a group and left, its last words outlive the group. Forerunners
// are what other hosts say of groups that nobody has listed here yet: their ranks may use the group
// of the next epoch, and leave, before the first of this host's has come back from `rebuild`. What
// is said of groups that were listed here once is none: hosts say last words of many at a time.
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

// A frame, as it goes to other hosts. A value.
struct KeptFrame {
  static constexpr std::size_t kBytes = 488;
  std::uint64_t about = 0;
  std::int32_t from = -1;  // of forerunners: the number of the host that said so
  std::uint32_t bytes = 0;
  std::byte frame[kBytes];
};

struct alignas(kCacheLine) KeptFact {
  std::atomic<std::uint64_t> number{0};  // from 1; 0: empty; kBeingWritten
  KeptFrame what;
};
static_assert(sizeof(KeptFact) == 512);

// A ring of the latest, which begins as zeros. Safe from any process and thread. What is being
// written is not there yet; where its writer ends in the middle, that place stays unused.
class KeptFacts {
 public:
  static constexpr std::size_t kPlaces = 1024;
  // `about`: of farewells, the place of their rank; of forerunners, the group. What is kept already
  // is not kept twice, and of a member's records only the last: in them lies why its last calls
  // went wrong. Nothing is kept of a frame that is too long.
  void keep(std::uint64_t about, const Fact& fact, int from = -1);
  // Frames, a header before each.
  std::vector<Bytes> of(std::uint64_t about) const;
  std::vector<Bytes> all() const;
  // The same, and who said so.
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

// Groups that were taken off this host's list. It begins as zeros, and forgets: of two that share a
// place it knows the later one. Safe from any process and thread.
class GoneGroups {
 public:
  void note(std::uint64_t id) noexcept { place(id).store(id, std::memory_order_release); }
  bool knows(std::uint64_t id) noexcept { return place(id).load(std::memory_order_acquire) == id; }

 private:
  std::atomic<std::uint64_t>& place(std::uint64_t id) noexcept {
    return ids_[id / 2 % ids_.size()];  // they are odd, and random otherwise
  }
  std::array<std::atomic<std::uint64_t>, 4096> ids_;
};

}  // namespace hocket::control
