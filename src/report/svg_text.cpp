// SPDX-License-Identifier: Apache-2.0
#include "report/svg_text.h"

#include "base/text.h"

namespace penstock::report {

// json_quote replaces invalid UTF-8 and writes control characters as \uXXXX. XML has none of them, nor U+FFFE
// and U+FFFF.
std::string escape(std::string_view text) {
  const std::string quoted = json_quote(text);
  std::string escaped;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] == '\\' && quoted[++i] == 'u') {
      escaped += ' ';
      i += 4;
      continue;
    }
    const std::string_view rest = std::string_view(quoted).substr(i);
    if (rest.starts_with("\xEF\xBF\xBE") || rest.starts_with("\xEF\xBF\xBF")) {
      escaped += ' ';
      i += 2;
      continue;
    }
    switch (quoted[i]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped += quoted[i];
    }
  }
  return escaped;
}

std::string pixels(double value) {
  const std::string text = number(value, 2);
  const std::size_t last = text.find_last_not_of('0');
  return text.substr(0, text[last] == '.' ? last : last + 1);
}

}  // namespace penstock::report
