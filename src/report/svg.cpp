// SPDX-License-Identifier: Apache-2.0
#include "report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/interruption.h"
#include "base/text.h"
#include "report/palette.h"
#include "report/svg_text.h"

namespace penstock::report {
namespace {

using schedule::OpKind;

struct LegendEntry {
  OpKind kind;
  std::string_view name;
};

constexpr std::array<LegendEntry, 11> kLegend{{
    {OpKind::Forward, "forward"},
    {OpKind::Backward, "backward"},
    {OpKind::BackwardInput, "backward, input"},
    {OpKind::BackwardWeight, "backward, weights"},
    {OpKind::VocabularyLoss, "output layer and loss, on all devices"},
    {OpKind::Offload, "copy out"},
    {OpKind::Reload, "copy in"},
    {OpKind::ReduceGradients, "R: gradient reduction"},
    {OpKind::GatherWeights, "G: weights gathered"},
    {OpKind::ReleaseWeights, "gathered weights freed"},
    {OpKind::OptimizerStep, "step: optimizer"},
}};

constexpr double kMargin = 12;
constexpr double kTitleHeight = 26;
constexpr double kRowHeight = 26;
constexpr double kRowGap = 4;
constexpr double kAxisHeight = 40;
constexpr double kLegendHeight = 24;
constexpr double kLeastAxis = 100;
constexpr double kLeastWidth = 2;   // of a collective without duration
constexpr double kCharacter = 6.6;  // width of a label's character at 11 pixels

std::string shaded(const Colour& colour, double lightness) {
  std::string text = "#";
  for (const std::uint8_t part : {colour.red, colour.green, colour.blue}) {
    const auto value = static_cast<unsigned>(std::lround(part * lightness));
    text += "0123456789abcdef"[value / 16];
    text += "0123456789abcdef"[value % 16];
  }
  return text;
}

double text_width(std::string_view text) { return static_cast<double>(text.size()) * kCharacter; }

// 1, 2 or 5 times a power of ten, so that ticks and their numbers do not crowd.
double tick_step(double end, double width) {
  const double least = end * 60 / width;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * 0.999) return factor * power;
  }
  return 10 * power;
}

class SvgWriter {
 public:
  SvgWriter(const Drawing& drawing, const SvgOptions& options) : drawing_(drawing) {
    for (const std::string& row : drawing.rows) left_ = std::max(left_, 2 * kMargin + text_width(row));
    scale_ = drawing.end > 0 ? std::min(natural_scale(), options.most_width / drawing.end) : 1;
    legend_width_ = 0;
    for (const LegendEntry& entry : kLegend) {
      if (is_used(entry.kind)) legend_width_ += text_width(entry.name) + 34;
    }
  }

  std::string write() {
    const double width = std::max(left_ + drawing_.end * scale_, left_ + legend_width_) + kMargin;
    const double height = bottom() + kAxisHeight + kLegendHeight + kMargin;
    open(width, height);
    if (!drawing_.title.empty()) text("title", kMargin, kMargin + 12, "", drawing_.title);
    for (std::size_t row = 0; row < drawing_.rows.size(); ++row) write_row(row);
    for (const Box& box : drawing_.boxes) {
      allow_interruption();
      write_box(box);
    }
    write_axis();
    write_legend();
    return svg_ + "</svg>\n";
  }

 private:
  // Scale at which every label fits, except those of collectives and the optimizer step, which may be very
  // short, and at which boxes are at least 14 pixels wide.
  double natural_scale() const {
    double scale = kLeastAxis / drawing_.end;
    for (const Box& box : drawing_.boxes) {
      allow_interruption();
      if (lane_of(box.kind) == schedule::Lane::Collective || box.kind == OpKind::OptimizerStep) continue;
      const double width = std::max(14.0, text_width(box.label) + 6);
      if (box.end > box.start) scale = std::max(scale, width / (box.end - box.start));
    }
    return scale;
  }

  bool is_used(OpKind kind) const {
    return std::ranges::find(drawing_.boxes, kind, &Box::kind) != drawing_.boxes.end();
  }

  double top_of(std::size_t row) const {
    return kMargin + kTitleHeight + static_cast<double>(row) * (kRowHeight + kRowGap);
  }
  double bottom() const { return top_of(drawing_.rows.size()); }

