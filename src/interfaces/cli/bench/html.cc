#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "interfaces/cli/bench/configuration.h"
#include "interfaces/cli/bench/libraries.h"
#include "interfaces/cli/bench/page_style.h"
#include "interfaces/cli/bench/plot.h"
#include "interfaces/cli/bench/report.h"

namespace hocket::cli::bench {
namespace {

// The points of one collective and dtype, by size: a section of the page.
struct Chapter {
  std::string title;
  std::vector<const Point*> points;

  const Row& any() const { return points.front()->front(); }
  bool has_sizes() const { return any().subject.collective != Collective::kBarrier; }

  // The chapter of one number of ranks.
  Chapter of(int ranks) const {
    Chapter part{title, {}};
    for (const Point* point : points) {
      if (point->front().ranks == ranks) part.points.push_back(point);
    }
    return part;
  }
};

// The key of a curve: a library with a kind of memory, in place or not. Rows with equal keys form
// one curve.
struct Key {
  std::size_t library = 0;  // by the order of participants
  Memory memory = Memory::kOrdinary;
  bool in_place = false;
  auto operator<=>(const Key&) const = default;
};

// A page in the making.
class Page {
 public:
  explicit Page(const Findings& findings) : findings_(findings) {}

  std::string text() {
    std::string body = header();
    for (const Chapter& chapter : chapters()) body += section(chapter);
    body += configuration_of(findings_);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<title>hocket bench</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{}</main>\n"
        "</body>\n</html>\n",
        kPageStyle,
        body);
  }

 private:
  std::vector<Chapter> chapters() const {
    std::vector<Chapter> all;
    for (const Point& point : findings_.points) {
      const Case& subject = point.front().subject;
      std::string title(name_of(subject.collective));
      if (subject.collective != Collective::kBarrier) {
        title += fmt::format(" · {}", hocket::name_of(subject.dtype));
      }
      if (reduces(subject.collective)) title += fmt::format(" {}", hocket::name_of(subject.op));
      auto chapter = std::ranges::find(all, title, &Chapter::title);
      if (chapter == all.end()) chapter = all.insert(all.end(), {title, {}});
      chapter->points.push_back(&point);
    }
    return all;
  }

  Key key_of(const Row& row) const {
    std::size_t library = 0;
    while (library + 1 < findings_.participants.size() &&
           findings_.participants[library].name != row.library) {
      ++library;
    }
    return {library, row.subject.memory, row.subject.in_place};
  }

  std::string style_of(const Key& key) const {
    return fmt::format("lib{}{}{}",
                       std::min<std::size_t>(key.library, 5),
                       key.memory == Memory::kSymmetric ? "s" : "",
                       is_dashed(key) ? " dashed" : "");
  }

  // In-place curves are dashed only if out-of-place calls were measured, too.
  bool is_dashed(const Key& key) const { return key.in_place && findings_.plan.places.size() > 1; }

  std::string name_of_key(const Key& key) const {
    std::string name = findings_.participants[key.library].name;
    if (key.memory == Memory::kSymmetric) name += ", symmetric memory";
    if (is_dashed(key)) name += ", in place";
    return name;
  }

  template <typename F>
  std::map<Key, Curve> curves(const Chapter& chapter, F mark_of) const {
    std::map<Key, Curve> curves;
    for (const Point* point : chapter.points) {
      for (const Row& row : *point) {
        const Key key = key_of(row);
        Curve& curve = curves[key];
        curve.style = style_of(key);
        mark_of(*point, row, curve);
      }
    }
    return curves;
  }

  static Plot plot_of(std::string title,
                      std::string unit,
                      Scale scale,
                      std::map<Key, Curve> curves) {
    Plot plot{std::move(title), std::move(unit), scale, {}, 0};
    for (auto& [key, curve] : curves) {
      if (!curve.marks.empty()) plot.curves.push_back(std::move(curve));
    }
    return plot;
  }

  std::string hint_of(const Row& row) const {
    return fmt::format("{}\n{}: {} µs ({} .. {})\nbus {} GB/s",
                       name_of_key(key_of(row)),
                       size_text(row.bytes),
                       three_digits(row.median_us()),
                       three_digits(row.min_us()),
                       three_digits(row.max_us()),
                       three_digits(row.bus_gbps()));
  }

  Plot time_plot(const Chapter& chapter, std::string title) const {
    return plot_of(std::move(title),
                   "µs",
                   Scale::kLogarithmic,
                   curves(chapter, [this](const Point&, const Row& row, Curve& curve) {
                     curve.marks.push_back({double(row.bytes),
                                            row.median_us(),
                                            row.lower_quartile_us(),
                                            row.upper_quartile_us(),
                                            hint_of(row)});
                   }));
  }

