// Sends the facts of a host to other hosts: about its ranks, about groups, and about broken
// connections.
#include <algorithm>

#include "membership/control/kept_facts.h"
#include "membership/control/network.h"

namespace hocket::control {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostQueued = std::size_t{4} << 20;

// The delay after which a rank's death is reported to other hosts. Its exit status is then usually
// known.
constexpr auto kForEnd = milliseconds(4);

void append(Bytes& to, const Bytes& frame) { to.insert(to.end(), frame.begin(), frame.end()); }

void append(Bytes& to, const std::vector<Bytes>& frames) {
  for (const Bytes& frame : frames) append(to, frame);
}

// Splits the facts into frames. Each frame is short enough, however long the reasons are.
Bytes frames_of(const RanksFact& all) {
  constexpr std::size_t kOfAFrame = 128;
  Bytes frames;
  for (std::size_t from = 0; from < all.ranks.size(); from += kOfAFrame) {
    const std::size_t to = std::min(all.ranks.size(), from + kOfAFrame);
    const auto at = [&](std::size_t i) {
      return all.ranks.begin() + static_cast<std::ptrdiff_t>(i);
    };
    append(frames, encode(RanksFact{.ranks = {at(from), at(to)}}));
  }
  return frames;
}

void append(Bytes& to, const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) append(to, encode(fact));
}

}  // namespace

void Network::send(Lane* lane, const Bytes& frames) {
  if (frames.empty()) return;
  if (lane != nullptr) return lane->send(frames);
  for (auto& [number, peer] : peers_) {
    for (const auto& each : peer.lanes) {
      if (each->queued() < kMostQueued) each->send(frames);
    }
  }
}

void Network::send_in_any_case(const Bytes& frames) {
  for (auto& [number, peer] : peers_) {
    for (const auto& each : peer.lanes) each->send(frames);
  }
}

void Network::tell(Lane* lane, const std::vector<Fact>& facts) {
  Bytes frames;
  append(frames, facts);
  send(lane, frames);
}

void Network::send_all(const Fact& fact) { send(nullptr, encode(fact)); }

// Returns the places of this host's ranks about which there is untold news, in the order in which
// the ranks ended.
std::vector<int> Network::places_with_news() const {
  const Liveness& liveness = host_->liveness;
  std::vector<int> places;
  for (int place = 0; place < host_->ranks(); ++place) {
    const Reported now{.state = liveness.state(place), .end = liveness.has_end(place)};
    if (now.state == RankState::kAbsent) continue;
    if (now != told_[static_cast<std::size_t>(place)]) places.push_back(place);
  }
  std::ranges::stable_sort(places, {}, [&](int place) { return liveness.ended_at(place); });
  return places;
}

// Sends news about this host's ranks, in the order in which they ended. The order matters, because
// a rank may end after another rank's death: a host that hears of the later end first would blame
// the wrong rank. Before the end of a rank, it sends how far this rank had come, and the failures
// of its groups. Returns false if it has held news back.
bool Network::tell_ranks() {
  RanksFact news;
  bool is_held_back = false;
  for (const int place : places_with_news()) {
    const auto now = host_->remote_hosts.describe(place);
    is_held_back |=
        now.state == RankState::kDied && !now.end && host_->liveness.since_death(place) < kForEnd;
    if (is_held_back && now.state > RankState::kAlive) continue;
    told_[static_cast<std::size_t>(place)] = {.state = now.state, .end = now.end.has_value()};
    if (now.state > RankState::kAlive) {
      Bytes last;
      for (GroupEntry& entry : host_->groups.entries()) {
        const std::vector<Fact> facts = announced(entry, place);
        append(last, facts);
        if (!facts.empty()) append(last, standing(entry));
      }
      append(last, host_->groups.farewells().of(static_cast<std::uint64_t>(place)));
      send_in_any_case(last);
    }
    news.ranks.push_back(now);
  }
  if (!news.ranks.empty()) send_in_any_case(frames_of(news));
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    auto& told = told_[static_cast<std::size_t>(place)];
    const auto cut = cut_at(place);
    if (!cut || told.state == RankState::kCut) continue;
    told.state = RankState::kCut;
    send_in_any_case(encode(*cut));
  }
  return !is_held_back;
}

// Returns the report that the connection to the rank at `place` has broken. Absent: it has not.
std::optional<CutFact> Network::cut_at(int place) const {
  const auto from = host_->remote_hosts.cut_from(place);
  if (!from) return std::nullopt;
  return CutFact{.own = *from, .other = host_->world_rank(place)};
}

// Returns the facts about the calls of the group's member at `place`. If `place` is -1, it is all
// members on this host.
std::vector<Fact> Network::announced(GroupEntry& entry, int place) {
  std::vector<Fact> facts;
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return facts;
  for (int member = 0; member < group->size(); ++member) {
    const int at = group->place(member);
    if (!host_->is_here(at) || (place >= 0 && at != place)) continue;
    for (RefusalFact& refusal : group->refusals(member)) facts.emplace_back(std::move(refusal));
    facts.emplace_back(group->member(member));
  }
  if (!group->is_listed(entry)) facts.clear();
  return facts;
}

