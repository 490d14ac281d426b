// SPDX-License-Identifier: Apache-2.0
// Coloured cells in a terminal.
#pragma once

#include <string>
#include <string_view>

#include "report/palette.h"

namespace penstock::report {

// Dark text on background `ground`, in 24-bit ANSI colours.
inline std::string paint(const Colour& ground, std::string_view text) {
  const auto code = [](const Colour& c) {
    return std::to_string(c.red) + ';' + std::to_string(c.green) + ';' + std::to_string(c.blue);
  };
  return "\x1b[48;2;" + code(ground) + ";38;2;" + code(colour::kText) + 'm' + std::string(text) + "\x1b[0m";
}

}  // namespace penstock::report
