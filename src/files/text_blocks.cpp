// SPDX-License-Identifier: Apache-2.0
#include "files/text_blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::files {
namespace {

using nlohmann::json;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string text_of_line(std::string_view line, std::string_view key, const std::string& where) {
  json document;
  try {
    document = json::parse(line);
  } catch (const json::parse_error& error) {
    throw InputError(where + ": is not JSON: " + json_fault(line, error.byte));
  } catch (const json::exception&) {
    throw InputError(where + ": is not JSON: it has a number out of range");
  }
  if (!document.is_object()) throw InputError(where + ": is no JSON object");
  const auto found = document.find(key);
  if (found == document.end()) throw InputError(where + ": has no \"" + printable(key) + "\"");
  if (!found->is_string()) {
    throw InputError(where + ": \"" + printable(key) + "\" is " + found->type_name() + "; expected a text");
  }
  return std::move(found->get_ref<std::string&>());
}

}  // namespace

std::size_t first_block(std::string_view text, std::size_t wanted, bool whole_lines) {
  if (text.size() <= wanted) return text.size();
  const std::size_t line_end = text.find('\n', wanted - 1);
  const std::size_t end = line_end == text.npos ? text.size() : line_end + 1;
  if (whole_lines || end <= 2 * wanted) return end;
  std::size_t cut = 2 * wanted;
  for (int i = 0; i < 3 && cut > wanted && continues_character(text[cut]); ++i)
    --cut;  // a character has at most four bytes
  return cut;
}

std::vector<std::string> texts_of_json_lines(std::string_view lines, std::string_view key,
                                             std::string_view origin, std::int64_t first_line) {
  std::vector<std::string> texts;
  for (std::int64_t number = first_line; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (!trim(line).empty())
      texts.push_back(text_of_line(line, key, std::string(origin) + ":" + std::to_string(number)));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return texts;
}

}  // namespace penstock::files
