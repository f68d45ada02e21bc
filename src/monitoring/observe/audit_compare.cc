// Finds the first difference of two runs' audits, and the first numbers that are not finite.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "hocket/audit.h"
#include "hocket/error.h"

namespace hocket {
namespace {

using What = AuditDifference::What;

// Identifies a rank's call in any run. The first two parts are the group's name and its index among
// groups of that name. Then a collective is identified by its number. A message is identified by
// its peer, direction, tag and index among such messages.
using AuditKey =
    std::tuple<std::string, std::size_t, std::string, std::uint64_t, int, int, std::size_t>;

std::vector<AuditKey> keys_of(const RankAudit& rank) {
  std::vector<std::size_t> places;
  std::map<std::string, std::size_t> names;
  for (const AuditedGroup& group : rank.groups) places.push_back(names[group.name]++);
  std::map<AuditKey, std::size_t> messages;
  std::vector<AuditKey> keys;
  for (const AuditedCall& call : rank.calls) {
    const std::string& group = rank.groups[call.group].name;
    if (call.sequence != 0) {
      keys.push_back({group, places[call.group], {}, call.sequence, -1, 0, 0});
    } else {
      AuditKey key{group, places[call.group], call.name, 0, call.peer, call.tag, 0};
      std::get<6>(key) = messages[key]++;
      keys.push_back(std::move(key));
    }
  }
  return keys;
}

bool is_same_array(const AuditedArray& a, const AuditedArray& b) {
  return a.bytes == b.bytes && a.parts == b.parts;
}
bool is_same_call(const AuditedCall& a, const AuditedCall& b) {
  return a.name == b.name && a.dtype == b.dtype && a.op == b.op && a.peer == b.peer &&
         is_same_array(a.in, b.in) && is_same_array(a.out, b.out);
}
bool are_both_read(const AuditedArray& a, const AuditedArray& b) {
  return a.digested && b.digested && a.blocks.size() == b.blocks.size();
}
std::size_t different_blocks(const AuditedArray& a, const AuditedArray& b) {
  if (!are_both_read(a, b)) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.blocks.size(); ++i) count += a.blocks[i] == b.blocks[i] ? 0 : 1;
  return count;
}

// Returns the elements of a block. Blocks are numbered over all parts of the array.
AuditBlock elements_of(const AuditedArray& array, DType dtype, std::size_t block) {
  AuditBlock found;
  std::size_t bytes = array.bytes;
  for (std::size_t part = 0; part < array.parts.size(); ++part) {
    const std::size_t here = (array.parts[part] + array.block_bytes - 1) / array.block_bytes;
    if (block < here) {
      found.part = static_cast<int>(part);
      bytes = array.parts[part];
      break;
    }
    block -= here;
  }
  found.begin = block * array.block_bytes / size_of(dtype);
  found.end = std::min(bytes, (block + 1) * array.block_bytes) / size_of(dtype);
  return found;
}

AuditBlock first_block(const AuditedArray& a, const AuditedArray& b, DType dtype) {
  const auto differs = std::ranges::mismatch(a.blocks, b.blocks);
  return elements_of(a, dtype, static_cast<std::size_t>(differs.in1 - a.blocks.begin()));
}

// Returns how one rank's call differs between the runs; nothing if it does not.
std::optional<What> difference_of(const AuditedCall& a, const AuditedCall& b) {
  if (!is_same_call(a, b)) return What::kCall;
  if (different_blocks(a.in, b.in) != 0) return What::kGiven;
  if (different_blocks(a.out, b.out) != 0) return What::kTaken;
  return std::nullopt;
}

// A rank's first call that differs.
struct Found {
  std::size_t rank;  // index in the first run's `ranks`
  AuditKey key;
  What what;
  const AuditedCall* first;   // null: the first run has no such call
  const AuditedCall* second;  // null: the second run has no such call
  std::int64_t time() const { return (first != nullptr ? first : second)->time; }
};

struct Indexed {
  const RankAudit& rank;
  std::vector<AuditKey> keys;
  std::map<AuditKey, const AuditedCall*> calls;

