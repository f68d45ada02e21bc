#include "membership/rendezvous/store/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <ranges>
#include <string_view>

namespace hocket::rendezvous {
namespace {

// The memory that a key takes besides its own bytes and those of its value.
constexpr std::size_t kOverhead = 128;

constexpr std::size_t kMaxReason = 2048;  // the longest text why a rank will not come, in bytes
constexpr std::string_view kAllJoined = "all ranks had joined";

Reply refused(std::string text) { return {.code = ReplyCode::kRefused, .text = std::move(text)}; }

// Returns the memory that a request takes while it waits. Each of its keys is stored twice.
std::size_t cost_of(const StoreRequest& request) {
  std::size_t bytes = kOverhead + request.key.size() + request.value.size();
  for (const std::string& key : request.keys) bytes += 2 * (key.size() + kOverhead);
  return bytes;
}

Reply refused_for_end(int rank, int size, const std::string& how, std::string_view before) {
  return refused(fmt::format("rank {} of {} {} before {}", rank, size, how, before));
}

Reply done_with(std::shared_ptr<const Bytes> value) { return {.value = std::move(value)}; }

std::optional<std::int64_t> as_number(const Bytes& bytes) {
  const std::string text = hocket::to_string(bytes);
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

void Table::execute(ClientId client, StoreRequest&& request, Answer answer) {
  switch (request.op) {
    case Op::kSet:
      return answer(set(std::move(request)));
    case Op::kTryGet:
      return answer(find(request.key));
    case Op::kAdd:
      return answer(add(request));
    case Op::kCompareAndSet:
      return answer(compare_and_set(std::move(request)));
    case Op::kErase:
      return answer(erase(request));
    case Op::kGet:
    case Op::kWait:
      return wait_for_keys(client, std::move(request), std::move(answer));
    case Op::kExchange:
    case Op::kBarrier:
      return enter_room(client, std::move(request), std::move(answer));
    case Op::kWatch:
      return watch(client, std::move(request), std::move(answer));
    case Op::kWithdraw:
      rank_ended(request.rank, request.size, hocket::to_string(request.value));
      return answer({});
    case Op::kGoodbye:
      return answer({});
  }
}

// --- Keys --------------------------------------------------------------------------------------

Reply Table::set(StoreRequest&& request) {
  if (!put(request.key, std::move(request.value))) {
    return full();
  }
  return {};
}

Reply Table::full() const {
  return refused(
      fmt::format("the store is full: it holds {} bytes of at most {}, with what is waited for; "
                  "erase keys that are not needed any more, or let it hold more",
                  used_bytes_,
                  max_bytes_));
}

bool Table::has_room_for(const StoreRequest& waiting) const {
  return used_bytes_ + cost_of(waiting) <= max_bytes_;
}

Reply Table::find(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return {.code = ReplyCode::kAbsent};
  return done_with(found->second);
}

Reply Table::add(const StoreRequest& request) {
  std::int64_t number = 0;
  if (const auto found = values_.find(request.key); found != values_.end()) {
    const auto held = as_number(*found->second);
    if (!held) {
      return refused(
          fmt::format("cannot add to key \"{}\": it holds no whole number", request.key));
    }
    number = *held;
  }
  if (__builtin_add_overflow(number, request.amount, &number)) {
    return refused(
        fmt::format("adding {} to key \"{}\" overflows 64 bits", request.amount, request.key));
  }
  Reply stored =
      set({.op = Op::kSet, .key = request.key, .value = to_bytes(std::to_string(number))});
  stored.number = number;
  return stored;
}

Reply Table::compare_and_set(StoreRequest&& request) {
  Reply before = find(request.key);
  const bool equal =
      before.value ? request.expected && *request.expected == *before.value : !request.expected;
  if (!equal) return before;
  Reply stored = set(std::move(request));
  return stored.code == ReplyCode::kDone ? before : stored;
}

Reply Table::erase(const StoreRequest& request) {
  const auto found = values_.find(request.key);
  if (found == values_.end()) return {.code = ReplyCode::kAbsent};
  used_bytes_ -= request.key.size() + found->second->size() + kOverhead;
  values_.erase(found);
  return {};
}

bool Table::put(const std::string& key, Bytes&& bytes) {
  const auto found = values_.find(key);
  const std::size_t freed =
      found == values_.end() ? 0 : key.size() + found->second->size() + kOverhead;
  const std::size_t used = used_bytes_ - freed + key.size() + bytes.size() + kOverhead;
  if (used > max_bytes_) return false;
  used_bytes_ = used;
  values_[key] = std::make_shared<const Bytes>(std::move(bytes));
  announce(key);
  return true;
}

void Table::announce(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const std::set<WaiterId> waiting = std::move(found->second);
  by_key_.erase(found);
  for (const WaiterId id : waiting) {
    auto& missing = waiters_.at(id).missing;
    missing.erase(key);
    if (!missing.empty()) continue;
    const Waiter waiter = take_waiter(id);
    waiter.answer(waiter.request.op == Op::kGet ? find(key) : Reply{});
  }
}

void Table::wait_for_keys(ClientId client, StoreRequest&& request, Answer&& answer) {
  if (request.op == Op::kGet) request.keys = {request.key};
  std::set<std::string> missing;
  for (const auto& key : request.keys) {
    if (!values_.contains(key)) missing.insert(key);
  }
  if (missing.empty()) return answer(request.op == Op::kGet ? find(request.key) : Reply{});
  if (!has_room_for(request)) return answer(full());
  const WaiterId id = add_waiter(client, std::move(request), std::move(answer));
  for (const auto& key : missing) by_key_[key].insert(id);
  waiters_.at(id).missing = std::move(missing);
}

// --- Rooms -------------------------------------------------------------------------------------

void Table::enter_room(ClientId client, StoreRequest&& request, Answer&& answer) {
  const int rank = request.rank;
  const int size = request.size;
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) {
    return answer(refused(fmt::format(
        "rank {} of {} cannot be in {}; ranks go from 0 to size - 1, and at most {} meet",
        rank,
        size,
        shown_name(request.key),
        kMostRanks)));
  }
  if (!has_room_for(request)) return answer(full());
  const RoomId id{request.op, request.key};
  Room& room =
      rooms_.try_emplace(id, Room{.size = size, .by_rank = {}, .gave_up = {}}).first->second;
  if (room.size != size) {
    return answer(refused(fmt::format("rank {} says that {} ranks meet in {}, others say {}",
                                      rank,
                                      size,
                                      shown_name(request.key),
                                      room.size)));
  }
  if (room.by_rank.contains(rank)) {
    return answer(refused(fmt::format("rank {} is in {} already, through another client or thread",
                                      rank,
                                      shown_name(request.key))));
  }
  room.gave_up.erase(rank);
  room.by_rank[rank] = add_waiter(client, std::move(request), std::move(answer));
  if (room.by_rank.size() == static_cast<std::size_t>(size)) return complete(id);
  refuse_where_missing(id);
}

void Table::rank_ended(int rank, int size, std::string how) {
  how.resize(std::min(how.size(), kMaxReason));
  ended_.push_back({.rank = rank, .size = size, .how = std::move(how)});
  std::vector<RoomId> rooms;
  for (const auto& [id, room] : rooms_) rooms.push_back(id);
  for (const auto& id : rooms) refuse_where_missing(id);
  const Ended& last = ended_.back();
  std::vector<WaiterId> watching;
  for (const auto& [id, waiter] : waiters_) {
    const StoreRequest& request = waiter.request;
    if (request.op == Op::kWatch && request.size == size) watching.push_back(id);
  }
  for (const WaiterId id : watching) {
    take_waiter(id).answer(refused_for_end(last.rank, last.size, last.how, kAllJoined));
  }
}

void Table::watch(ClientId client, StoreRequest&& request, Answer&& answer) {
  const auto lost = std::ranges::find(ended_, request.size, &Ended::size);
  if (lost != ended_.end()) {
    return answer(refused_for_end(lost->rank, lost->size, lost->how, kAllJoined));
  }
  if (!has_room_for(request)) return answer(full());
  add_waiter(client, std::move(request), std::move(answer));
}

void Table::refuse_where_missing(const RoomId& id) {
  const Room& room = rooms_.at(id);
  const auto lost = std::ranges::find_if(ended_, [&](const Ended& ended) {
    return ended.size == room.size && !room.by_rank.contains(ended.rank);
  });
  if (lost == ended_.end()) return;
  const Reply reply = refused_for_end(
      lost->rank,
      room.size,
      lost->how,
      id.second.starts_with(kOwnNames)
          ? std::string(kAllJoined)
          : fmt::format(
                "it had {} \"{}\"", id.first == Op::kExchange ? "joined" : "reached", id.second));
  answer_all(take_members(id), reply);
}

void Table::complete(const RoomId& id) {
  const std::vector<Waiter> waiters = take_members(id);
  std::vector<std::span<const std::byte>> parts;
  std::size_t total = 0;
  for (const auto& waiter : waiters) {
    parts.emplace_back(waiter.request.value);
    total += waiter.request.value.size() + sizeof(std::uint32_t);
  }
  Reply reply;
  if (total > kMaxValueBytes) {
    reply = refused(fmt::format("the ranks bring {} bytes to {}, more than {} together",
                                total,
                                shown_name(id.second),
                                kMaxValueBytes));
  } else if (id.first == Op::kExchange) {
    reply.value = std::make_shared<const Bytes>(encode_parts(parts));
  }
  answer_all(waiters, reply);
}

// Takes the waiters of a room, in the order of their ranks.
std::vector<Table::Waiter> Table::take_members(const RoomId& id) {
  // A copy, because taking the last waiter destroys the room.
  const std::map<int, WaiterId> members = rooms_.at(id).by_rank;
  std::vector<Waiter> waiters;
  waiters.reserve(members.size());
  for (const auto& [rank, waiter] : members) waiters.push_back(take_waiter(waiter));
  return waiters;
}

// Rank 0 gets its answer last. It may be the server, and may end as soon as it has its answer.
void Table::answer_all(const std::vector<Waiter>& waiters, const Reply& reply) {
  for (auto each = waiters.rbegin(); each != waiters.rend(); ++each) each->answer(Reply(reply));
}

// --- Waiters -----------------------------------------------------------------------------------

Table::WaiterId Table::add_waiter(ClientId client, StoreRequest&& request, Answer&& answer) {
  const WaiterId id = next_waiter_++;
  const auto deadline = base::Deadline::in(request.timeout);
  used_bytes_ += cost_of(request);
  by_deadline_.emplace(deadline.when(), id);
  by_client_.emplace(client, id);
  waiters_.emplace(id,
                   Waiter{.client = client,
                          .deadline = deadline,
                          .request = std::move(request),
                          .answer = std::move(answer),
                          .missing = {}});
  return id;
}

// Removes a waiter from all indexes, and returns it.
Table::Waiter Table::take_waiter(WaiterId id) {
  const auto found = waiters_.find(id);
  Waiter waiter = std::move(found->second);
  waiters_.erase(found);
  by_deadline_.erase({waiter.deadline.when(), id});
  by_client_.erase({waiter.client, id});
  for (const auto& key : waiter.missing) {
    const auto waiting = by_key_.find(key);
    if (waiting == by_key_.end()) continue;
    waiting->second.erase(id);
    if (waiting->second.empty()) by_key_.erase(waiting);
  }
  const Op op = waiter.request.op;
  used_bytes_ -= cost_of(waiter.request);
  if (op == Op::kExchange || op == Op::kBarrier) {
    const auto room = rooms_.find({op, waiter.request.key});
    room->second.by_rank.erase(waiter.request.rank);
    if (room->second.by_rank.empty()) rooms_.erase(room);
  }
  return waiter;
}

Reply Table::timeout_of(const Waiter& waiter) const {
  Reply reply{.code = ReplyCode::kTimeout};
  const auto add_missing = [&reply](std::string what) {
    ++reply.number;
    if (reply.missing.size() < kMaxMissing) reply.missing.push_back(std::move(what));
  };
  for (const auto& key : waiter.missing) add_missing(key);
  const auto room = rooms_.find({waiter.request.op, waiter.request.key});
  if (room != rooms_.end()) {
    const auto& [size, by_rank, gave_up] = room->second;
    for (int rank = 0; rank < size; ++rank) {
      if (!by_rank.contains(rank) && !gave_up.contains(rank)) add_missing(std::to_string(rank));
    }
    if (!gave_up.empty()) {
      constexpr std::size_t kNamed = 16;
      reply.text = fmt::format(
          "{}{} had given up waiting",
          fmt::join(gave_up | std::views::take(kNamed), ", "),
          gave_up.size() > kNamed ? fmt::format(" and {} more", gave_up.size() - kNamed) : "");
    }
  }
  return reply;
}

void Table::drop(ClientId client) {
  for (;;) {
    const auto first = by_client_.lower_bound({client, 0});
    if (first == by_client_.end() || first->first != client) return;
    take_waiter(first->second);
  }
}

void Table::expire(base::Deadline::Clock::time_point now) {
  // All replies are made before the first wait ends. Otherwise ranks that give up at the same time
  // would name each other.
  std::vector<std::pair<WaiterId, Reply>> expired;
  for (const auto& [when, id] : by_deadline_) {
    if (when > now) break;
    expired.emplace_back(id, timeout_of(waiters_.at(id)));
  }
  for (auto& [id, reply] : expired) {
    const StoreRequest& request = waiters_.at(id).request;
    if (const auto room = rooms_.find({request.op, request.key}); room != rooms_.end()) {
      room->second.gave_up.insert(request.rank);
    }
    take_waiter(id).answer(std::move(reply));
  }
}

base::Deadline Table::next_deadline() const {
  return by_deadline_.empty() ? base::Deadline::never()
                              : base::Deadline::at(by_deadline_.begin()->first);
}

}  // namespace hocket::rendezvous
