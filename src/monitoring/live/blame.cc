#include "monitoring/live/blame.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hocket::live {
namespace {

using control::SeenMember;

const GlancedRank& rank_at(const Glance& glance, int place) {
  return glance.ranks[static_cast<std::size_t>(place)];
}

const ShownGroup* doing_of(const Glance& glance, int place) {
  const GlancedRank& rank = rank_at(glance, place);
  return rank.doing < 0 ? nullptr : &rank.groups[static_cast<std::size_t>(rank.doing)];
}

// For a call that all members have begun: returns the place of a member that has not finished the
// call and whose process is stopped. -1 if there is none.
int still_inside(const Glance& glance, int place, const std::function<bool(int)>& stands_still) {
  const ShownGroup& group = *doing_of(glance, place);
  const std::uint64_t sequence = glance.member_of(group)->last;
  for (const SeenMember& other : glance.groups.at(group.block)) {
    if (other.place >= 0 && other.place != place && other.finished < sequence &&
        stands_still(other.place)) {
      return other.place;
    }
  }
  return -1;
}

// Returns the place of the rank for which the rank at `place` waits next; -1: none, or unknown.
int next_of(const Glance& glance, int place, const std::function<bool(int)>& stands_still) {
  const ShownGroup* const group = doing_of(glance, place);
  if (group == nullptr) return -1;
  const SeenMember& own = *glance.member_of(*group);
  if (!is_inside(own)) return own.waits ? rank_at(glance, place).line.awaits : -1;
  int found = -1;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const SeenMember& other : glance.groups.at(group->block)) {
    if (other.place < 0 || other.last >= own.last) continue;
    // Choose the rank that is furthest behind. A rank inside its last call is behind a rank that
    // has ended the same call.
    const std::uint64_t progress = 2 * other.last + (is_inside(other) ? 0 : 1);
    if (progress >= least) continue;
    least = progress;
    found = other.place;
  }
  return found >= 0 ? found : still_inside(glance, place, stands_still);
}

}  // namespace

std::vector<int> missing_from(const Glance& glance, int place) {
  std::vector<int> places;
  const ShownGroup* const group = doing_of(glance, place);
  if (group == nullptr) return places;
  const SeenMember& own = *glance.member_of(*group);
  if (!is_inside(own)) return places;
  for (const SeenMember& other : glance.groups.at(group->block)) {
    if (other.place >= 0 && other.last < own.last) places.push_back(other.place);
  }
  return places;
}

int blamed_by(const Glance& glance, int place, const std::function<bool(int)>& stands_still) {
  std::vector<int> way{place};
  for (;;) {
    const int next = next_of(glance, way.back(), stands_still);
    if (next < 0) return way.size() == 1 ? -1 : way.back();
    const auto before = std::ranges::find(way, next);
    if (before != way.end()) return *std::min_element(before, way.end());
    if (stands_still(next)) return next;
    way.push_back(next);
  }
}

}  // namespace hocket::live
