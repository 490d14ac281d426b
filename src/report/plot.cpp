// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/palette.h"
#include "report/svg_text.h"

namespace penstock::report {
namespace {

constexpr double kLeft = 20;
constexpr double kTop = 56;
constexpr double kPanelWidth = 320;
constexpr double kPanelHeight = 160;
constexpr double kGap = 60;
constexpr double kBelow = 48;

double greatest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most > 0 ? most : 1;
}

std::string text(double x, double y, std::string_view anchor, std::string_view content,
                 std::string_view style = "") {
  return "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + std::string(anchor) + "\"" +
         (style.empty() ? "" : " class=\"" + std::string(style) + "\"") + ">" + escape(content) + "</text>\n";
}

// One curve in its own panel, from zero to its maximum, with the value above each point.
class Panel {
 public:
  Panel(const Plot& plot, const Curve& curve, double left) : plot_(plot), curve_(curve), left_(left) {
    top_value_ = greatest(curve.values) * 1.15;
  }

  std::string draw(const Colour& colour) const {
    std::string svg =
        text(left_, kTop - 12, "start", curve_.name + (curve_.unit.empty() ? "" : " (" + curve_.unit + ")"));
    svg +=
        "<path class=\"axis\" d=\"M" + point(left_, y_of(0)) + "H" + pixels(left_ + kPanelWidth) + "\"/>\n";
    std::string line;
    for (std::size_t i = 0; i < curve_.values.size(); ++i) {
      svg += text(x_of(i), y_of(0) + 18, "middle", plot_.positions[i]);
      if (!std::isfinite(curve_.values[i])) continue;
      const bool joined = i > 0 && std::isfinite(curve_.values[i - 1]);
      line += (joined ? "L" : "M") + point(x_of(i), y_of(curve_.values[i]));
      svg += "<circle cx=\"" + pixels(x_of(i)) + "\" cy=\"" + pixels(y_of(curve_.values[i])) +
             "\" r=\"4\" fill=\"" + std::string(colour.hex) + "\"/>\n" +
             text(x_of(i), y_of(curve_.values[i]) - 9, "middle", label(curve_.values[i]), "value");
    }
    svg += "<path class=\"curve\" stroke=\"" + std::string(colour.hex) + "\" d=\"" + line + "\"/>\n";
    return svg + text(left_ + kPanelWidth / 2, y_of(0) + 38, "middle", plot_.axis);
  }

 private:
  static std::string point(double x, double y) { return pixels(x) + " " + pixels(y); }
  static std::string label(double value) {
    const bool whole = value == std::floor(value) || value >= 100;
    return whole ? number(value, 0) : two_digits(value, value >= 10 ? 1 : 2);
  }
  double x_of(std::size_t i) const {
    return left_ + kPanelWidth * (static_cast<double>(i) + 0.5) / static_cast<double>(curve_.values.size());
  }
  double y_of(double value) const { return kTop + kPanelHeight * (1 - value / top_value_); }

  const Plot& plot_;
  const Curve& curve_;
  double left_;
  double top_value_;
};

}  // namespace

std::string svg(const Plot& plot) {
  const double width = kLeft + (kPanelWidth + kGap) * static_cast<double>(plot.curves.size());
  const double height = kTop + kPanelHeight + kBelow;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + pixels(width) + "\" height=\"" +
                    pixels(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<style>:root{color-scheme:light "
                    "dark}text{fill:#1a1a1a}.title{font-weight:bold;font-size:14px}.value{font-size:11px}"
                    ".axis{stroke:#888;fill:none}.curve{stroke-width:2;fill:none}"
                    "@media(prefers-color-scheme:dark){text{fill:#eee}}</style>\n";
  svg += text(kLeft, 22, "start", plot.title, "title");
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const double left = kLeft + (kPanelWidth + kGap) * static_cast<double>(i);
    svg += Panel(plot, plot.curves[i], left).draw(kSeriesColours[i % kSeriesColours.size()]);
  }
  return svg + "</svg>\n";
}

}  // namespace penstock::report
