#include "interfaces/cli/bench/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "interfaces/cli/bench/report.h"

namespace hocket::cli::bench {
namespace {

// The size of the picture, in units of the SVG, and the margins around the plotted area.
constexpr double kWidth = 520, kHeight = 320;
constexpr double kLeft = 58, kRight = 16, kTop = 46, kBottom = 40;
// The width of one of several panels, and the space between two.
constexpr double kPanel = 222, kBetween = 16;

// The left and right end of a plot's area, and how many sizes are named below it.
struct Frame {
  double left = kLeft;
  double right = kWidth - kRight;
  int ticks = 8;
  bool names_values = true;
};

struct Interval {
  double low = 0;
  double high = 1;
};

// Maps values to the picture's coordinates.
struct Axis {
  Interval values;
  Interval places;
  Scale scale = Scale::kLinear;

  double place(double value) const {
    const auto at = [this](double v) { return scale == Scale::kLogarithmic ? std::log(v) : v; };
    const double width = at(values.high) - at(values.low);
    const double part = width > 0 ? (at(value) - at(values.low)) / width : 0.5;
    return places.low + std::clamp(part, 0.0, 1.0) * (places.high - places.low);
  }
};

// Rounds up to 1, 2 or 5 times a power of ten.
double round_step(double wanted) {
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= wanted) return factor * power;
  }
  return 10 * power;
}

// Chooses the axis by the medians. A spread beyond them is clipped at the edge.
Axis vertical_axis(const std::vector<Plot>& plots) {
  double low = INFINITY, high = 0;
  for (const Plot& plot : plots) {
    for (const Curve& curve : plot.curves) {
      for (const Mark& mark : curve.marks) {
        low = std::min(low, mark.y);
        high = std::max(high, mark.y);
      }
    }
    high = std::max(high, plot.reference);
  }
  Axis axis{{0.1, 1}, {kHeight - kBottom, kTop}, plots.front().scale};
  if (!(low <= high)) return axis;
  if (axis.scale == Scale::kLogarithmic) {
    axis.values = {std::pow(10, std::floor(std::log10(low))),
                   std::pow(10, std::ceil(std::log10(high)))};
    if (axis.values.low == axis.values.high) axis.values.high *= 10;
  } else {
    const double step = round_step(high / 5);
    axis.values = {0, step * std::ceil(high * 1.02 / step)};
  }
  return axis;
}

Axis horizontal_axis(const std::vector<Plot>& plots, const Frame& frame) {
  Interval sizes{INFINITY, 0};
  for (const Plot& plot : plots) {
    for (const Curve& curve : plot.curves) {
      for (const Mark& mark : curve.marks) {
        sizes.low = std::min(sizes.low, mark.x);
        sizes.high = std::max(sizes.high, mark.x);
      }
    }
  }
  if (!(sizes.low <= sizes.high)) sizes = {1, 2};
  return {sizes, {frame.left + 8, frame.right - 8}, Scale::kLogarithmic};
}

std::vector<double> ticks_of(const Axis& axis) {
  std::vector<double> ticks;
  if (axis.scale == Scale::kLogarithmic) {
    for (double at = axis.values.low; at <= axis.values.high * 1.001; at *= 10) ticks.push_back(at);
  } else {
    const double step = round_step(axis.values.high / 5.01);
    for (double at = 0; at <= axis.values.high * 1.001; at += step) ticks.push_back(at);
  }
  return ticks;
}

// Returns powers of two, about `most` of them.
std::vector<double> size_ticks(const Interval& sizes, int most) {
  const double first = std::ceil(std::log2(sizes.low) - 1e-9);
  const double last = std::floor(std::log2(sizes.high) + 1e-9);
  const double step = std::max(1.0, std::ceil((last - first) / most));
  std::vector<double> ticks;
  for (double power = first; power <= last; power += step) ticks.push_back(std::exp2(power));
  return ticks;
}

std::string tick_text(double value, const std::string& unit) {
  if (unit == "µs" && value >= 1e6) return fmt::format("{:g} s", value / 1e6);
  if (unit == "µs" && value >= 1e3) return fmt::format("{:g} ms", value / 1e3);
  return value == 0 ? "0" : fmt::format("{:g}", value);
}

std::string grid(const Plot& plot, const Frame& frame, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : ticks_of(y)) {
    const double at = y.place(tick);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                       frame.left,
                       frame.right,
                       at,
                       at);
    if (!frame.names_values) continue;
    svg += fmt::format("<text class=\"tick end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n",
                       frame.left - 8,
                       at + 3.5,
                       tick_text(tick, plot.unit));
  }
  for (const double tick : size_ticks(x.values, frame.ticks)) {
    const double at = x.place(tick);
    svg += fmt::format(
        "<line class=\"grid faint\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/>"
        "<text class=\"tick middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        at,
        at,
        kTop,
        kHeight - kBottom,
        at,
        kHeight - kBottom + 18,
        plot.over == Over::kBytes ? size_text(static_cast<std::size_t>(tick))
                                  : fmt::format("{:g}", tick));
  }
  if (plot.reference > 0) {
    const double at = y.place(plot.reference);
    svg +=
        fmt::format("<line class=\"reference\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                    frame.left,
                    frame.right,
                    at,
                    at);
  }
  return svg;
}