  explicit Indexed(const RankAudit& of) : rank(of), keys(keys_of(of)) {
    for (std::size_t i = 0; i < keys.size(); ++i) calls[keys[i]] = &of.calls[i];
  }
  const AuditedCall* find(const AuditKey& key) const {
    const auto found = calls.find(key);
    return found == calls.end() ? nullptr : found->second;
  }
};

// Returns the first difference in one rank's calls; nothing if there is none.
std::optional<Found> first_of(const Indexed& a,
                              const Indexed& b,
                              std::size_t rank,
                              AuditComparison& comparison) {
  for (std::size_t i = 0; i < a.keys.size(); ++i) {
    const AuditedCall& call = a.rank.calls[i];
    const AuditedCall* const other = b.find(a.keys[i]);
    if (other == nullptr) {
      if (b.rank.dropped != 0) continue;
      return Found{rank, a.keys[i], What::kMissing, &call, nullptr};
    }
    if (const auto what = difference_of(call, *other)) {
      return Found{rank, a.keys[i], *what, &call, other};
    }
    ++comparison.calls;
    if (!are_both_read(call.in, other->in) || !are_both_read(call.out, other->out)) {
      ++comparison.not_digested;
    }
  }
  if (a.rank.dropped != 0) return std::nullopt;
  for (std::size_t i = 0; i < b.keys.size(); ++i) {
    if (a.find(b.keys[i]) == nullptr) {
      return Found{rank, b.keys[i], What::kMissing, nullptr, &b.rank.calls[i]};
    }
  }
  return std::nullopt;
}

// Returns the difference that may have caused the others. A missing call counts only if nothing
// else is found, because a run that differs early also ends with other calls.
const Found& first_among(const std::vector<Found>& found) {
  const auto before = [](const Found& a, const Found& b) {
    const bool a_missing = a.what == What::kMissing;
    const bool b_missing = b.what == What::kMissing;
    if (a_missing != b_missing) return b_missing;
    // Numbers of calls order the calls of one group more surely than clocks.
    const bool numbered = std::get<3>(a.key) != 0 && std::get<3>(b.key) != 0 &&
                          std::get<0>(a.key) == std::get<0>(b.key) &&
                          std::get<1>(a.key) == std::get<1>(b.key);
    if (numbered && std::get<3>(a.key) != std::get<3>(b.key)) {
      return std::get<3>(a.key) < std::get<3>(b.key);
    }
    if (numbered && a.what != b.what) return a.what < b.what;
    if (numbered) return a.rank < b.rank;
    // Clocks tick every few milliseconds. If they do not decide, a difference of inputs comes
    // before one of outputs.
    constexpr std::int64_t kTick = 10'000'000;  // ns
    const std::int64_t apart = a.time() - b.time();
    if (a.what != b.what && apart > -kTick && apart < kTick) return a.what < b.what;
    return std::tuple(a.time(), a.what, a.rank) < std::tuple(b.time(), b.what, b.rank);
  };
  const Found* first = &found.front();
  for (const Found& each : found) {
    if (before(each, *first)) first = &each;
  }
  return *first;
}

AuditDifference described(const JobAudit& job, const Found& found) {
  const AuditedCall& call = found.first != nullptr ? *found.first : *found.second;
  AuditDifference difference{.what = found.what,
                             .rank = job.ranks[found.rank].rank,
                             .group = std::get<0>(found.key),
                             .call = call,
                             .other = std::nullopt,
                             .first_has_it = found.first != nullptr,
                             .block = {},
                             .given_by = {},
                             .taken_by = {}};
  if (found.first == nullptr || found.second == nullptr) return difference;
  difference.other = *found.second;
  const bool given = found.what == What::kGiven;
  if (!given && found.what != What::kTaken) return difference;
  const AuditedArray& a = given ? found.first->in : found.first->out;
  const AuditedArray& b = given ? found.second->in : found.second->out;
  difference.block = first_block(a, b, call.dtype);
  difference.blocks = different_blocks(a, b);
  return difference;
}

}  // namespace

AuditComparison compare_audits(const JobAudit& first, const JobAudit& second) {
  const auto numbers = [](const JobAudit& job) {
    std::vector<int> ranks;
    for (const RankAudit& rank : job.ranks) ranks.push_back(rank.rank);
    return ranks;
  };
  if (first.ranks.empty() || second.ranks.empty() ||
      first.ranks.front().size != second.ranks.front().size || numbers(first) != numbers(second)) {
    throw InvalidArgument("the two are not of jobs with the same ranks");
  }
  AuditComparison comparison;
  std::vector<Indexed> ours;
  std::vector<Indexed> theirs;
  std::vector<Found> found;
  for (std::size_t i = 0; i < first.ranks.size(); ++i) {
    ours.emplace_back(first.ranks[i]);
    theirs.emplace_back(second.ranks[i]);
    if (auto one = first_of(ours[i], theirs[i], i, comparison)) found.push_back(std::move(*one));
  }
  if (found.empty()) return comparison;
  const Found& chosen = first_among(found);
  comparison.first = described(first, chosen);
  if (std::get<3>(chosen.key) == 0) return comparison;
  // Name all ranks on which this call differs.
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const AuditedCall* const a = ours[i].find(chosen.key);
    const AuditedCall* const b = theirs[i].find(chosen.key);
    if (a == nullptr || b == nullptr || !is_same_call(*a, *b)) continue;
    const int rank = first.ranks[i].rank;
    if (different_blocks(a->in, b->in) != 0) comparison.first->given_by.push_back(rank);
    if (different_blocks(a->out, b->out) != 0) comparison.first->taken_by.push_back(rank);
  }
  return comparison;
}

std::optional<NonFinite> first_non_finite(const JobAudit& job) {
  std::optional<NonFinite> first;
  for (const RankAudit& rank : job.ranks) {
    for (const AuditedCall& call : rank.calls) {
      if (!call.in.non_finite && !call.out.non_finite) continue;
      const bool given = call.in.non_finite.has_value();
      NonFinite here{.rank = rank.rank,
                     .group = rank.groups[call.group].name,
                     .call = call,
                     .given = given,
                     .element = given ? *call.in.non_finite : *call.out.non_finite};
      if (!first) {
        first = std::move(here);
      } else {
        const bool numbered =
            first->group == here.group && first->call.sequence != 0 && here.call.sequence != 0;
        const auto order = [numbered](const NonFinite& of) {
          return std::tuple(numbered ? 0 : of.call.time, of.call.sequence, !of.given, of.rank);
        };
        if (order(here) < order(*first)) first = std::move(here);
      }
      break;  // calls are in order, so this is the rank's first
    }
  }
  return first;
}

}  // namespace hocket
