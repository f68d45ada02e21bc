// The facts that a host sends to the others: about its ranks, about groups, and about its findings.
#include <algorithm>

#include "membership/control/kept_facts.h"
#include "membership/control/network.h"

namespace hocket::control {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMostQueued = std::size_t{4} << 20;

// Time to wait for the way in which a rank ended, before its death is passed on.
constexpr auto kForEnd = milliseconds(4);

void append(Bytes& to, const Bytes& frame) { to.insert(to.end(), frame.begin(), frame.end()); }

void append(Bytes& to, const std::vector<Bytes>& frames) {
  for (const Bytes& frame : frames) append(to, frame);
}

// A reason is sent once the rank has ended, as it counts only then.
RankFact fact_of(const HostControl::Remote& rank) {
  return {.world_rank = rank.world_rank,
          .state = rank.state,
          .pid = rank.pid,
          .end = rank.end,
          .reason = rank.state > RankState::kAlive ? rank.reason : std::nullopt};
}

// In frames that are short enough for reasons of any length.
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

// Sends news about this host's ranks. Before the end of a rank, it sends how far the rank had come,
// and the failures of its groups.
void Network::tell_ranks() {
  RanksFact news;
  for (int place = 0; place < host_->ranks(); ++place) {
    const auto now = host_->describe(place);
    auto& told = told_[static_cast<std::size_t>(place)];
    const Reported next{.state = now.state, .end = now.end.has_value()};
    if (next == told || now.state == RankState::kAbsent) continue;
    if (now.state == RankState::kDied && !now.end && host_->since_death(place) < kForEnd) continue;
    told = next;
    if (now.state > RankState::kAlive) {
      Bytes last;
      for (GroupEntry& entry : host_->groups()) {
        const std::vector<Fact> facts = announced(entry, place);
        append(last, facts);
        if (!facts.empty()) append(last, standing(entry));
      }
      append(last, host_->farewells().of(static_cast<std::uint64_t>(place)));
      send_in_any_case(last);
    }
    news.ranks.push_back(fact_of(now));
  }
  if (!news.ranks.empty()) send_in_any_case(frames_of(news));
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    auto& told = told_[static_cast<std::size_t>(place)];
    const auto cut = cut_at(place);
    if (!cut || told.state == RankState::kCut) continue;
    told.state = RankState::kCut;
    send_in_any_case(encode(*cut));
  }
}

// A broken connection that this host has found to a rank of another.
std::optional<CutFact> Network::cut_at(int place) const {
  const auto from = host_->cut_from(place);
  if (!from) return std::nullopt;
  return CutFact{.own = *from, .other = host_->describe(place).world_rank};
}

// Facts about the group's members at `place`, or, for -1, about all on this host.
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

// Lasting facts about the group as a whole.
std::vector<Fact> Network::standing(GroupEntry& entry) {
  std::vector<Fact> facts;
  const auto group = GroupMirror::of(*host_, entry);
  if (!group) return facts;
  if (auto failure = group->failure()) facts.emplace_back(std::move(*failure));
  Succession words = group->succession(&entry);
  for (int member = 0; member < words.size(); ++member) {
    if (!host_->is_here(words.place(member))) continue;
    // A refusal before the member came is sent before its coming.
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

// Sends the last facts about a group that goes, and keeps them for hosts that have yet to hear
// them.
void Network::say_farewell(GroupEntry& entry) {
  // Progress of the members comes first, as the group's failure applies to calls that had not
  // ended.
  const std::vector<Fact> lasting = standing(entry);
  Bytes last;
  for (int place = 0; place < host_->ranks(); ++place) {
    const std::vector<Fact> facts = announced(entry, place);
    const auto keep = [&](const Fact& fact) {
      host_->farewells().keep(static_cast<std::uint64_t>(place), fact);
    };
    if (facts.empty()) continue;
    std::for_each(facts.begin(), facts.end(), keep);
    for (const Fact& fact : lasting) {
      if (!std::holds_alternative<VoteFact>(fact)) keep(fact);  // a group that owes that stays
    }
    append(last, facts);
  }
  append(last, lasting);
  send_in_any_case(last);
}

void Network::tell_groups() {
  // A rank that takes the news for the other hosts must be able to send it to all of them.
  const bool takes_word = speaks() || reaches_all();
  for (GroupEntry& entry : host_->groups()) {
    std::uint64_t id = entry.id.load(std::memory_order_acquire);
    if (id == 0) continue;
    const auto news = takes_word ? entry.news.exchange(0, std::memory_order_acq_rel) : 0;
    if (news != 0) {
      // Before a member's wish for the next epoch, its progress is sent.
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
    // Frees its memory; another rank may speak for this host, too. Unsent news about the group goes
    // with it. So a rank without lanes to all hosts leaves this to a rank that has them.
    if (takes_word && !is_needed(entry)) {
      say_farewell(entry);
      host_->gone_groups().note(id);  // while it is listed: there is no moment when it is neither
      const std::uint64_t block = entry.block.load(std::memory_order_relaxed);
      if (!entry.id.compare_exchange_strong(id, 0, std::memory_order_acq_rel)) continue;
      host_->release(block, HostControl::kNetwork);
      entry.taken.store(0, std::memory_order_release);
    }
  }
  // Also forgets groups that another process removed.
  agreement_.forget_unless([this](std::uint64_t id) { return host_->find_group(id) != nullptr; });
}

// Sends all at once: ends are sent last, and single sends would each wait for the one before.
void Network::tell_all(Lane& lane) {
  Bytes news;
  for (GroupEntry& entry : host_->groups()) {
    append(news, announced(entry, -1));
    append(news, standing(entry));
  }
  append(news, host_->farewells().all());
  RanksFact all;
  for (int place = 0; place < host_->ranks(); ++place) {
    const auto now = host_->describe(place);
    if (now.state != RankState::kAbsent) {
      all.ranks.push_back(fact_of(now));
    }
  }
  append(news, frames_of(all));
  for (int place = host_->ranks(); place < host_->places(); ++place) {
    if (const auto cut = cut_at(place)) append(news, encode(*cut));
  }
  lane.send(news);
}

}  // namespace hocket::control