std::string band(const Curve& curve, const Axis& x, const Axis& y) {
  std::string path;
  for (const Mark& mark : curve.marks) {
    path += fmt::format(
        "{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.place(mark.x), y.place(mark.high));
  }
  for (auto mark = curve.marks.rbegin(); mark != curve.marks.rend(); ++mark) {
    path += fmt::format("L{:.1f} {:.1f}", x.place(mark->x), y.place(mark->low));
  }
  return fmt::format("<path class=\"band\" d=\"{}Z\"/>", path);
}

std::string curve_of(const Curve& curve, const Axis& x, const Axis& y) {
  std::string line, dots;
  for (const Mark& mark : curve.marks) {
    const double left = x.place(mark.x), top = y.place(mark.y);
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", left, top);
    dots += fmt::format(
        "<g class=\"dot\"><circle class=\"aim\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"11\"/>"
        "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3.2\"/><title>{2}</title></g>",
        left,
        top,
        escaped(mark.hint));
  }
  const std::string spread = curve.marks.size() > 1 ? band(curve, x, y) : "";
  return fmt::format("<g class=\"curve {}\">{}<path class=\"line\" d=\"{}\"/>{}</g>\n",
                     curve.style,
                     spread,
                     line,
                     dots);
}

std::string picture(const std::string& title,
                    double width,
                    double height,
                    const std::string& inside) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "<text class=\"title\" x=\"4\" y=\"18\">{}</text>\n{}</svg>\n",
      width,
      height,
      escaped(title),
      escaped(title),
      inside);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        // Other control characters are not allowed in a page.
        safe += static_cast<unsigned char>(c) < 32 && c != '\n' ? ' ' : c;
    }
  }
  return safe;
}

namespace {

// Draws the grid and the curves of a plot. The first curve is drawn last, above the others.
std::string area(const Plot& plot, const Frame& frame, const Axis& x, const Axis& y) {
  std::string inside = grid(plot, frame, x, y);
  for (auto curve = plot.curves.rbegin(); curve != plot.curves.rend(); ++curve) {
    inside += curve_of(*curve, x, y);
  }
  return inside;
}

std::string unit_text(const Plot& plot) {
  return fmt::format("<text class=\"tick end\" x=\"{}\" y=\"{}\">{}</text>\n",
                     kLeft - 8,
                     kTop - 13,
                     escaped(plot.unit));
}

}  // namespace

std::string to_svg(const Plot& plot) {
  const Frame frame;
  const std::string inside =
      area(plot, frame, horizontal_axis({plot}, frame), vertical_axis({plot}));
  return picture(plot.title, kWidth, kHeight, unit_text(plot) + inside);
}

std::string to_svg(const std::string& title, const std::vector<Plot>& panels) {
  if (panels.empty()) return "";
  const Axis y = vertical_axis(panels);
  std::string inside = unit_text(panels.front());
  Frame frame{.left = kLeft, .right = kLeft + kPanel, .ticks = 4, .names_values = true};
  for (const Plot& plot : panels) {
    inside += fmt::format("<text class=\"name middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                          (frame.left + frame.right) / 2,
                          kTop - 8,
                          escaped(plot.title));
    inside += area(plot, frame, horizontal_axis(panels, frame), y);
    frame = {.left = frame.right + kBetween,
             .right = frame.right + kBetween + kPanel,
             .ticks = frame.ticks,
             .names_values = false};
  }
  return picture(title, frame.left - kBetween + kRight, kHeight, inside);
}

std::string to_svg(const std::string& title, const std::vector<Bar>& bars) {
  constexpr double kStep = 34, kThick = 20, kNames = 150, kFigures = 90;
  double longest = 0;
  for (const Bar& bar : bars) longest = std::max(longest, bar.length);
  std::string inside;
  double top = kTop - 10;
  for (const Bar& bar : bars) {
    const double room = kWidth - kNames - kFigures;
    const double length = longest > 0 ? std::max(2.0, bar.length / longest * room) : 2;
    inside += fmt::format(
        "<g class=\"curve {}\"><text class=\"name end\" x=\"{}\" y=\"{:.1f}\">{}</text>"
        "<rect class=\"bar\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"3\"/>"
        "<text class=\"name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text><title>{}</title></g>\n",
        bar.style,
        kNames - 10,
        top + 15,
        escaped(bar.name),
        kNames,
        top,
        length,
        kThick,
        kNames + length + 8,
        top + 15,
        escaped(bar.text),
        escaped(bar.hint));
    top += kStep;
  }
  return picture(title, kWidth, top + 4, inside);
}

}  // namespace hocket::cli::bench
