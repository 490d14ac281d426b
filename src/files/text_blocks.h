// SPDX-License-Identifier: Apache-2.0
// Long texts in blocks that can be worked on side by side, and the documents in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::files {

// The length of the first block of a text: `wanted` bytes or all there are, made longer to end with a line,
// or between two characters of UTF-8 when the line has more than `wanted` bytes to go. Whole lines are never
// cut when `whole_lines`. Depends on the text alone.
std::size_t first_block(std::string_view text, std::size_t wanted, bool whole_lines);

// The texts under `key` of lines that are a JSON object each; blank lines are passed over. Throws InputError
// that begins with `origin` and the line's number, counted from `first_line`: no JSON, no such key, no text.
std::vector<std::string> texts_of_json_lines(std::string_view lines, std::string_view key,
                                             std::string_view origin, std::int64_t first_line);

}  // namespace penstock::files
