// SPDX-License-Identifier: Apache-2.0
#include "report/html_json.h"

#include "base/text.h"

namespace penstock::report {

std::string json_text(std::string_view text) {
  std::string safe;
  for (const char c : json_quote(text)) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace penstock::report
