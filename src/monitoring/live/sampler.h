// Samples a job's segment repeatedly, and adds up how its ranks spend their time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "membership/control/onlooker.h"
#include "monitoring/live/board_layout.h"

namespace hocket::live {

// One rank's membership in a group. A value.
struct ShownGroup {
  std::uint64_t block = 0;
  int index = 0;  // the rank's number in the group
  std::string name;
};

// One rank at the time of a sample. A value.
struct GlancedRank {
  control::SeenRank line;
  bool shows = true;
  std::vector<ShownGroup> groups;
  int doing = -1;  // an index into `groups`; see LiveRank::doing
};

// A job at the time of a sample: ranks by place, and the members of each group by its block.
struct Glance {
  int here = 0;  // ranks of this host, which have the first places
  std::vector<GlancedRank> ranks;
  std::map<std::uint64_t, std::vector<control::SeenMember>> groups;

  const control::SeenMember* member_of(const ShownGroup& group) const noexcept;
};
// True if a member is in a call.
inline bool is_inside(const control::SeenMember& member) noexcept {
  return member.last > member.finished;
}

// Returns the board of a rank of this host; null if the rank has none, or shows nothing.
// `is_private` is true if the rank shows nothing.
const BoardLayout* board_of(const control::Onlooker& segment, int place) noexcept;
bool is_private(const control::Onlooker& segment, int place) noexcept;

// Sums over the samples of one rank. A value.
struct Tally {
  std::uint64_t looks = 0;
  std::uint64_t inside = 0;
  std::uint64_t waiting = 0;
  double calls = 0;
  double bytes = 0;
  std::chrono::steady_clock::time_point since;  // start of the current activity
};

// A resource, used by one thread: a view of a segment, which outlives it, and its samples.
class Sampler {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Sampler(const control::Onlooker& segment);

  void look();
  void begin_anew();

  const Glance& glance() const noexcept { return glance_; }
  const Tally& tally(int place) const { return tallies_[static_cast<std::size_t>(place)]; }
  double looked_s() const;
  // Null if the rank shows nothing.
  const BoardLayout* board(int place) const noexcept { return board_of(segment_, place); }

 private:
  // The activity of a rank. Two samples give equal values if the rank did not move between them.
  struct Doing {
    std::uint64_t block = 0;
    std::uint64_t last = 0;
    std::uint64_t finished = 0;
    bool waits = false;
    bool operator==(const Doing&) const = default;
  };
  void read_rank(int place);
  void add_others();
  void choose_doing(int place);
  void count(int place);
  void count_calls(int place, const ShownGroup& group);
  bool has_company(const control::SeenMember& member, std::uint64_t block) const;

  const control::Onlooker& segment_;
  Glance glance_;
  std::vector<Tally> tallies_;
  std::vector<Doing> doing_;                                        // by place
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> counted_;  // by place and block
  Clock::time_point begun_;
  Clock::time_point now_;
};

}  // namespace hocket::live
