#include "engine/cost_table.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/hash.h"
#include "engine/shipped_costs.h"
#include "hocket/error.h"

namespace hocket::engine {
namespace {

constexpr Kind kMeasured[] = {Kind::kBarrier,
                              Kind::kBroadcast,
                              Kind::kReduce,
                              Kind::kAllReduce,
                              Kind::kReduceScatter,
                              Kind::kAllGather,
                              Kind::kGather,
                              Kind::kScatter,
                              Kind::kAllToAll};

// v-forms are looked up as what they resemble.
Kind regular(Kind kind) noexcept {
  switch (kind) {
    case Kind::kReduceScatterV:
      return Kind::kReduceScatter;
    case Kind::kAllGatherV:
      return Kind::kAllGather;
    case Kind::kGatherV:
      return Kind::kGather;
    case Kind::kScatterV:
      return Kind::kScatter;
    case Kind::kAllToAllV:
      return Kind::kAllToAll;
    default:
      return kind;
  }
}

[[noreturn]] void refuse(int number, const std::string& what) {
  throw InvalidArgument(fmt::format(
      "line {} of the table of costs {}; expected ENGINE COLLECTIVE RANKS BYTES:MICROSECONDS ..., "
      "as `hocket bench --tune` writes it",
      number,
      what));
}

}  // namespace

CostTable CostTable::parse(std::string_view text) {
  CostTable table;
  table.hash_ = base::hash_of(text);
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    table.rows_.push_back(parse_row(line, number));
  }
  return table;
}

CostTable::Row CostTable::parse_row(std::string_view line, int number) {
  std::istringstream words{std::string(line)};
  Row row;
  std::string kind;
  if (!(words >> row.engine >> kind >> row.ranks)) refuse(number, "is too short");
  for (const Kind known : kMeasured) {
    if (name_of(known) == kind) row.kind = known;
  }
  if (row.kind == Kind::kNone) refuse(number, fmt::format("names no collective: \"{}\"", kind));
  if (row.ranks < 1) refuse(number, fmt::format("is for {} ranks", row.ranks));
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const double bytes = std::strtod(word.c_str(), &end);
    const bool has_colon = end != word.c_str() && *end == ':';
    const char* begin = end + 1;
    const double microseconds = has_colon ? std::strtod(begin, &end) : 0;
    const bool is_last = has_colon && end != begin && *end == '\0';
    if (!is_last || !(bytes >= 0) || !std::isfinite(bytes) || !(microseconds > 0) ||
        !std::isfinite(microseconds)) {
      refuse(number, fmt::format("has \"{}\"", word));
    }
    if (!row.points.empty() && bytes <= row.points.back().bytes) {
      refuse(number, fmt::format("does not rise at \"{}\"", word));
    }
    row.points.push_back({bytes, microseconds});
  }
  if (row.points.empty()) refuse(number, "has no measurements");
  return row;
}

const CostTable& CostTable::shipped() {
  static const CostTable table = parse(kShippedCosts);
  return table;
}

double CostTable::on_line(const std::vector<Point>& points, double bytes) noexcept {
  if (bytes <= points.front().bytes) return points.front().microseconds;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& a = points[i - 1];
    const Point& b = points[i];
    if (bytes > b.bytes) continue;
    return a.microseconds +
           (b.microseconds - a.microseconds) * (bytes - a.bytes) / (b.bytes - a.bytes);
  }
  return points.back().microseconds * (points.back().bytes > 0 ? bytes / points.back().bytes : 1);
}

std::optional<double> CostTable::microseconds(std::string_view engine,
                                              const Signature& signature,
                                              int ranks) const noexcept {
  const Row* best = nullptr;
  const Kind kind = regular(signature.kind);
  for (const Row& row : rows_) {
    if (row.engine != engine || row.kind != kind) continue;
    if (best == nullptr || std::abs(row.ranks - ranks) < std::abs(best->ranks - ranks)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return on_line(best->points, static_cast<double>(whole_bytes(signature, ranks)));
}

}  // namespace hocket::engine
