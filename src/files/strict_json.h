// SPDX-License-Identifier: Apache-2.0
// Strict parsing of external JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace penstock::files {

// Parses the whole text as one JSON value. Unlike the library's default, rejects duplicate names in an object
// and nesting beyond `deepest` levels. Throws InputError that begins with `origin`; `what` names the text
// ("the header").
nlohmann::json parse_strictly(std::string_view text, std::string_view origin, std::string_view what,
                              int deepest);

// Where a text that is not JSON goes wrong, in words; `byte` counts from 1, as the JSON library's errors do.
std::string json_fault(std::string_view text, std::size_t byte);

}  // namespace penstock::files
