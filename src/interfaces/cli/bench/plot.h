// Plots as SVG text within a page. The page's style sheet sets their colours and fonts.
#pragma once

#include <string>
#include <vector>

namespace hocket::cli::bench {

struct Mark {
  double x = 0;
  double y = 0;
  double low = 0;  // the spread
  double high = 0;
  std::string hint;  // shown under the pointer
};

// A curve. `style` is the class names of its group: the page's style sheet gives them colours.
struct Curve {
  std::string style;
  std::vector<Mark> marks;
};

enum class Scale { kLinear, kLogarithmic };
enum class Over { kBytes, kNumbers };

// A value: curves over sizes. The axis of the sizes is logarithmic.
struct Plot {
  std::string title;
  std::string unit;  // written above the vertical axis
  Scale scale = Scale::kLogarithmic;
  std::vector<Curve> curves;
  double reference = 0;  // a line across, at this height; 0: none
  Over over = Over::kBytes;
};
std::string to_svg(const Plot& plot);

// Draws plots of one kind side by side, each under its title, with the same axes.
std::string to_svg(const std::string& title, const std::vector<Plot>& panels);

// A value: one bar for each of a few figures without a size.
struct Bar {
  std::string style;
  std::string name;
  double length = 0;
  std::string text;  // beside the bar
  std::string hint;
};
std::string to_svg(const std::string& title, const std::vector<Bar>& bars);

std::string escaped(const std::string& text);

}  // namespace hocket::cli::bench
