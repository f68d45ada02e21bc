#include "membership/control/succession.h"

#include <algorithm>

#include "membership/control/group_layout.h"
#include "membership/control/kept_facts.h"
#include "membership/control/mirror.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {

using rendezvous::kFrameHeaderBytes;

Succession::Succession(GroupControl& group)
    : Succession(group.host(), group.block(), group.entry()) {}

Succession::Succession(HostControl& host, std::byte* memory, GroupEntry* entry)
    : Succession(
          host,
          memory,
          entry,
          std::clamp(
              static_cast<int>(reinterpret_cast<GroupHeader*>(memory)->size), 0, host.places())) {}

Succession::Succession(HostControl& host, std::byte* memory, GroupEntry* entry, int size)
    : host_(&host),
      header_(reinterpret_cast<GroupHeader*>(memory)),
      block_(memory),
      size_(size),
      entry_(entry) {}

GroupMember& Succession::member(int rank) const noexcept { return member_at(block_, rank); }

int Succession::place(int rank) const noexcept {
  return std::clamp(member(rank).place, 0, host_->places() - 1);
}

// --- The members that are there -----------------------------------------------------------------

void Succession::come(int rank, std::uint32_t how, std::uint64_t turn) noexcept {
  announce(rank, how | kCame, turn);
}

void Succession::close(int rank) noexcept {
  if (!has_come(rank)) announce(rank, kClosed, 0);
}

void Succession::announce(int rank, std::uint32_t how, std::uint64_t turn) noexcept {
  if (!note(rank, how, turn)) return;
  for (int i = 0; i < size_; ++i) {
    if (i != rank) host_->doorbells.ring(place(i));
  }
  if (entry_ != nullptr) host_->groups.tell_network(*entry_, GroupEntry::kCome);
}

bool Succession::note(int rank, std::uint32_t how, std::uint64_t turn) noexcept {
  std::uint64_t turn_before = member(rank).come_turn.load(std::memory_order_relaxed);
  while (turn_before < turn && !member(rank).come_turn.compare_exchange_weak(
                                   turn_before, turn, std::memory_order_acq_rel)) {
  }
  const std::uint32_t before = member(rank).come.fetch_or(how, std::memory_order_acq_rel);
  // Calls that need this member check for losses only when the counter of losses has changed.
  if ((~before & how & (kCame | kClosed)) != 0) host_->liveness.count_loss();
  return (before | how) != before || turn_before < turn;
}

std::uint64_t Succession::turn(int rank) const noexcept {
  return member(rank).come_turn.load(std::memory_order_acquire);
}

std::uint64_t Succession::latest_turn() const noexcept {
  std::uint64_t latest = 0;
  for (int i = 0; i < size_; ++i) {
    if (!is_out_of_reach(i)) latest = std::max(latest, turn(i));
  }
  return latest;
}

std::uint32_t Succession::how(int rank) const noexcept {
  return member(rank).come.load(std::memory_order_acquire);
}

bool Succession::is_lost(int rank) const noexcept {
  return host_->liveness.state(place(rank)) > RankState::kAlive || has_closed(rank) ||
         host_->tasks.has_ended(place(rank));
}

bool Succession::has_ended(int rank) const noexcept {
  const RankState state = host_->liveness.state(place(rank));
  return state == RankState::kDied || state == RankState::kLeft || has_closed(rank);
}

bool Succession::is_out_of_reach(int rank) const noexcept {
  const bool is_cut = host_->liveness.state(place(rank)) == RankState::kCut;
  return is_lost(rank) && (!is_cut || has_closed(rank) || host_->tasks.has_ended(place(rank)));
}

bool Succession::anybody_came() const noexcept {
  for (int i = 0; i < size_; ++i) {
    if (has_come(i)) return true;
  }
  return false;
}

bool Succession::anybody_said() const noexcept {
  for (int i = 0; i < size_; ++i) {
    if ((how(i) & (kCame | kClosed)) != 0) return true;
  }
  return false;
}

bool Succession::is_ready() const noexcept {
  const std::uint64_t latest = latest_turn();
  bool all = true;
  bool impatient = false;
  for (int i = 0; i < size_; ++i) {
    all = all && (is_there(i, latest) || is_out_of_reach(i));
    impatient = impatient || (is_there(i, latest) && (how(i) & kImpatient) != 0);
  }
  return all || impatient;
}

Members Succession::there() const {
  const std::uint64_t latest = latest_turn();
  Members members(static_cast<std::size_t>(size_));
  for (int i = 0; i < size_; ++i) members[static_cast<std::size_t>(i)] = is_there(i, latest);
  return members;
}

// --- Between hosts ------------------------------------------------------------------------------

std::vector<int> Succession::hosts_there(std::span<const int> hosts) const {
  const std::uint64_t latest = latest_turn();
  std::vector<int> found;
  for (int i = 0; i < size_; ++i) {
    const int host = hosts[static_cast<std::size_t>(i)];
    if (is_there(i, latest) && std::find(found.begin(), found.end(), host) == found.end()) {
      found.push_back(host);
    }
  }
  return found;
}

bool Succession::outweighs(std::span<const int> hosts, const std::set<int>& with) const {
  std::set<int> living;
  bool any_silent = false;
  for (int i = 0; i < size_; ++i) {
    if (!has_ended(i)) living.insert(hosts[static_cast<std::size_t>(i)]);
    any_silent = any_silent || (is_lost(i) && !has_ended(i));
  }
  int these = 0;
  int others = 0;
  bool hold_the_first = false;
  for (int i = 0; i < size_; ++i) {
    const int host = hosts[static_cast<std::size_t>(i)];
    if (has_ended(i) && !(any_silent && !living.contains(host))) continue;
    const bool in = with.contains(host);
    if (these + others == 0) hold_the_first = in;
    ++(in ? these : others);
  }
  return these > others || (these == others && hold_the_first);
}

