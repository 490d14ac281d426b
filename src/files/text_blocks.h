// SPDX-License-Identifier: Apache-2.0
// Splits long texts into blocks for parallel work, and reads the documents of JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/chat_template.h"

namespace penstock::files {

// Length of the first block of a text: `wanted` bytes or the whole text, extended to the end of the line, or
// cut between two UTF-8 characters when the line continues for more than `wanted` bytes. With `whole_lines`,
// lines are never cut. Depends only on the arguments.
std::size_t first_block(std::string_view text, std::size_t wanted, bool whole_lines);

// How lines of JSON are read.
struct JsonDocuments {
  std::string key = "text";     // the member that is a document's text
  ChatTemplate chat{"chatml"};  // for an object's "messages", if it has no `key`
  bool learns_all = false;      // whole conversations are targets, not only the assistant's turns
};

// Returns the documents of lines with one JSON object each; skips blank lines. Throws InputError that begins
// with `origin` and the line number, counted from `first_line`, and names the member: not JSON, neither text
// nor messages, a message without role or content.
std::vector<std::vector<TextPart>> documents_of_json_lines(std::string_view lines,
                                                           const JsonDocuments& documents,
                                                           std::string_view origin, std::int64_t first_line);

}  // namespace penstock::files
