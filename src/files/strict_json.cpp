// SPDX-License-Identifier: Apache-2.0
#include "files/strict_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock::files {

using nlohmann::json;

std::string json_fault_in_line(std::string_view line, std::size_t byte) {
  const std::size_t before = byte > 0 ? byte - 1 : 0;
  if (before >= line.size()) return "it ends too early";
  return "column " + std::to_string(before + 1) + ": unexpected \"" + printable(line.substr(before, 1)) +
         "\"";
}

std::string json_fault(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::string fault = json_fault_in_line(text.substr(begin), before.size() - begin + 1);
  if (before.size() >= text.size()) return fault;
  return "line " + std::to_string(1 + std::ranges::count(before, '\n')) + ", " + fault;
}

bool is_nested_beyond(std::string_view text, int deepest) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      i += c == '\\';
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::size_t byte_of_nul(std::string_view text) {
  const std::size_t at = text.find('\0');
  return at == text.npos ? 0 : at + 1;
}

template <class Json>
Json parse_or_discard(std::string_view text) {
  if (byte_of_nul(text) > 0 || is_nested_beyond(text, 16)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}
template json parse_or_discard(std::string_view text);
template nlohmann::ordered_json parse_or_discard(std::string_view text);

json parse_strictly(std::string_view text, std::string_view origin, std::string_view what, int deepest) {
  const auto fail = [&](const std::string& why) {
    throw InputError(std::string(origin) + ": " + std::string(what) + " " + why);
  };
  if (const std::size_t nul = byte_of_nul(text)) fail("is not JSON: " + json_fault(text, nul));
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) fail("is nested too deeply");
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      fail("has the name \"" + printable(parsed.get<std::string>(), 200) + "\" twice");
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::parse_error& error) {
    fail("is not JSON: " + json_fault(text, error.byte));
  } catch (const json::exception&) {
    fail("is not JSON: it has a number out of range");
  }
  return {};
}

}  // namespace penstock::files
