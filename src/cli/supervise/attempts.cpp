// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/attempts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <utility>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/supervise/complaint.h"
#include "files/strict_json.h"

namespace penstock::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr Seconds kShortestPause = 1, kLongestPause = 60;

struct NamedUse {
  const char* key;
  const char* name;
  Seconds TimeUse::*seconds;
};
constexpr NamedUse kUses[] = {{"productive_s", "productive", &TimeUse::productive},
                              {"recomputed_s", "recomputed", &TimeUse::recomputed},
                              {"waiting_s", "waiting, pauses", &TimeUse::waiting},
                              {"checkpoints_s", "checkpoints", &TimeUse::checkpoints},
                              {"starts_s", "starts", &TimeUse::starts},
                              {"other_s", "other", &TimeUse::other}};

OrderedJson json_of(const TimeUse& use) {
  OrderedJson object;
  for (const NamedUse& part : kUses) object[part.key] = use.*part.seconds;
  return object;
}

// Clamps, since wall clocks may jump: no part is negative or longer than the whole.
Seconds start_of(const Attempt& attempt) {
  if (!attempt.has_step()) return attempt.seconds;
  const DoneStep& first = attempt.steps.front();
  return std::clamp(first.time - first.held_up - first.seconds - attempt.began, 0.0, attempt.seconds);
}

Seconds after_last_step(const Attempt& attempt) {
  if (!attempt.has_step()) return 0;
  const Seconds after = attempt.began + attempt.seconds - attempt.steps.back().time;
  return std::clamp(after, 0.0, attempt.seconds - start_of(attempt));
}

double number_in(const OrderedJson& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

OrderedJson array_in(const OrderedJson& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_array()) return OrderedJson::array();
  return object[key];
}

// Returns the reason without the reporting rank and without numbers (bytes wanted, seconds waited, file
// numbers), so that failures that differ only in these compare equal. Keeps numbers of other ranks, signals
// and exit codes.
std::string kind_of(const std::string& told) {
  static const std::regex number(
      "(rank|signal|exit code) [0-9]+|[0-9]+([.][0-9]+)?( (us|ms|s|min|bytes|KiB|MiB|GiB|TiB)\\b)?");
  const std::string reason = failure_of_rank(told).value_or(told);
  std::string kind;
  auto rest = reason.cbegin();
  for (std::sregex_iterator found(reason.begin(), reason.end(), number), end; found != end; ++found) {
    kind.append(rest, (*found)[0].first);
    kind += (*found)[1].matched ? found->str() : "#";
    rest = (*found)[0].second;
  }
  return kind.append(rest, reason.cend());
}

// Says what has failed twice for the same reason; empty if nothing has. An attempt without a step failed in
// its start, whatever step that was to be: it says nothing of one that failed in a step.
std::string failed_twice(std::span<const Attempt> attempts) {
  const Attempt& last = attempts.back();
  const auto repeats = [&](const Attempt& attempt) {
    return attempt.has_step() == last.has_step() && attempt.last_step() == last.last_step() &&
           kind_of(attempt.reason) == kind_of(last.reason);
  };
  const std::span<const Attempt> before = attempts.first(attempts.size() - 1);
  if (last.has_step())
    return std::ranges::any_of(before, repeats)
               ? "step " + std::to_string(last.last_step() + 1) + " has failed twice for the same reason"
               : "";
  const bool may_pass = last.refused();  // decide() knows those that may not
  return !may_pass && !before.empty() && repeats(before.back())
             ? "two attempts in a row have failed before their first step for the same reason"
             : "";
}

}  // namespace

bool Attempt::refused() const {
  if (!complained || has_step()) return false;
  const bool ended_by_rank = failure_of_rank(reason).has_value();
  return exit_code == static_cast<int>(Exit::WrongInput) ||
         (exit_code == static_cast<int>(Exit::No) && !ended_by_rank);
}

Decision decide(const std::vector<Attempt>& attempts, int restarts) {
  const Attempt& last = attempts.back();
  if (last.refused() && !last.may_pass && std::ranges::none_of(attempts, &Attempt::has_step))
    return {.why = "the same input would be refused again"};
  if (std::string why = failed_twice(attempts); !why.empty()) return {.why = std::move(why)};
  if (std::ssize(attempts) > restarts)
    return {.why = "--restarts " + std::to_string(restarts) + (restarts == 1 ? " is" : " are") + " used up"};
  std::int64_t furthest = -1;  // greatest last step of earlier attempts
  int fruitless = 0;           // attempts since then that gained no step
  for (const Attempt& attempt : attempts) {
    fruitless = attempt.last_step() > furthest ? 0 : fruitless + 1;
    furthest = std::max(furthest, attempt.last_step());
  }
  return {.again = true, .pause = std::min(kLongestPause, kShortestPause * std::exp2(fruitless))};
}