  // Returns one picture with a plot of the times for each number of ranks.
  std::string panels(const Chapter& chapter) const {
    std::vector<Plot> plots;
    for (const int ranks : findings_.ranks) {
      const Chapter part = chapter.of(ranks);
      if (!part.points.empty()) plots.push_back(time_plot(part, ranks_text(ranks)));
    }
    return fmt::format("<figure style=\"max-width: {}px\">{}</figure>\n",
                       90 + 260 * plots.size(),
                       to_svg("Time of a call", plots));
  }

  static std::string ranks_text(int ranks) {
    return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  }
  bool has_several() const { return findings_.ranks.size() > 1; }

  std::string bandwidth_plot(const Chapter& chapter) const {
    return to_svg(plot_of("Bus bandwidth",
                          "GB/s",
                          Scale::kLinear,
                          curves(chapter, [this](const Point&, const Row& row, Curve& curve) {
                            const double bus = row.bus_gbps(), median = row.median_us();
                            curve.marks.push_back({double(row.bytes),
                                                   bus,
                                                   bus * median / row.upper_quartile_us(),
                                                   bus * median / row.lower_quartile_us(),
                                                   hint_of(row)});
                          })));
  }

  // Plots hocket's times divided by another library's, for each kind of memory, in place or not.
  // Hocket is faster below the line at 1.
  std::string ratio_plot(const Chapter& chapter, const std::string& peer) const {
    Plot plot = plot_of(
        fmt::format("Time relative to {} (lower is better)", peer),
        "ratio",
        Scale::kLinear,
        curves(chapter, [&](const Point& point, const Row& row, Curve& curve) {
          const Row* other = row.library == kHocket ? counterpart(point, row, peer) : nullptr;
          if (other == nullptr) return;
          const Ratio ratio = ratio_of(row, *other);
          curve.marks.push_back({double(row.bytes),
                                 ratio.median,
                                 ratio.low,
                                 ratio.high,
                                 fmt::format("{}\n{}: {:.2f} of the time of {} ({:.2f} .. {:.2f})",
                                             name_of_key(key_of(row)),
                                             size_text(row.bytes),
                                             ratio.median,
                                             peer,
                                             ratio.low,
                                             ratio.high)});
        }));
    if (plot.curves.empty()) return "";
    plot.reference = 1;
    return figure(to_svg(plot));
  }

  static std::string figure(const std::string& svg) {
    return fmt::format("<figure>{}</figure>\n", svg);
  }

  std::string legend(const Chapter& chapter) const {
    std::string items;
    for (const auto& [key, curve] : curves(chapter, [](const Point&, const Row&, Curve&) {})) {
      items += fmt::format(
          "<li class=\"curve {}\"><svg viewBox=\"0 0 26 10\">"
          "<path class=\"line\" d=\"M1 5L25 5\"/>"
          "<circle cx=\"13\" cy=\"5\" r=\"3.2\"/></svg>{}</li>",
          curve.style,
          escaped(name_of_key(key)));
    }
    return fmt::format("<ul class=\"legend\">{}</ul>\n", items);
  }

  std::string bars(const Chapter& chapter) const {
    return fmt::format("<figure class=\"bars\">{}</figure>\n",
                       to_svg("Time of a call", bars_of(chapter)));
  }

  std::vector<Bar> bars_of(const Chapter& chapter) const {
    std::vector<Bar> all;
    for (const Row& row : *chapter.points.front()) {
      Bar& bar = all.emplace_back();
      bar.style = style_of(key_of(row));
      bar.name = name_of_key(key_of(row));
      bar.length = row.median_us();
      bar.text = three_digits(row.median_us()) + " µs";
      bar.hint = hint_of(row);
    }
    return all;
  }

  std::string section(const Chapter& chapter) const {
    std::string plots;
    if (has_several()) return section_of_several(chapter);
    if (chapter.has_sizes()) {
      plots +=
          figure(to_svg(time_plot(chapter, "Time of a call"))) + figure(bandwidth_plot(chapter));
      for (const Participant& peer : findings_.participants) {
        if (peer.name != kHocket) plots += ratio_plot(chapter, peer.name);
      }
    } else {
      plots = bars(chapter);
    }
    return fmt::format(
        "<section>\n<h2>{}</h2>\n{}{}<div class=\"plots\">\n{}</div>\n{}</section>\n",
        escaped(chapter.title),
        summary(chapter),
        chapter.has_sizes() ? legend(chapter) : "",
        plots,
        table(chapter));
  }

