// SPDX-License-Identifier: Apache-2.0
#include "files/text_blocks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::files {
namespace {

using nlohmann::json;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Refuses the names that are read if an object has them twice: the library would take the last.
json parse_once(std::string_view line, std::string_view key, const std::string& where) {
  std::set<std::string> seen;
  return json::parse(line, [&](int depth, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::key || depth != 1) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if ((name == key || name == "messages") && !seen.insert(name).second)
      throw InputError(where + ": has the name \"" + printable(name) + "\" twice");
    return true;
  });
}

json object_of_line(std::string_view line, std::string_view key, const std::string& where) {
  json document;
  if (const std::size_t nul = byte_of_nul(line))
    throw InputError(where + ": is not JSON: " + json_fault_in_line(line, nul));
  try {
    document = parse_once(line, key, where);
  } catch (const json::parse_error& error) {
    if (error.byte > line.size())
      throw InputError(where +
                       ": the line ends before its JSON does; each line must be a whole object (JSON lines), "
                       "as jq -c writes them");
    throw InputError(where + ": is not JSON: " + json_fault_in_line(line, error.byte));
  } catch (const json::exception&) {
    throw InputError(where + ": has a number beyond the range of f64");
  }
  if (!document.is_object())
    throw InputError(where +
                     ": is not a JSON object; each line must be one, as jq -c '.[]' writes them of a list");
  return document;
}

// Returns a member that must be a text; errors call it `name`.
std::string text_of(const json& object, std::string_view key, const std::string& name,
                    const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw InputError(where + ": has no " + name);
  if (!found->is_string())
    throw InputError(where + ": " + name + " is " + found->type_name() + "; expected a text");
  return found->get<std::string>();
}

std::vector<Message> messages_of(const json& list, const std::string& where) {
  if (!list.is_array() || list.empty())
    throw InputError(where + ": \"messages\" must be a list of objects with \"role\" and \"content\"");
  std::vector<Message> messages;
  for (const json& entry : list) {
    const std::string name = "messages[" + std::to_string(messages.size()) + "]";
    if (!entry.is_object()) throw InputError(where + ": " + name + " is not a JSON object");
    messages.push_back(
        {text_of(entry, "role", name + ".role", where), text_of(entry, "content", name + ".content", where)});
  }
  return messages;
}

std::vector<TextPart> document_of_line(std::string_view line, const JsonDocuments& documents,
                                       const std::string& where) {
  const json object = object_of_line(line, documents.key, where);
  const auto messages = object.find("messages");
  if (messages == object.end() || object.contains(documents.key))
    return {{text_of(object, documents.key, "\"" + printable(documents.key) + "\"", where), true}};
  return documents.chat.render(messages_of(*messages, where), documents.learns_all);
}

}  // namespace

std::size_t first_block(std::string_view text, std::size_t wanted, bool whole_lines) {
  if (text.size() <= wanted) return text.size();
  // A later end of a line is not used; searching for it in every block would take quadratic time.
  const std::string_view searched = whole_lines ? text : text.substr(0, 2 * wanted);
  const std::size_t line_end = searched.find('\n', wanted - 1);
  if (line_end != searched.npos) return line_end + 1;
  if (searched.size() == text.size()) return text.size();
  std::size_t cut = 2 * wanted;
  for (int i = 0; i < 3 && cut > wanted && continues_character(text[cut]); ++i)
    --cut;  // a character has at most four bytes
  return cut;
}

std::vector<std::vector<TextPart>> documents_of_json_lines(std::string_view lines,
                                                           const JsonDocuments& documents,
                                                           std::string_view origin, std::int64_t first_line) {
  std::vector<std::vector<TextPart>> found;
  for (std::int64_t number = first_line; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    if (!trim(line).empty())
      found.push_back(document_of_line(line, documents, std::string(origin) + ":" + std::to_string(number)));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return found;
}

}  // namespace penstock::files