// Returns the facts about the group that are not about single calls.
std::vector<Fact> Network::standing(GroupEntry& entry) {
  std::vector<Fact> facts;
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return facts;
  if (auto failure = group->failure()) facts.emplace_back(std::move(*failure));
  Succession words = group->succession(&entry);
  for (int member = 0; member < words.size(); ++member) {
    if (!host_->is_here(words.place(member))) continue;
    // If the member refused a call of `rebuild` before it made the next one, the refusal is sent
    // first.
    const std::uint64_t turn = words.turn(member);
    const std::uint32_t how = words.how(member);
    if (auto refused = group->rebuild_refusal(member)) facts.emplace_back(std::move(*refused));
    if ((how & (kCame | kClosed)) == 0) continue;
    facts.emplace_back(ComeFact{.group = group->id(), .member = member, .how = how, .turn = turn});
  }
  if (words.anybody_said()) {
    const std::vector<int> hosts = hosts_of(*group);
    if (auto outcome = Agreement::outcome({group->id(), words, hosts})) {
      facts.emplace_back(std::move(*outcome));
    }
  }
  if (!group->is_listed(entry)) facts.clear();
  return facts;
}

// Sends the last facts about a group that is being removed from the list. Keeps them for hosts that
// have not received them.
void Network::say_farewell(GroupEntry& entry) {
  // The progress of the members is sent first, because the group's failure applies only to calls
  // that had not ended.
  const std::vector<Fact> lasting = standing(entry);
  Bytes last;
  for (int place = 0; place < host_->ranks(); ++place) {
    const std::vector<Fact> facts = announced(entry, place);
    const auto keep = [&](const Fact& fact) {
      host_->groups.farewells().keep(static_cast<std::uint64_t>(place), fact);
    };
    if (facts.empty()) continue;
    std::for_each(facts.begin(), facts.end(), keep);
    for (const Fact& fact : lasting) {
      if (!std::holds_alternative<VoteFact>(fact))
        keep(fact);  // a group with an outcome to tell is not removed
    }
    append(last, facts);
  }
  append(last, lasting);
  send_in_any_case(last);
}

void Network::tell_groups() {
  // Only a rank that speaks for this host, or that has lanes to all other hosts, may take news out
  // of an entry. Two ranks may do so at the same time.
  const bool takes_word = speaks() || reaches_all();
  for (GroupEntry& entry : host_->groups.entries()) {
    std::uint64_t id = entry.id.load(std::memory_order_acquire);
    if (id == 0) continue;
    const auto news = takes_word ? entry.news.exchange(0, std::memory_order_acq_rel) : 0;
    if (news != 0) {
      // A member's progress is sent before its call of `rebuild`.
      if ((news & (GroupEntry::kRefused | GroupEntry::kAsked | GroupEntry::kCome)) != 0) {
        tell(nullptr, announced(entry, -1));
      }
      if ((news & (GroupEntry::kFailed | GroupEntry::kCome)) != 0) {
        Bytes lasting;
        append(lasting, standing(entry));
        send_in_any_case(lasting);
      }
      if ((news & GroupEntry::kAsked) != 0) send_all(Question{id});
    }
    agree(entry);
    // Remove a group that is no longer needed, and free its memory. News that was not sent is lost
    // then. So only a rank that may take news out of entries removes groups.
    if (takes_word && !is_needed(entry)) {
      say_farewell(entry);
      host_->groups.gone().note(id);  // first, so that the list or `gone` always has it
      const std::uint64_t block = entry.block.load(std::memory_order_relaxed);
      if (!entry.id.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) continue;
      host_->memory.release(block, HostMemory::kNetwork);
      entry.taken.store(0, std::memory_order_release);
    }
  }
  // This also forgets groups that another process has removed.
  agreement_.forget_unless([this](std::uint64_t id) { return host_->groups.find(id) != nullptr; });
}

// Sends all facts on a new lane, in one piece: each separate send would wait for the one before.
void Network::tell_all(Lane& lane) {
  Bytes news;
  for (GroupEntry& entry : host_->groups.entries()) {
    append(news, announced(entry, -1));
    append(news, standing(entry));
  }
  append(news, host_->groups.farewells().all());
  RanksFact all;
  for (int place = 0; place < host_->ranks(); ++place) {
    auto now = host_->remote_hosts.describe(place);
    if (now.state != RankState::kAbsent) all.ranks.push_back(std::move(now));
  }
  append(news, frames_of(all));
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    if (const auto cut = cut_at(place)) append(news, encode(*cut));
  }
  lane.send(news);
}

}  // namespace hocket::control