  void open(double width, double height) {
    svg_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + pixels(width) + "\" height=\"" +
           pixels(height) + "\" viewBox=\"0 0 " + pixels(width) + ' ' + pixels(height) +
           "\" font-family=\"Helvetica, Arial, sans-serif\">\n"
           "<style>\n"
           ":root { color-scheme: light dark }\n"
           "text { font-size: 11px; fill: #222 }\n"
           ".title { font-size: 14px; font-weight: bold }\n"
           ".line { stroke: #999; stroke-width: 1; fill: none }\n"
           ".lane { fill: #888; fill-opacity: 0.12 }\n"
           ".box { fill: #111; text-anchor: middle }\n"
           "@media (prefers-color-scheme: dark) { text { fill: #ddd } .box { fill: #111 } }\n"
           "</style>\n";
  }

  void text(std::string_view style, double x, double y, std::string_view anchor, std::string_view content) {
    svg_ += "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + '"';
    if (!style.empty()) svg_ += " class=\"" + std::string(style) + '"';
    if (!anchor.empty()) svg_ += " text-anchor=\"" + std::string(anchor) + '"';
    svg_ += '>' + escape(content) + "</text>\n";
  }

  void write_row(std::size_t row) {
    text("", left_ - kMargin, top_of(row) + kRowHeight / 2 + 4, "end", drawing_.rows[row]);
    svg_ += "<rect class=\"lane\" x=\"" + pixels(left_) + "\" y=\"" + pixels(top_of(row)) + "\" width=\"" +
            pixels(drawing_.end * scale_) + "\" height=\"" + pixels(kRowHeight) + "\"/>\n";
  }

  void write_box(const Box& box) {
    const double x = left_ + box.start * scale_;
    const double least = lane_of(box.kind) == schedule::Lane::Collective ? kLeastWidth : 0;
    const double width = std::max(least, (box.end - box.start) * scale_);
    const double y = top_of(static_cast<std::size_t>(box.row));
    const double gap = std::min(1.0, width / 8);  // between neighbours
    svg_ += "<rect fill=\"" + shaded(colour_of(box.kind), box.lightness) + "\" x=\"" + pixels(x + gap / 2) +
            "\" y=\"" + pixels(y) + "\" width=\"" + pixels(width - gap) + "\" height=\"" +
            pixels(kRowHeight) + "\"><title>" + escape(box.hint) + "</title></rect>\n";
    if (text_width(box.label) + 2 <= width) text("box", x + width / 2, y + kRowHeight / 2 + 4, "", box.label);
  }

  void write_axis() {
    const double y = bottom() + 4;
    svg_ +=
        "<path class=\"line\" d=\"M" + pixels(left_) + ' ' + pixels(y) + 'h' + pixels(drawing_.end * scale_);
    const double step = drawing_.end > 0 ? tick_step(drawing_.end, drawing_.end * scale_) : 1;
    const auto ticks = static_cast<int>(drawing_.end / step * 1.0001);
    for (int tick = 0; tick <= ticks; ++tick) {
      svg_ += 'M' + pixels(left_ + tick * step * scale_) + ' ' + pixels(y) + "v5";
    }
    svg_ += "\"/>\n";
    const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 0.001)));
    for (int tick = 0; tick <= ticks; ++tick) {
      text("", left_ + tick * step * scale_, y + 17, "middle", number(tick * step, decimals));
    }
    text("", left_, y + 32, "", drawing_.unit);
  }

  void write_legend() {
    double x = left_;
    const double y = bottom() + kAxisHeight + 4;
    for (const LegendEntry& entry : kLegend) {
      if (!is_used(entry.kind)) continue;
      svg_ += "<rect fill=\"" + shaded(colour_of(entry.kind), 1) + "\" x=\"" + pixels(x) + "\" y=\"" +
              pixels(y) + "\" width=\"14\" height=\"14\"/>\n";
      text("", x + 19, y + 11, "", entry.name);
      x += text_width(entry.name) + 34;
    }
  }

  const Drawing& drawing_;
  double left_ = 0;   // where time begins
  double scale_ = 1;  // pixels per unit of time
  double legend_width_ = 0;
  std::string svg_;
};

}  // namespace

std::string svg(const Drawing& drawing, const SvgOptions& options) {
  return SvgWriter(drawing, options).write();
}

}  // namespace penstock::report
