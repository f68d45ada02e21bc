#include "engines/algorithm/by_operator.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "foundation/base/short_text.h"

namespace hocket::algorithm {

using engine::Kind;
using engine::Task;

namespace {

// Bytes on each rank for its part of all ranks' arrays, and the limits of the bytes of one part.
constexpr std::size_t kRoom = std::size_t{64} << 20;
constexpr std::size_t kLeastPart = std::size_t{64} << 10;
constexpr std::size_t kMostPart = std::size_t{1} << 20;
// Maximum length of the text of a fault, in bytes.
constexpr std::size_t kMostText = 1000;

void copy(std::span<std::byte> out, std::span<const std::byte> in) noexcept {
  if (!out.empty() && out.data() != in.data()) std::memcpy(out.data(), in.data(), out.size());
}

}  // namespace

ByOperator::UnitRange ByOperator::part_of(std::size_t total,
                                          std::size_t n,
                                          std::size_t i) noexcept {
  const std::size_t each = total / n, more = total % n;
  return {i * each + std::min(i, more), each + (i < more ? 1 : 0)};
}

ByOperator::ByOperator(const What& what)
    : what_(what),
      n_(static_cast<std::size_t>(what.size)),
      me_(static_cast<std::size_t>(what.rank)) {
  const std::size_t most = std::clamp(kRoom / n_, kLeastPart, kMostPart);
  const std::size_t part =
      std::max<std::size_t>(1, most / std::max<std::size_t>(1, what_.unit_bytes));
  const std::size_t round = is_scattered() ? part : part * n_;
  rounds_ = std::max<std::size_t>(
      1, what_.units / round + (what_.units % round != 0 ? std::size_t{1} : std::size_t{0}));
  if (!is_scattered()) rounds_ = std::min(rounds_, std::max<std::size_t>(1, what_.units / n_));
  const UnitRange longest = part_of_round(part_of(what_.units, rounds_, 0), 0);
  rows_.resize(n_ * length(longest));
  if (engine::is_prefix(what_.kind)) so_far_.resize(length(longest));
  told_.resize(n_);
}

bool ByOperator::is_scattered() const noexcept { return what_.kind == Kind::kReduceScatter; }

// Returns the part of a round that rank i combines. In a reduce_scatter this is the whole round,
// counted within rank i's share.
ByOperator::UnitRange ByOperator::part_of_round(UnitRange round, std::size_t i) const noexcept {
  if (is_scattered()) return round;
  const UnitRange part = part_of(round.count, n_, i);
  return {round.first + part.first, part.count};
}

std::span<const std::byte> ByOperator::given_to(std::size_t i,
                                                const std::byte* in,
                                                UnitRange round) const {
  const UnitRange part = part_of_round(round, i);
  const std::size_t share = is_scattered() ? i * what_.units : 0;
  return {in + (share + part.first) * what_.unit_bytes, length(part)};
}

// Returns the place in `out` for the result that rank i computes. Empty if this rank needs no
// result of rank i.
std::span<std::byte> ByOperator::taken_from(std::size_t i, std::byte* out, UnitRange round) const {
  if (is_scattered() && i != me_) return {};
  if (what_.kind == Kind::kReduce && what_.rank != what_.root) return {};
  if (what_.kind == Kind::kExscan && me_ == 0) return {};
  const UnitRange part = part_of_round(round, i);
  return {out + part.first * what_.unit_bytes, length(part)};
}

Task ByOperator::carry(
    Endpoint at, const std::byte* in, std::byte* out, const Combine& combine, Fault& fault) {
  const Endpoint bytes = at.as(DType::kUInt8);
  for (std::size_t i = 0; i < rounds_ && fault.rank < 0; ++i) {
    const UnitRange round = part_of(what_.units, rounds_, i);
    const UnitRange mine = part_of_round(round, me_);
    co_await exchange(bytes, in, round, mine);
    const std::string own = combined(combine, mine);
    co_await hand_out(bytes, out, round, mine, own);
    co_await hear_faults(bytes, own, fault);
  }
}

// Collects this rank's part of all ranks' arrays in rows_, one row for each rank.
Task ByOperator::exchange(const Endpoint& at,
                          const std::byte* in,
                          UnitRange round,
                          UnitRange mine) {
  std::vector<Message> under_way;
  for (std::size_t by = 1; by < n_ && mine.count != 0; ++by) {
    const int peer = at.behind(static_cast<int>(by));
    under_way.push_back(at.recv(peer, row(static_cast<std::size_t>(peer), mine)));
  }
  for (std::size_t by = 1; by < n_; ++by) {
    const int peer = at.ahead(static_cast<int>(by));
    const auto part = given_to(static_cast<std::size_t>(peer), in, round);
    if (!part.empty()) under_way.push_back(at.send(peer, part));
  }
  copy(row(me_, mine), given_to(me_, in, round));
  co_await at.completed(under_way);
}

// Combines the rows with the program's function. Returns the text of the function's error, or an
// empty text if it succeeded.
std::string ByOperator::combined(const Combine& combine, UnitRange mine) {
  if (mine.count == 0) return {};
  try {
    if (engine::is_prefix(what_.kind)) {
      combine_prefixes(combine, mine);
    } else {
      for (std::size_t i = 1; i < n_; ++i) {
        combine(row(0, mine).data(), row(i, mine).data(), mine.count);
      }
    }
    return {};
  } catch (const std::exception& error) {
    std::string text = error.what();
    if (text.empty()) text = "it did not say why";
    return base::shortened(text, kMostText);
  } catch (...) {
    return "it threw what is no std::exception";
  }
}

// Replaces each row i by the combination of rows 0 to i.
void ByOperator::combine_prefixes(const Combine& combine, UnitRange mine) {
  const std::span<std::byte> so_far = std::span(so_far_).first(length(mine));
  copy(so_far, row(0, mine));
  const std::size_t last = what_.kind == Kind::kExscan ? n_ - 1 : n_;
  for (std::size_t i = 1; i < last; ++i) {
    combine(so_far.data(), row(i, mine).data(), mine.count);
    copy(row(i, mine), so_far);
  }
}

// Sends each rank the length of this rank's error text (0: success), and then the result if the
// rank needs it.
Task ByOperator::hand_out(
    const Endpoint& at, std::byte* out, UnitRange round, UnitRange mine, const std::string& own) {
  const auto for_rank = [&](std::size_t i) -> std::span<std::byte> {
    const bool is_for_nobody =
        (is_scattered() && i != me_) ||
        (what_.kind == Kind::kReduce && i != static_cast<std::size_t>(what_.root)) ||
        (what_.kind == Kind::kExscan && i == 0);
    if (is_for_nobody) return {};
    if (!engine::is_prefix(what_.kind)) return row(0, mine);
    return row(what_.kind == Kind::kExscan ? i - 1 : i, mine);
  };
  const std::uint64_t told = told_[me_] = own.size();
  std::vector<Message> under_way;
  for (std::size_t by = 1; by < n_; ++by) {
    const int peer = at.behind(static_cast<int>(by));
    const auto p = static_cast<std::size_t>(peer);
    under_way.push_back(at.recv(peer, std::as_writable_bytes(std::span(&told_[p], 1))));
    if (const auto part = taken_from(p, out, round); !part.empty()) {
      under_way.push_back(at.recv(peer, part));
    }
  }
  for (std::size_t by = 1; by < n_; ++by) {
    const int peer = at.ahead(static_cast<int>(by));
    under_way.push_back(at.send(peer, std::as_bytes(std::span(&told, 1))));
    if (const auto part = for_rank(static_cast<std::size_t>(peer)); !part.empty()) {
      under_way.push_back(at.send(peer, part));
    }
  }
  if (const auto part = taken_from(me_, out, round); !part.empty()) copy(part, for_rank(me_));
  co_await at.completed(under_way);
}

// The failed rank sends its error text to all ranks. If all ranks succeeded, nothing is sent; told_
// is the same on all ranks, so all ranks know it.
Task ByOperator::hear_faults(const Endpoint& at, const std::string& own, Fault& fault) {
  const auto first = std::ranges::find_if(told_, [](std::uint64_t length) { return length != 0; });
  if (first == told_.end()) co_return;
  fault.rank = static_cast<int>(first - told_.begin());
  if (fault.rank == what_.rank) fault.text = own;
  fault.text.resize(std::min<std::size_t>(*first, kMostText));
  std::vector<Message> under_way;
  if (fault.rank != what_.rank) {
    under_way.push_back(at.recv(fault.rank, std::as_writable_bytes(std::span(fault.text))));
  } else {
    for (std::size_t by = 1; by < n_; ++by) {
      under_way.push_back(
          at.send(at.ahead(static_cast<int>(by)), std::as_bytes(std::span(fault.text))));
    }
  }
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
