// SPDX-License-Identifier: Apache-2.0
// Parsing of external JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace penstock::files {

// Parses the whole text as one JSON value. Unlike the library's default, rejects duplicate names in an object
// and nesting beyond `deepest` levels. Throws InputError that begins with `origin`; `what` names the text
// ("the header").
nlohmann::json parse_strictly(std::string_view text, std::string_view origin, std::string_view what,
                              int deepest);

// Whether brackets outside of strings open more than `deepest` levels.
bool is_nested_beyond(std::string_view text, int deepest);

// Parses the whole text as one JSON value. Returns a discarded value for invalid JSON and for nesting beyond
// 16 levels, since the library copies and prints values by recursion.
template <class Json = nlohmann::json>
Json parse_or_discard(std::string_view text);

// Compiled once: the library's parser takes seconds in every file that contains one.
extern template nlohmann::json parse_or_discard(std::string_view text);
extern template nlohmann::ordered_json parse_or_discard(std::string_view text);

// The first zero byte, counted from 1; 0: there is none. The library takes such a byte for the end of the
// text, and accepts whatever follows.
std::size_t byte_of_nul(std::string_view text);

// Describes the place where a text stops being JSON; `byte` counts from 1, as in the JSON library's errors.
std::string json_fault(std::string_view text, std::size_t byte);

// The same for one line of a file, whose number the caller tells.
std::string json_fault_in_line(std::string_view line, std::size_t byte);

}  // namespace penstock::files