// A step counts as productive in the last attempt that did it, whose result stays.
TimeUse time_use(const std::vector<Attempt>& attempts) {
  TimeUse use;
  std::map<std::int64_t, Seconds> stays;
  for (const Attempt& attempt : attempts) {
    const Seconds start = start_of(attempt), end = after_last_step(attempt);
    Seconds in_steps = 0, held_up = 0;
    for (const DoneStep& step : attempt.steps) {
      in_steps += step.seconds;
      held_up += step.held_up;
      use.recomputed += std::exchange(stays[step.step], step.seconds);
    }
    use.starts += start;
    use.checkpoints += held_up;
    use.other += std::max(0.0, attempt.seconds - start - end - in_steps - held_up);
    (attempt.good() ? use.other : use.waiting) += end;
    use.waiting += attempt.pause;
  }
  for (const auto& [step, seconds] : stays) use.productive += seconds;
  return use;
}

std::vector<Recovery> recoveries(const std::vector<Attempt>& attempts) {
  std::vector<Recovery> found;
  Seconds lost = 0, restart = 0;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Attempt& attempt = attempts[i];
    restart += attempt.pause + start_of(attempt);  // includes attempts without a step
    if (!attempt.has_step()) continue;
    if (i > 0) found.push_back({lost, restart - attempt.load, attempt.load, attempt.steps.front().seconds});
    lost = after_last_step(attempt);
    restart = 0;
  }
  return found;
}

bool has_attempts(const std::string& text) {
  const OrderedJson document = files::parse_or_discard<OrderedJson>(text);
  return document.is_object() && document.contains("attempts") && document["attempts"].is_array();
}

std::string to_json(const std::vector<Attempt>& attempts, const std::string& earlier) {
  const OrderedJson before = files::parse_or_discard<OrderedJson>(earlier);
  OrderedJson rows = array_in(before, "attempts"), recovered = array_in(before, "recoveries");
  for (const Attempt& attempt : attempts) {
    OrderedJson row{{"seconds", attempt.seconds},
                    {"pause_s", attempt.pause},
                    {"exit_code", attempt.exit_code},
                    {"reason", attempt.reason}};
    if (attempt.has_step())
      row.update({{"resumed_from_step", attempt.resumed},
                  {"load_s", attempt.load},
                  {"last_step", attempt.last_step()}});
    rows.push_back(row);
  }
  for (const Recovery& recovery : recoveries(attempts))
    recovered.push_back({{"detect_s", recovery.detect},
                         {"restart_s", recovery.restart},
                         {"load_s", recovery.load},
                         {"first_step_s", recovery.first_step}});
  OrderedJson time = json_of(time_use(attempts));
  if (before.is_object() && before.contains("time")) {
    for (auto& [part, seconds] : time.items())
      seconds = seconds.get<double>() + number_in(before["time"], part);
  }
  // A complaint may have any bytes: names of files, or a character cut in two.
  return OrderedJson{{"attempts", rows}, {"recoveries", recovered}, {"time", time}}.dump(
             1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

std::string print_time_use(const std::vector<Attempt>& attempts) {
  const TimeUse use = time_use(attempts);
  std::vector<std::vector<std::string>> rows{{"attempts", std::to_string(attempts.size()), ""}};
  for (const NamedUse& part : kUses)
    rows.push_back({part.name, print_seconds(use.*part.seconds),
                    percent(use.all() > 0 ? use.*part.seconds / use.all() : 0)});
  std::string text = columns(rows, "lr");
  for (const Recovery& recovery : recoveries(attempts))
    text += "recovery  noticed in " + print_seconds(recovery.detect) + ", restarted in " +
            print_seconds(recovery.restart) + ", loaded in " + print_seconds(recovery.load) +
            ", first step " + print_seconds(recovery.first_step) + "\n";
  return text;
}

std::string with_time_use(const std::string& summary, const std::string& attempts) {
  OrderedJson document = files::parse_or_discard<OrderedJson>(summary);
  const OrderedJson told = files::parse_or_discard<OrderedJson>(attempts);
  if (!document.is_object() || !told.is_object() || !told.contains("time")) return summary;
  document["attempts"] = array_in(told, "attempts").size();
  document["time"] = told["time"];
  return document.dump(2) + "\n";
}

Recorded recorded_in(std::string_view metrics) {
  Recorded recorded;
  for (const std::string_view line : split(metrics, '\n')) {
    const OrderedJson values = files::parse_or_discard<OrderedJson>(line);
    if (!values.is_object() || !values.contains("step") || !values["step"].is_number_integer()) continue;
    const DoneStep step{.step = values["step"],
                        .seconds = number_in(values, "step_s"),
                        .held_up = number_in(values, "checkpoint_s"),
                        .time = number_in(values, "time")};
    recorded.last_step = step.step;
    const auto start = values.find("start");
    const bool starts = start != values.end() && start->is_object();
    if (starts) {
      recorded.start = {.resumed = static_cast<std::int64_t>(number_in(*start, "resumed_from")),
                        .load = number_in(*start, "load_s"),
                        .steps = {}};
      recorded.starts.push_back(step.time);
    }
    if (starts || !recorded.start.steps.empty()) recorded.start.steps.push_back(step);
  }
  return recorded;
}

bool has_new_start(const Recorded& now, const Recorded& before) {
  return !now.start.steps.empty() &&
         std::ranges::find(before.starts, now.start.steps.front().time) == before.starts.end();
}

}  // namespace penstock::cli
