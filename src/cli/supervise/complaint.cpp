// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/complaint.h"

#include <regex>

#include "base/clock.h"
#include "base/text.h"
#include "cli/tell.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kOwnWord = "penstock: ";
constexpr std::string_view kWiped = "\x1b[K";  // a progress bar ends with it, and its line stays open
constexpr std::size_t kLongestComplaint = 4096, kLongestTag = 64;

bool is_tag(std::string_view text) {
  static const std::regex tag(R"(\[[^\]]+\]<std(err|out)>: ?| *[0-9]+: )");
  return text.empty() || (text.size() <= kLongestTag && std::regex_match(text.begin(), text.end(), tag));
}

// Returns what follows "penstock: " at the beginning of a line.
std::optional<std::string_view> own_words(std::string_view line) {
  for (std::size_t at = line.find(kOwnWord); at != line.npos; at = line.find(kOwnWord, at + 1)) {
    std::string_view before = line.substr(0, at);
    if (const std::size_t wiped = before.rfind(kWiped); wiped != before.npos)
      before.remove_prefix(wiped + kWiped.size());
    if (is_tag(before)) return line.substr(at + kOwnWord.size());
  }
  return {};
}

}  // namespace

std::optional<std::string> failure_of_rank(const std::string& complaint) {
  const std::size_t colon = complaint.find(": "), place = complaint.rfind(" (");
  const bool whole = colon != std::string::npos && place != std::string::npos && colon + 2 < place &&
                     complaint.ends_with(')') && complaint.find("host ", place) != std::string::npos;
  if (!whole || !complaint.starts_with("rank ") || !parse_integer(complaint.substr(5, colon - 5))) return {};
  return complaint.substr(colon + 2, place - colon - 2);
}

void Complaints::read(std::string_view text) {
  constexpr std::size_t kLongestLine = 2 * kLongestComplaint;
  line_ += text;
  for (std::size_t end; (end = line_.find_first_of("\r\n")) != std::string::npos;) {
    const auto words = own_words(std::string_view(line_).substr(0, end));
    if (words && !words->starts_with(kRemark)) note(std::string(words->substr(0, kLongestComplaint)));
    line_.erase(0, end + 1);
  }
  if (line_.size() <= kLongestLine) return;
  if (own_words(line_)) {
    line_.resize(kLongestLine);
  } else {  // keeps the end, where a complaint may begin; "?" since what is left does not begin a line
    line_.replace(0, line_.size() - kLongestTag, "?");
  }
}

void Complaints::note(const std::string& complaint) {
  last_ = complaint;
  if (failed_at_ != 0 || !failure_of_rank(complaint)) return;
  of_rank_ = complaint;
  failed_at_ = steady_seconds();
}

}  // namespace penstock::cli
