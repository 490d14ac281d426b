// SPDX-License-Identifier: Apache-2.0
// JSON from outside, with nothing left to interpretation.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace penstock::files {

// The whole text as one JSON value. The library keeps the last of several equal names and takes any depth;
// here names stand once in an object and nesting goes `deepest` levels at most. Throws InputError that begins
// with `origin`; `what` says what the text is ("the header").
nlohmann::json parse_strictly(std::string_view text, std::string_view origin, std::string_view what,
                              int deepest);

}  // namespace penstock::files
