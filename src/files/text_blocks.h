// SPDX-License-Identifier: Apache-2.0
// Long texts in blocks for parallel work, and the documents in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::files {

// Length of the first block of a text: `wanted` bytes or all there are, extended to the end of the line, or
// cut between two UTF-8 characters when the line continues for more than `wanted` bytes. With `whole_lines`,
// lines are never cut. Depends on the text alone.
std::size_t first_block(std::string_view text, std::size_t wanted, bool whole_lines);

// The texts under `key` of lines with one JSON object each; skips blank lines. Throws InputError that begins
// with `origin` and the line number, counted from `first_line`: not JSON, key missing, value not text.
std::vector<std::string> texts_of_json_lines(std::string_view lines, std::string_view key,
                                             std::string_view origin, std::int64_t first_line);

}  // namespace penstock::files
