#include "pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "interfaces/cli/bench/plot.h"
#include "interfaces/cli/quantities.h"

namespace hocket::scaling {

using cli::bench::Curve;
using cli::bench::Mark;
using cli::bench::Plot;

using cli::size_text;
using cli::three_digits;

namespace {

Case case_of(const Grid& grid, std::size_t column) {
  Case c = grid.first;
  c.ranks = grid.ranks[column];
  return c;
}

std::string text_of_time(double us) {
  if (us >= 1e6) return three_digits(us / 1e6) + " s";
  if (us >= 1e3) return three_digits(us / 1e3) + " ms";
  return three_digits(us) + " us";
}

// The names of all routes. The index of a name is the number of its style: way0, way1, ...
std::vector<std::string> all_names(const std::vector<Grid>& grids) {
  std::vector<std::string> names;
  for (const Grid& grid : grids) {
    for (const Route& route : grid.routes) {
      if (std::find(names.begin(), names.end(), route.name()) == names.end()) {
        names.push_back(route.name());
      }
    }
  }
  return names;
}

Plot plot_of(const Grid& grid, const std::vector<std::string>& names) {
  Plot plot{.title = title_of(grid), .unit = "µs", .over = cli::bench::Over::kNumbers};
  Curve choice{.style = "chosen"};
  for (std::size_t r = 0; r < grid.routes.size(); ++r) {
    const std::string name = grid.routes[r].name();
    const auto number = std::find(names.begin(), names.end(), name) - names.begin();
    Curve curve{.style = fmt::format("way{}", number)};
    for (std::size_t i = 0; i < grid.ranks.size(); ++i) {
      if (!grid.times[r][i]) continue;
      const double us = *grid.times[r][i];
      const Mark mark{.x = static_cast<double>(grid.ranks[i]),
                      .y = us,
                      .low = us,
                      .high = us,
                      .hint = fmt::format("{}: {} of {}", name, text_of_time(us), grid.ranks[i])};
      curve.marks.push_back(mark);
      if (grid.chosen[i] == r) choice.marks.push_back(mark);
    }
    if (!curve.marks.empty()) plot.curves.push_back(std::move(curve));
  }
  plot.curves.insert(plot.curves.begin(), std::move(choice));
  return plot;
}

constexpr const char* kStyle = R"css(
text { font-family: system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
.title { font-size: 14px; font-weight: 600; fill: #26241f }
.tick { font-size: 11px; fill: #667079 } .end { text-anchor: end } .middle { text-anchor: middle }
.grid { stroke: #e4e6e3 } .faint { opacity: 0.6 }
.curve .line { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round }
.curve circle { fill: var(--c) } .curve .aim { fill: transparent } .band { display: none }
.chosen .line { display: none } .chosen circle { fill: none; stroke: #26241f; r: 6px }
.chosen .aim { stroke: none }
.way0 { --c: #1769d2 } .way1 { --c: #d9730d } .way2 { --c: #8a4fc7 } .way3 { --c: #c0392b }
.way4 { --c: #0b9488 } .way5 { --c: #26241f } .way6 { --c: #a16207 } .way7 { --c: #6b7280 }
)css";

}  // namespace

Grid simulate_all(const Case& first, const std::vector<int>& ranks, std::uint64_t most_messages) {
  Grid grid{.first = first, .ranks = ranks, .routes = routes_of(first)};
  grid.times.resize(grid.routes.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Case c = case_of(grid, i);
    for (std::size_t r = 0; r < grid.routes.size(); ++r) {
      const auto outcome = simulate(c, grid.routes[r], most_messages);
      grid.times[r].push_back(outcome ? std::optional(outcome->microseconds) : std::nullopt);
    }
    const auto at = std::find(grid.routes.begin(), grid.routes.end(), chosen(c));
    grid.chosen.push_back(static_cast<std::size_t>(at - grid.routes.begin()));
  }
  return grid;
}

std::optional<double> excess(const Grid& grid, std::size_t column) {
  const auto& choice = grid.times[grid.chosen[column]][column];
  if (!choice) return std::nullopt;
  double best = *choice;
  for (const auto& times : grid.times) best = std::min(best, times[column].value_or(best));
  return *choice / best;
}

std::string title_of(const Grid& grid) {
  const std::string name(engine::name_of(grid.first.kind));
  return grid.first.kind == engine::Kind::kBarrier ? name
                                                   : name + ", " + size_text(grid.first.bytes);
}

std::string table_of(const Grid& grid) {
  std::string text = fmt::format("| {} |", title_of(grid));
  std::string rule = "|---|";
  std::string ratios = "| chosen / best |";
  for (std::size_t i = 0; i < grid.ranks.size(); ++i) {
    text += fmt::format(" {} |", grid.ranks[i]);
    rule += "---|";
    const auto ratio = excess(grid, i);
    ratios += ratio ? fmt::format(" {:.2f} |", *ratio) : " |";
  }
  text += "\n" + rule + "\n";
  for (std::size_t r = 0; r < grid.routes.size(); ++r) {
    text += fmt::format("| {} |", grid.routes[r].name());
    for (std::size_t i = 0; i < grid.ranks.size(); ++i) {
      const auto& us = grid.times[r][i];
      const char* const mark = grid.chosen[i] == r ? "**" : us ? "" : "*";
      const double shown = us.value_or(us ? 0 : predicted(case_of(grid, i), grid.routes[r]));
      text += fmt::format(" {0}{1}{0} |", mark, text_of_time(shown));
    }
    text += "\n";
  }
  return text + ratios + "\n";
}

std::string picture_of(const std::vector<Grid>& grids) {
  constexpr int kWidth = 520, kHeight = 330, kColumns = 2, kTop = 60;
  const auto names = all_names(grids);
  const int rows = (static_cast<int>(grids.size()) + kColumns - 1) / kColumns;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" role=\"img\">\n"
      "<title>Time against the number of ranks</title>\n<style>{2}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kColumns * kWidth,
      kTop + rows * kHeight,
      kStyle);
  for (std::size_t i = 0; i < names.size(); ++i) {
    svg += fmt::format(
        "<g class=\"curve way{0}\" transform=\"translate({1} 24)\"><path class=\"line\" d=\"M0 "
        "0h22\"/>"
        "<text class=\"tick\" x=\"28\" y=\"4\">{2}</text></g>\n",
        i,
        20 + 165 * static_cast<int>(i),
        names[i]);
  }
  svg +=
      "<g class=\"curve chosen\" transform=\"translate(31 44)\"><circle r=\"6\"/>"
      "<text class=\"tick\" x=\"17\" y=\"4\">what the cost model chooses</text></g>\n";
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const std::string plot = cli::bench::to_svg(plot_of(grids[i], names));
    svg += fmt::format("<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"320\"{}",
                       static_cast<int>(i) % kColumns * kWidth,
                       kTop + static_cast<int>(i) / kColumns * kHeight,
                       kWidth,
                       plot.substr(4));
  }
  return svg + "</svg>\n";
}

}  // namespace hocket::scaling
