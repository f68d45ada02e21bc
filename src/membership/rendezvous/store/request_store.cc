#include "membership/rendezvous/store/request_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "foundation/base/deadline.h"
#include "hocket/error.h"

namespace hocket::rendezvous {
namespace {

void check_key(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxKeyBytes) return;
  throw InvalidArgument(fmt::format("a store's key has 1 to {} bytes, this one {}: \"{}\"",
                                    kMaxKeyBytes,
                                    key.size(),
                                    key.substr(0, 40)));
}

void check_value(std::string_view key, std::span<const std::byte> value) {
  if (value.size() <= kMaxValueBytes) return;
  throw InvalidArgument(
      fmt::format("the value for key \"{}\" has {} bytes; a store takes {} at most",
                  key,
                  value.size(),
                  kMaxValueBytes));
}

// Returns the missing keys or ranks as text: "2, 5" or "2, 5 and 97 more".
std::string listed(const Reply& reply) {
  const auto more = reply.number - static_cast<std::int64_t>(reply.missing.size());
  const std::string names = fmt::format("{}", fmt::join(reply.missing, ", "));
  return more > 0 ? fmt::format("{} and {} more", names, more) : names;
}

// Throws RanksMissing for the ranks that did not come to an exchange or a barrier.
[[noreturn]] void throw_absent_ranks(const StoreRequest& request, const Reply& reply) {
  const bool one = reply.number == 1;
  const char* verb = request.op == Op::kExchange ? "joined" : "reached the barrier";
  const std::string what = shown_name(request.key);
  const std::string after = base::in_seconds(request.timeout);
  const std::string others = reply.text.empty() ? "" : "rank " + reply.text;
  // No rank is missing if all ranks came, but some gave up before the last one came.
  if (reply.missing.empty()) {
    throw RanksMissing(
        fmt::format("not all ranks had {} {} after {}: {}", verb, what, after, others),
        "a rank",
        true,
        others);
  }
  const std::string who = fmt::format("{} {}", one ? "rank" : "ranks", listed(reply));
  throw RanksMissing(fmt::format("{} had not {} {} after {}{}",
                                 who,
                                 verb,
                                 what,
                                 after,
                                 others.empty() ? "" : fmt::format(" ({})", others)),
                     who,
                     one,
                     others);
}

[[noreturn]] void throw_timeout(const StoreRequest& request, const Reply& reply) {
  if (request.op == Op::kExchange || request.op == Op::kBarrier) {
    throw_absent_ranks(request, reply);
  }
  const bool one = reply.number == 1;
  throw RendezvousError(fmt::format("{} {} {} not set in the store after {}",
                                    one ? "key" : "keys",
                                    listed(reply),
                                    one ? "was" : "were",
                                    base::in_seconds(request.timeout)));
}

Bytes value_of(const Reply& reply) { return reply.value ? *reply.value : Bytes(); }

Bytes copy(std::span<const std::byte> bytes) { return Bytes(bytes.begin(), bytes.end()); }

void check_rank(std::string_view name, int rank, int size) {
  if (size >= 1 && rank >= 0 && rank < size) return;
  throw InvalidArgument(fmt::format(
      "rank {} of {} cannot be in {}; ranks go from 0 to size - 1", rank, size, shown_name(name)));
}

}  // namespace

Reply RequestStore::checked(StoreRequest&& request) {
  const StoreRequest told{.op = request.op, .timeout = request.timeout, .key = request.key};
  Reply reply = perform(std::move(request));
  if (reply.code == ReplyCode::kTimeout) throw_timeout(told, reply);
  if (reply.code == ReplyCode::kRefused) throw RendezvousError(reply.text);
  return reply;
}

void RequestStore::set(std::string_view key, std::span<const std::byte> value) {
  check_key(key);
  check_value(key, value);
  checked({.op = Op::kSet, .key = std::string(key), .value = copy(value)});
}

Bytes RequestStore::get(std::string_view key, Duration timeout) {
  check_key(key);
  return value_of(checked({.op = Op::kGet, .timeout = timeout, .key = std::string(key)}));
}

std::optional<Bytes> RequestStore::try_get(std::string_view key) {
  check_key(key);
  const Reply reply = checked({.op = Op::kTryGet, .key = std::string(key)});
  if (reply.code == ReplyCode::kAbsent) return std::nullopt;
  return value_of(reply);
}

void RequestStore::wait(std::span<const std::string> keys, Duration timeout) {
  std::size_t bytes = 0;
  for (const auto& key : keys) {
    check_key(key);
    bytes += key.size() + sizeof(std::uint32_t);
  }
  if (bytes > kMaxValueBytes) {
    throw InvalidArgument(fmt::format("the {} keys to wait for have {} bytes together; {} will do",
                                      keys.size(),
                                      bytes,
                                      kMaxValueBytes));
  }
  if (keys.empty()) return;
  checked({.op = Op::kWait, .timeout = timeout, .keys = {keys.begin(), keys.end()}});
}

std::int64_t RequestStore::add(std::string_view key, std::int64_t amount) {
  check_key(key);
  return checked({.op = Op::kAdd, .key = std::string(key), .amount = amount}).number;
}

std::optional<Bytes> RequestStore::compare_and_set(
    std::string_view key,
    const std::optional<std::span<const std::byte>>& expected,
    std::span<const std::byte> desired) {
  check_key(key);
  check_value(key, desired);
  StoreRequest request{.op = Op::kCompareAndSet, .key = std::string(key), .value = copy(desired)};
  if (expected) {
    check_value(key, *expected);
    request.expected = copy(*expected);
  }
  const Reply reply = checked(std::move(request));
  if (reply.code == ReplyCode::kAbsent) return std::nullopt;
  return value_of(reply);
}

bool RequestStore::erase(std::string_view key) {
  check_key(key);
  return checked({.op = Op::kErase, .key = std::string(key)}).code == ReplyCode::kDone;
}

std::vector<Bytes> RequestStore::exchange(
    std::string_view name, int rank, int size, std::span<const std::byte> mine, Duration timeout) {
  check_key(name);
  check_value(name, mine);
  check_rank(name, rank, size);
  const Reply reply = checked({.op = Op::kExchange,
                               .timeout = timeout,
                               .key = std::string(name),
                               .value = copy(mine),
                               .rank = rank,
                               .size = size});
  auto parts = parse_parts(value_of(reply), static_cast<std::size_t>(size));
  if (!parts)
    throw RendezvousError(fmt::format("the store's answer to {} makes no sense", shown_name(name)));
  return *std::move(parts);
}

void RequestStore::barrier(std::string_view name, int size, int rank, Duration timeout) {
  check_key(name);
  check_rank(name, rank, size);
  checked({.op = Op::kBarrier,
           .timeout = timeout,
           .key = std::string(name),
           .rank = rank,
           .size = size});
}

}  // namespace hocket::rendezvous
