#include "monitoring/live/sampler.h"

#include <algorithm>

namespace hocket::live {

using control::SeenMember;

const SeenMember* Glance::member_of(const ShownGroup& group) const noexcept {
  const auto found = groups.find(group.block);
  if (found == groups.end()) return nullptr;
  const auto index = static_cast<std::size_t>(group.index);
  return index < found->second.size() ? &found->second[index] : nullptr;
}

namespace {

const BoardLayout* any_board_of(const control::Onlooker& segment, int place) noexcept {
  if (place < 0 || place >= segment.ranks()) return nullptr;
  return segment.at<BoardLayout>(segment.first_block(place));
}

}  // namespace

const BoardLayout* board_of(const control::Onlooker& segment, int place) noexcept {
  const BoardLayout* const board = any_board_of(segment, place);
  if (board == nullptr) return nullptr;
  return board->manner.load(std::memory_order_acquire) == BoardLayout::kShown ? board : nullptr;
}

bool is_private(const control::Onlooker& segment, int place) noexcept {
  const BoardLayout* const board = any_board_of(segment, place);
  return board != nullptr && board->manner.load(std::memory_order_acquire) == BoardLayout::kPrivate;
}

Sampler::Sampler(const control::Onlooker& segment)
    : segment_(segment),
      tallies_(static_cast<std::size_t>(segment.places())),
      doing_(static_cast<std::size_t>(segment.places())) {
  begin_anew();
}

void Sampler::begin_anew() {
  begun_ = now_ = Clock::now();
  for (Tally& tally : tallies_) tally = {.since = tally.since};
}

double Sampler::looked_s() const { return std::chrono::duration<double>(now_ - begun_).count(); }

void Sampler::look() {
  now_ = Clock::now();
  const int places = segment_.places();
  glance_.here = segment_.ranks();
  glance_.groups.clear();
  glance_.ranks.assign(static_cast<std::size_t>(places), {});
  for (int place = 0; place < places; ++place) read_rank(place);
  for (auto& [block, members] : glance_.groups) {
    const int size = segment_.size_of_group(block);
    members.reserve(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) members.push_back(segment_.member(block, i));
  }
  add_others();
  for (int place = 0; place < places; ++place) {
    choose_doing(place);
    count(place);
  }
}

void Sampler::read_rank(int place) {
  GlancedRank& rank = glance_.ranks[static_cast<std::size_t>(place)];
  rank.line = segment_.rank(place);
  if (place >= segment_.ranks()) return;
  rank.shows = !is_private(segment_, place);
  if (rank.line.state != control::RankState::kAlive) return;
  const BoardLayout* const layout = board(place);
  if (layout == nullptr) return;
  for (const BoardEntry& entry : layout->groups) {
    const auto content = entry.read();
    if (!content || content->rank < 0 || content->rank >= segment_.size_of_group(content->block)) {
      continue;
    }
    glance_.groups[content->block];
    rank.groups.push_back({.block = content->block,
                           .index = content->rank,
                           .name = std::string(content->name.view())});
  }
}

// Adds the groups of ranks of other hosts. The boards of these ranks are not on this host, so only
// groups that they share with ranks of this host are known.
void Sampler::add_others() {
  if (segment_.places() == segment_.ranks()) return;
  std::map<std::uint64_t, std::string> names;
  for (const GlancedRank& rank : glance_.ranks) {
    for (const ShownGroup& group : rank.groups) names.emplace(group.block, group.name);
  }
  for (const auto& [block, members] : glance_.groups) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i].place < segment_.ranks()) continue;
      glance_.ranks[static_cast<std::size_t>(members[i].place)].groups.push_back(
          {.block = block, .index = static_cast<int>(i), .name = names[block]});
    }
  }
}

// Chooses the group that shows the rank's activity. A group with a call in progress comes first,
// then a group in which it waits for a message, then the group chosen before.
void Sampler::choose_doing(int place) {
  const auto at = static_cast<std::size_t>(place);
  GlancedRank& rank = glance_.ranks[at];
  Doing now;
  int best = -1;
  for (std::size_t i = 0; i < rank.groups.size(); ++i) {
    const ShownGroup& group = rank.groups[i];
    const SeenMember* const member = glance_.member_of(group);
    if (member == nullptr) continue;
    count_calls(place, group);
    const int weight = is_inside(*member) ? 3 : member->waits ? 2 : 0;
    const bool is_same = group.block == doing_[at].block;
    if (weight + (is_same ? 1 : 0) <= best) continue;
    best = weight + (is_same ? 1 : 0);
    rank.doing = static_cast<int>(i);
    now = {.block = group.block,
           .last = member->last,
           .finished = member->finished,
           .waits = member->waits};
  }
  if (now == doing_[at] && tallies_[at].since != Clock::time_point()) return;
  doing_[at] = now;
  tallies_[at].since = now_;
}

// Counts calls since the last look. Estimates their bytes by the mean of the calls whose records
// are still there.
void Sampler::count_calls(int place, const ShownGroup& group) {
  const SeenMember& member = *glance_.member_of(group);
  const auto [known, is_new] = counted_.try_emplace({place, group.block}, member.last);
  const std::uint64_t before = std::exchange(known->second, member.last);
  if (is_new || member.last <= before) return;
  const std::uint64_t calls = member.last - before;
  const std::uint64_t first = member.last - std::min<std::uint64_t>(calls, control::kRecords) + 1;
  const int size = segment_.size_of_group(group.block);
  double bytes = 0;
  std::uint64_t seen = 0;
  for (std::uint64_t sequence = first; sequence <= member.last; ++sequence) {
    const auto record = segment_.record(group.block, group.index, sequence);
    if (!record) continue;
    ++seen;
    bytes += static_cast<double>(engine::whole_bytes(record->signature, size));
  }
  Tally& tally = tallies_[static_cast<std::size_t>(place)];
  tally.calls += static_cast<double>(calls);
  if (seen != 0) tally.bytes += bytes / static_cast<double>(seen) * static_cast<double>(calls);
}

// Returns whether all members have begun the call that `member` is in.
bool Sampler::has_company(const SeenMember& member, std::uint64_t block) const {
  return std::ranges::all_of(glance_.groups.at(block),
                             [&](const SeenMember& other) { return other.last >= member.last; });
}

void Sampler::count(int place) {
  const GlancedRank& rank = glance_.ranks[static_cast<std::size_t>(place)];
  Tally& tally = tallies_[static_cast<std::size_t>(place)];
  ++tally.looks;
  if (rank.doing < 0) return;
  const ShownGroup& group = rank.groups[static_cast<std::size_t>(rank.doing)];
  const SeenMember& member = *glance_.member_of(group);
  if (is_inside(member)) {
    ++tally.inside;
    if (!has_company(member, group.block)) ++tally.waiting;
  } else if (member.waits) {
    ++tally.inside;
    ++tally.waiting;
  }
}

}  // namespace hocket::live
