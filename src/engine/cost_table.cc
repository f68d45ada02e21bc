#include "engine/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "foundation/base/hash.h"
#include "foundation/base/words.h"
#include "hocket/error.h"

namespace hocket::engine {
namespace {

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
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(base::kBlanks) == std::string_view::npos) continue;
    table.rows_.push_back(parse_row(line, number));
  }
  return table;
}

CostTable::Row CostTable::parse_row(std::string_view line, int number) {
  using base::next_word;
  using base::number_in;
  Row row;
  row.engine = next_word(line);
  const std::string_view kind = next_word(line);
  const std::string_view ranks = next_word(line);
  if (ranks.empty()) refuse(number, "is too short");
  // The table has regular kinds only. `microseconds` looks up a v-form as its regular form.
  for (const KindRow& known : kKinds) {
    if (is_carried(known.kind) && !is_listed(known.kind) && known.name == kind) {
      row.kind = known.kind;
    }
  }
  if (row.kind == Kind::kNone) refuse(number, fmt::format("names no collective: \"{}\"", kind));
  row.ranks = number_in<int>(ranks).value_or(0);
  if (row.ranks < 1) refuse(number, fmt::format("is for {} ranks", ranks));
  while (true) {
    const std::string_view word = next_word(line);
    if (word.empty()) break;
    const std::size_t colon = std::min(word.find(':'), word.size());
    const auto bytes = number_in<double>(word.substr(0, colon));
    const auto microseconds = number_in<double>(word.substr(std::min(colon + 1, word.size())));
    const Point point{bytes.value_or(-1), microseconds.value_or(0)};
    if (!(point.bytes >= 0) || !std::isfinite(point.bytes) || !(point.microseconds > 0) ||
        !std::isfinite(point.microseconds)) {
      refuse(number, fmt::format("has \"{}\"", word));
    }
    if (!row.points.empty() && point.bytes <= row.points.back().bytes) {
      refuse(number, fmt::format("does not rise at \"{}\"", word));
    }
    row.points.push_back(point);
  }
  if (row.points.empty()) refuse(number, "has no measurements");
  return row;
}

CostTable CostTable::shipped(const ProviderList& providers) {
  std::string text;
  for (const auto& provider : providers) text += provider->shipped_costs();
  return parse(text);
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
  const Kind kind = regular_of(signature.kind);
  for (const Row& row : rows_) {
    if (row.engine != engine || row.kind != kind) continue;
    if (best == nullptr || std::abs(row.ranks - ranks) < std::abs(best->ranks - ranks)) best = &row;
  }
  if (best == nullptr) return std::nullopt;
  return on_line(best->points, static_cast<double>(whole_bytes(signature, ranks)));
}

}  // namespace hocket::engine
