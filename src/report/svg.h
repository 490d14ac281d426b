// SPDX-License-Identifier: Apache-2.0
// A drawing as an SVG file. Boxes have the colours of palette.h; other text follows the viewer's light or
// dark scheme; the background is transparent.
#pragma once

#include <string>

#include "report/drawing.h"

namespace penstock::report {

struct SvgOptions {
  double most_width = 2400;  // pixels of the time axis; labels that do not fit their box are left out
};

// Text from outside (titles) is escaped.
std::string svg(const Drawing& drawing, const SvgOptions& options = {});

}  // namespace penstock::report
