// SPDX-License-Identifier: Apache-2.0
// Small text helpers shared by messages, parsers and printers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty parts
std::string_view trim(std::string_view text);                                // spaces, tabs, CR
std::string join(std::span<const std::string> parts, std::string_view separator);

// The whole text as a decimal number, negative with a "-"; nothing for a "+", blanks, overflow or trailing
// characters.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite numbers only

// The candidate with the smallest edit distance, in letters of either case; none where more than about a
// third of the word is wrong.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates);

// The end of a message on an unknown word: "; did you mean "X"?" with the nearest candidate between quotes,
// empty if none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates,
                         std::string_view quote = "\"");

// The same, but "; expected one of "X", "Y"" with all candidates if none is near.
std::string instead_of(std::string_view word, std::span<const std::string_view> candidates,
                       std::string_view quote = "\"");

// A fixed-point number with printf's rounding: number(0.125, 2) == "0.12".
std::string number(double value, int decimals);

// Shortest text that parses back to the same double, in JSON and TOML too; "null" when not finite (JSON has
// no NaN).
std::string exact_number(double value);

// The same for people: "nan", "inf" or "-inf" when not finite.
std::string number_or_name(double value);

// A JSON string literal, quotes included. Invalid UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);
std::string json_quote_all(const std::vector<std::string>& texts);  // ["a","b"]

// External text made safe for one line of an error message: control bytes and invalid UTF-8 escaped, text
// longer than about `limit` bytes shortened.
std::string printable(std::string_view text, std::size_t limit = 60);

std::string percent(double share);  // "12.5 %"

std::string counted(std::int64_t count, const std::string& what);  // "1 rank", "2 ranks"

}  // namespace penstock
