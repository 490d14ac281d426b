// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <array>
#include <string_view>

#include "report/html_assets.h"
#include "report/html_data.h"

namespace penstock::report {
namespace {

// In execution order: report.js starts the page, so it is last.
constexpr std::array<std::string_view, 12> kScripts{"format.js", "decode.js", "explain.js", "timeline.js",
                                                    "strips.js", "panel.js",  "charts.js",  "bars.js",
                                                    "points.js", "heat.js",   "tables.js",  "report.js"};

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string scripts() {
  std::string text;
  for (const std::string_view name : kScripts) text += asset(name);
  return text;
}

// The replacement of a mark of the page. Each mark occurs once, where its text is safe.
std::string content_of(std::string_view mark, const Report& report, const HtmlLimits& limits) {
  if (mark == "TITLE") return escape_html(report.title);
  if (mark == "STYLE") return std::string(asset("report.css"));
  if (mark == "DATA") return report_json(report, limits);
  return scripts();
}

}  // namespace

std::string html_page(const Report& report, const HtmlLimits& limits) {
  std::string_view rest = asset("report.html");
  std::string page;
  for (const std::string_view mark : {"TITLE", "STYLE", "DATA", "SCRIPT"}) {
    const std::size_t at = rest.find("@" + std::string(mark) + "@");
    page += rest.substr(0, at);
    page += content_of(mark, report, limits);
    rest.remove_prefix(at + mark.size() + 2);
  }
  return page.append(rest);
}

}  // namespace penstock::report