bool Succession::may_go_alone() const noexcept {
  const std::uint64_t latest = latest_turn();
  for (int i = 0; i < size_; ++i) {
    if (is_there(i, latest) && (how(i) & kAlone) == 0) return false;
  }
  return true;
}

// --- A host's part in the agreement -------------------------------------------------------------

Succession::Guard::Guard(Succession& group) noexcept : group_(group), held_(false) {
  auto& word = group_.header_->guard;
  const auto self = static_cast<std::uint32_t>(group_.host_->self()) + 1;
  std::uint32_t holder = 0;
  if (!word.compare_exchange_strong(holder, self, std::memory_order_acq_rel)) {
    // A holder that has died has left no partial state: its last write published all others.
    const auto place = static_cast<int>(holder) - 1;
    const bool dead = place >= 0 && place < group_.host_->ranks() &&
                      group_.host_->liveness.state(place) > RankState::kAlive;
    if (!dead || !word.compare_exchange_strong(holder, self, std::memory_order_acq_rel)) return;
  }
  held_ = true;
}

Succession::Guard::~Guard() {
  if (held_) group_.header_->guard.store(0, std::memory_order_release);
}

std::uint64_t Succession::promised() const noexcept {
  return header_->promised.load(std::memory_order_acquire);
}

void Succession::promise(std::uint64_t ballot) noexcept {
  header_->promised.store(ballot, std::memory_order_release);
}

std::optional<Vote> Succession::accepted() const {
  const std::uint64_t word = header_->accepted.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  return Vote{.ballot = word >> 1, .members = read(static_cast<int>(word & 1))};
}

void Succession::accept(const Vote& vote) noexcept {
  // Write into the slot that is not in use, so that a process which dies here changes nothing.
  const auto slot = (header_->accepted.load(std::memory_order_acquire) & 1) ^ 1;
  write(static_cast<int>(slot), vote.members);
  header_->accepted.store(vote.ballot << 1 | slot, std::memory_order_release);
}

bool Succession::is_decided() const noexcept {
  return header_->decided.load(std::memory_order_acquire) != 0;
}

std::optional<Members> Succession::decided() const {
  if (!is_decided()) return std::nullopt;
  return read(kDecidedSlot);
}

void Succession::decide(const Members& members) noexcept {
  if (is_decided()) return;
  write(kDecidedSlot, members);
  header_->decided.store(1, std::memory_order_release);
  host_->doorbells.ring_all();
}

void Succession::inform(int rank) noexcept {
  member(rank).come.fetch_or(kInformed, std::memory_order_acq_rel);
}

bool Succession::owes_outcome() const noexcept {
  if (!is_decided()) return false;
  for (int i = 0; i < size_; ++i) {
    if (!host_->is_here(place(i)) && !is_lost(i) && (how(i) & kInformed) == 0) return true;
  }
  return false;
}

Members Succession::read(int slot) const {
  Members members(static_cast<std::size_t>(size_));
  for (int i = 0; i < size_; ++i) {
    members[static_cast<std::size_t>(i)] =
        member(i).chosen[slot].load(std::memory_order_relaxed) != 0;
  }
  return members;
}

void Succession::write(int slot, const Members& members) noexcept {
  for (int i = 0; i < size_; ++i) {
    const bool chosen =
        static_cast<std::size_t>(i) < members.size() && members[static_cast<std::size_t>(i)];
    member(i).chosen[slot].store(chosen ? 1 : 0, std::memory_order_relaxed);
  }
}

// --- The next group on this host ----------------------------------------------------------------

std::uint64_t Succession::successor() const noexcept {
  return header_->successor.load(std::memory_order_acquire);
}

bool Succession::appoint(std::uint64_t block) noexcept {
  std::uint64_t none = 0;
  if (!header_->successor.compare_exchange_strong(none, block, std::memory_order_acq_rel)) {
    return false;
  }
  host_->doorbells.ring_all();
  return true;
}

// Takes over a decision that arrived before this host listed the group. The host that sent it has
// sent it to all hosts.
void Succession::learn(const VoteFact& vote) noexcept {
  if (vote.kind != VoteFact::Kind::kDecided) return;
  if (vote.members.size() != static_cast<std::size_t>(size_)) return;
  for (int i = 0; i < size_; ++i) {
    if (!host_->is_here(place(i))) inform(i);
  }
  decide(vote.members);  // needs no guard, because every rank writes the same here
}

GroupEntry* Succession::enlist(std::uint64_t id) {
  GroupEntry* entry = host_->groups.enlist_once(
      header_->entry, {.id = id, .block = host_->memory.offset_of(header_), .size = size_});
  if (entry == nullptr) return nullptr;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Network::take_told
  auto mirror = GroupMirror::of(*host_, *entry);
  if (!mirror) return entry;
  for (const auto& [from, frame] : host_->groups.forerunners().heard(id)) {
    const auto fact = parse(std::span<const std::byte>(frame).subspan(kFrameHeaderBytes));
    if (!fact) continue;
    mirror->write(*fact, {*entry, from});
    if (const auto* vote = std::get_if<VoteFact>(&*fact)) learn(*vote);
  }
  return entry;
}

}  // namespace hocket::control
