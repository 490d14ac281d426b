// SPDX-License-Identifier: Apache-2.0
#include "train/record/step_lines.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

// 0 if the line is not a step's metrics. Values that are not finite are null.
std::int64_t step_of(std::string_view line) {
  const auto parsed = files::parse_or_discard<nlohmann::json>(line);
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_integer()) return 0;
  for (const char* key : {"loss", "grad_norm", "lr", "tokens", "step_s", "time", "tokens_per_second", "mfu",
                          "bubble_fraction", "peak_bytes", "evaluation_loss"}) {
    const auto value = parsed.find(key);
    if (value != parsed.end() && !value->is_number() && !value->is_null()) return 0;
  }
  return std::max<std::int64_t>(parsed["step"].get<std::int64_t>(), 0);
}

}  // namespace

StepLines lines_of_steps(std::string_view text, const std::string& path, std::int64_t last_step) {
  StepLines kept;
  const std::vector<std::string_view> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::int64_t step = step_of(lines[i]);
    if (step > last_step || (step > 0 && kept.of_steps.emplace(step, lines[i]).second)) continue;
    const bool unterminated = i + 1 == lines.size();
    if (unterminated || ++kept.damaged > 1) continue;
    const std::string second = "is a second line of step " + std::to_string(step);
    kept.remark = path + ", line " + std::to_string(i + 1) + ": \"" + printable(lines[i]) + "\" " +
                  (step > 0 ? second : "is not a step's metrics") + "; it is left out";
  }
  if (kept.damaged > 1) kept.remark += ", like " + counted(kept.damaged - 1, "later line");
  return kept;
}

std::int64_t newest_checkpoint(std::string_view metrics) {
  const std::string member = '"' + std::string(kNewestCheckpoint) + "\":";
  std::int64_t step = 0;
  std::string_view whole = metrics.substr(0, metrics.rfind('\n') + 1);
  while (step <= 0 && !whole.empty()) {
    const std::size_t at = whole.rfind(member);
    if (at == whole.npos) return 0;
    const std::string_view digits = whole.substr(at + member.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), step);
    whole = whole.substr(0, at);
  }
  return step;
}

}  // namespace penstock::train
