// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/attempts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Seconds kShortestPause = 1, kLongestPause = 60;

bool is_final(int exit_code) {
  return exit_code == static_cast<int>(Exit::No) || exit_code == static_cast<int>(Exit::WrongInput);
}

Json json_of(const TimeUse& use) {
  return {{"productive_s", use.productive},
          {"recomputed_s", use.recomputed},
          {"other_s", use.other},
          {"pauses_s", use.pauses}};
}

}  // namespace

Decision decide(const std::vector<Attempt>& attempts, int restarts) {
  const Attempt& last = attempts.back();
  if (last.complained && is_final(last.exit_code)) return {.why = "the same input would be refused again"};
  const auto before = std::find_if(attempts.rbegin() + 1, attempts.rend(), [&](const Attempt& attempt) {
    return attempt.last_step() == last.last_step() && attempt.reason == last.reason;
  });
  if (before != attempts.rend())
    return {.why = "step " + std::to_string(last.last_step() + 1) + " has failed twice for the same reason"};
  if (std::ssize(attempts) > restarts)
    return {.why = "--restarts " + std::to_string(restarts) + (restarts == 1 ? " is" : " are") + " used up"};
  std::int64_t furthest = -1;  // in earlier attempts
  int fruitless = 0;           // attempts since that gained no step
  for (const Attempt& attempt : attempts) {
    fruitless = attempt.last_step() > furthest ? 0 : fruitless + 1;
    furthest = std::max(furthest, attempt.last_step());
  }
  return {.again = true, .pause = std::min(kLongestPause, kShortestPause * std::exp2(fruitless))};
}

// The last attempt that did a step is the one whose result stays.
TimeUse time_use(const std::vector<Attempt>& attempts) {
  TimeUse use;
  std::map<std::int64_t, Seconds> stays;
  for (const Attempt& attempt : attempts) {
    Seconds in_steps = 0;
    for (const auto& [step, seconds] : attempt.steps) {
      in_steps += seconds;
      use.recomputed += std::exchange(stays[step], seconds);
    }
    use.other += std::max(0.0, attempt.seconds - in_steps);
    use.pauses += attempt.pause;
  }
  for (const auto& [step, seconds] : stays) use.productive += seconds;
  return use;
}

std::string to_json(const std::vector<Attempt>& attempts) {
  Json rows = Json::array();
  for (const Attempt& attempt : attempts) {
    rows.push_back({{"seconds", attempt.seconds},
                    {"pause_s", attempt.pause},
                    {"exit_code", attempt.exit_code},
                    {"reason", attempt.reason},
                    {"resumed_from_step", attempt.resumed},
                    {"last_step", attempt.last_step()}});
  }
  return Json{{"attempts", rows}, {"time", json_of(time_use(attempts))}}.dump(1) + "\n";
}

std::string print_time_use(const std::vector<Attempt>& attempts) {
  const TimeUse use = time_use(attempts);
  const auto part = [&](const char* name, Seconds seconds) -> std::vector<std::string> {
    return {name, print_seconds(seconds), percent(use.all() > 0 ? seconds / use.all() : 0)};
  };
  return columns({{"attempts", std::to_string(attempts.size())},
                  part("productive", use.productive),
                  part("recomputed", use.recomputed),
                  part("starts, checkpoints", use.other),
                  part("pauses", use.pauses)},
                 "lr");
}

std::vector<DoneStep> steps_after(std::int64_t step, const std::string& metrics) {
  std::vector<DoneStep> steps;
  for (const std::string_view line : split(metrics, '\n')) {
    const Json values = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!values.is_object() || !values.contains("step") || !values.contains("step_s")) continue;
    const Json &number = values["step"], &seconds = values["step_s"];
    if (number.is_number_integer() && seconds.is_number() && number > step)
      steps.push_back({number, seconds});
  }
  return steps;
}

}  // namespace penstock::cli
