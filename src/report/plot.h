// SPDX-License-Identifier: Apache-2.0
// A small plot of curves over one axis of values, as an SVG file.
#pragma once

#include <string>
#include <vector>

namespace penstock::report {

struct Curve {
  std::string name;
  std::string unit;            // shown after the name; may be empty
  std::vector<double> values;  // one per position; not negative; non-finite values leave a gap
};

struct Plot {
  std::string title;
  std::string axis;                    // name of the quantity at the positions
  std::vector<std::string> positions;  // their labels, evenly spaced
  std::vector<Curve> curves;           // each in a panel of its own, from zero up
};

// Text is escaped; colours as in palette.h, other text follows the viewer's light or dark scheme.
std::string svg(const Plot& plot);

}  // namespace penstock::report
