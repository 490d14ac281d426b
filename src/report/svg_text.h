// SPDX-License-Identifier: Apache-2.0
// Text and numbers inside SVG.
#pragma once

#include <string>
#include <string_view>

namespace penstock::report {

// Escapes any bytes as the text of an element.
std::string escape(std::string_view text);

// A length with at most two decimals: "12", "3.25".
std::string pixels(double value);

}  // namespace penstock::report
