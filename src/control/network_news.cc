// What a host tells the others: of its ranks, of groups, of what it has found.
#include "control/kept_facts.h"
#include "control/network.h"

namespace hocket::control {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostQueued = std::size_t{4} << 20;

// How long to wait for the way a rank ended to be known before its death is passed on.
constexpr auto kForEnd = milliseconds(4);

}  // namespace

void Network::send(Lane* lane, const Bytes& frame) {
  if (lane != nullptr) return lane->send(frame);
  for (auto& [number, peer] : peers_) {
    for (const auto& each : peer.lanes) {
      if (each->queued() < kMostQueued) each->send(frame);
    }
  }
}

void Network::tell(Lane* lane, const Fact& fact) { send(lane, encode(fact)); }

void Network::send_all(const Fact& fact) { send(nullptr, encode(fact)); }

// What is new of this host's ranks. Who has ended has said before how far it had come.
void Network::tell_ranks() {
  RanksFact news;
  for (int place = 0; place < host_->ranks(); ++place) {
    const auto now = host_->describe(place);
    auto& told = told_[static_cast<std::size_t>(place)];
    const Told next{.state = now.state, .end = now.end.has_value()};
    if (next == told || now.state == RankState::kAbsent) continue;
    if (now.state == RankState::kDied && !now.end && host_->since_death(place) < kForEnd) continue;
    told = next;
    if (now.state > RankState::kAlive) {
      for (GroupEntry& entry : host_->groups()) tell_members(entry, nullptr, place);
      for (const Bytes& frame : host_->farewells().of(static_cast<std::uint64_t>(place)))
        send(nullptr, frame);
    }
    news.ranks.push_back({now.world_rank, now.state, now.pid, now.end});
  }
  if (!news.ranks.empty()) send_all(news);
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    auto& told = told_[static_cast<std::size_t>(place)];
    const auto cut = cut_at(place);
    if (!cut || told.state == RankState::kCut) continue;
    told.state = RankState::kCut;
    send_all(*cut);
  }
}

// What this host has found of a rank of another.
std::optional<CutFact> Network::cut_at(int place) const {
  const auto from = host_->cut_from(place);
  if (!from) return std::nullopt;
  return CutFact{.own = *from, .other = host_->describe(place).world_rank};
}

// Of the group's members at `place`, or, for -1, of all on this host. To one lane, or to all.
void Network::tell_members(GroupEntry& entry, Lane* lane, int place) {
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return;
  for (int member = 0; member < group->size(); ++member) {
    const int at = group->place(member);
    if (!host_->is_here(at) || (place >= 0 && at != place)) continue;
    for (const RefusalFact& refusal : group->refusals(member)) tell(lane, refusal);
    tell(lane, group->member(member));
  }
}

// What is said last of a group that goes, and kept for those who have yet to hear it.
void Network::say_farewell(GroupEntry& entry) {
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return;
  const auto failure = group->failure();
  for (int member = 0; member < group->size(); ++member) {
    const int place = group->place(member);
    if (!host_->is_here(place)) continue;
    const auto keep = [&](const Fact& fact) {
      host_->farewells().keep(static_cast<std::uint64_t>(place), fact);
    };
    if (failure) keep(*failure);
    for (const RefusalFact& refusal : group->refusals(member)) keep(refusal);
    keep(group->member(member));
  }
  tell_members(entry, nullptr, -1);
}

void Network::tell_groups() {
  for (GroupEntry& entry : host_->groups()) {
    std::uint64_t id = entry.id.load(std::memory_order_acquire);
    if (id == 0) continue;
    if (const auto news = entry.news.exchange(0, std::memory_order_acq_rel); news != 0) {
      const auto group = GroupMirror::of(*host_, entry);
      if (!group) continue;
      // Who calls for the next epoch says before how far it had come.
      if ((news & (GroupEntry::kRefused | GroupEntry::kAsked | GroupEntry::kCome)) != 0) {
        tell_members(entry, nullptr, -1);
      }
      if ((news & (GroupEntry::kFailed | GroupEntry::kCome)) != 0) tell_standing(entry, nullptr);
      if ((news & GroupEntry::kAsked) != 0) send_all(Question{group->id()});
    }
    agree(entry);
    // Its memory goes back; somebody else may speak for this host, too.
    if (!is_needed(entry)) {
      say_farewell(entry);
      const std::uint64_t block = entry.block.load(std::memory_order_relaxed);
      if (!entry.id.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) continue;
      agreement_.forget(id);
      host_->release(block, HostControl::kNetwork);
      entry.taken.store(0, std::memory_order_release);
    }
  }
}

void Network::tell_standing(GroupEntry& entry, Lane* lane) {
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return;
  if (const auto failure = group->failure()) tell(lane, *failure);
  Succession words = group->succession(&entry);
  if (!words.anybody_came()) return;
  for (int member = 0; member < words.size(); ++member) {
    if (host_->is_here(words.place(member)) && words.has_come(member)) {
      tell(lane, ComeFact{.group = group->id(), .member = member, .how = words.how(member)});
    }
  }
  const std::vector<int> hosts = hosts_of(*group);
  if (const auto outcome = Agreement::outcome({group->id(), words, hosts})) tell(lane, *outcome);
}

void Network::tell_all(Lane& lane) {
  for (GroupEntry& entry : host_->groups()) {
    const auto group = GroupMirror::of(*host_, entry);
    if (!group) continue;
    tell_members(entry, &lane, -1);
    tell_standing(entry, &lane);
  }
  for (const Bytes& frame : host_->farewells().all()) lane.send(frame);
  RanksFact all;
  for (int place = 0; place < host_->ranks(); ++place) {
    const auto now = host_->describe(place);
    if (now.state != RankState::kAbsent) {
      all.ranks.push_back({now.world_rank, now.state, now.pid, now.end});
    }
  }
  lane.send(encode(all));
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    if (const auto cut = cut_at(place)) lane.send(encode(*cut));
  }
}

}  // namespace hocket::control