  std::string section_of_several(const Chapter& chapter) const {
    std::string tables;
    std::vector<Bar> all;
    for (const int ranks : findings_.ranks) {
      const Chapter part = chapter.of(ranks);
      if (part.points.empty()) continue;
      tables += fmt::format("<h3>{}</h3>\n{}{}", ranks_text(ranks), summary(part), table(part));
      if (chapter.has_sizes()) continue;
      for (Bar& bar : bars_of(part)) {
        bar.name += fmt::format(", {}", ranks);
        all.push_back(std::move(bar));
      }
    }
    const std::string plots =
        chapter.has_sizes()
            ? legend(chapter) + panels(chapter)
            : fmt::format("<figure class=\"bars\">{}</figure>\n", to_svg("Time of a call", all));
    return fmt::format(
        "<section>\n<h2>{}</h2>\n{}{}</section>\n", escaped(chapter.title), plots, tables);
  }

  // Returns "2.3 times as fast as openmpi (geometric mean of 13 sizes)", for each other library.
  std::string summary(const Chapter& chapter) const {
    std::string text;
    for (const Participant& peer : findings_.participants) {
      double logarithms = 0;
      int count = 0;
      for (const Point* point : chapter.points) {
        for (const Row& row : *point) {
          const bool counts = row.library == kHocket && row.subject.memory != Memory::kSymmetric;
          const Row* other =
              counts && peer.name != kHocket ? counterpart(*point, row, peer.name) : nullptr;
          if (other == nullptr) continue;
          logarithms -= std::log(ratio_of(row, *other).median);
          ++count;
        }
      }
      if (count == 0) continue;
      text += fmt::format("<p class=\"fact\"><b>{:.2f}×</b> the speed of {}{}</p>",
                          std::exp(logarithms / count),
                          escaped(peer.name),
                          count > 1 ? fmt::format(", geometric mean of {} sizes", count) : "");
    }
    return text.empty() ? "" : fmt::format("<div class=\"facts\">{}</div>\n", text);
  }

  static const char* class_of(Ratio::Side side) noexcept {
    switch (side) {
      case Ratio::Side::kBelow:
        return "good";
      case Ratio::Side::kAbove:
        return "bad";
      case Ratio::Side::kEven:
        break;
    }
    return "even";
  }

  std::string ratio_cell(const Point& point, const Row& row, const std::string& peer) const {
    const Row* other = row.library == kHocket ? counterpart(point, row, peer) : nullptr;
    if (other == nullptr) return "<td></td>";
    const Ratio ratio = ratio_of(row, *other);
    return fmt::format("<td class=\"{}\" title=\"{:.2f} .. {:.2f}\">{:.2f}</td>",
                       class_of(ratio.side()),
                       ratio.low,
                       ratio.high,
                       ratio.median);
  }

  std::string table(const Chapter& chapter) const {
    std::string head =
        "<th>size</th><th class=\"left\">library</th><th>median µs</th>"
        "<th>min</th><th>max</th><th>alg GB/s</th><th>bus GB/s</th>";
    for (const Participant& peer : findings_.participants) {
      if (peer.name == kHocket || peer.version.empty()) continue;
      head += fmt::format("<th>time / {}</th>", escaped(peer.name));
    }
    std::string rows;
    for (const Point* point : chapter.points) {
      for (const Row& row : *point) rows += table_row(*point, row);
    }
    return fmt::format(
        "<details{}><summary>Figures</summary>\n<div class=\"wide\"><table>\n"
        "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div></details>\n",
        chapter.points.size() <= 16 ? " open=\"open\"" : "",
        head,
        rows);
  }

  std::string table_row(const Point& point, const Row& row) const {
    const bool leads = &row == &point.front();
    std::string cells = fmt::format(
        "<td>{}</td><td class=\"left curve {}\"><i></i>{}{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td>",
        leads ? size_text(row.bytes) : "",
        style_of(key_of(row)),
        escaped(name_of_key(key_of(row))),
        row.verified()
            ? ""
            : fmt::format(" <b class=\"bad\" title=\"{}\">WRONG RESULT</b>", escaped(row.wrong)),
        three_digits(row.median_us()),
        three_digits(row.min_us()),
        three_digits(row.max_us()),
        three_digits(row.algorithm_gbps()),
        three_digits(row.bus_gbps()));
    for (const Participant& peer : findings_.participants) {
      if (peer.name == kHocket || peer.version.empty()) continue;
      cells += ratio_cell(point, row, peer.name);
    }
    return fmt::format("<tr{}>{}</tr>\n", leads ? " class=\"first\"" : "", cells);
  }

  std::string header() const {
    std::string line;
    for (const auto& [name, value] : findings_.machine) {
      if (name == "cpu" || name == "processors") line += escaped(value) + " · ";
    }
    return fmt::format("<header><h1>hocket bench</h1>\n<p>{}{} ranks · {}</p>\n</header>\n",
                       line,
                       fmt::join(findings_.ranks, ", "),
                       escaped(findings_.date));
  }

  const Findings& findings_;
};

}  // namespace

std::string to_html(const Findings& findings) { return Page(findings).text(); }

}  // namespace hocket::cli::bench
